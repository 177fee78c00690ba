import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import Foundation
import Logging
import StoreTesting
import Testing

@testable import AssentEngine

/// A database that the server wrote before its signing was held by question (`Tests/StoredData/signing.json`): the rows
/// of a device that `assent demo` enrolled and that has signed, and these rows varied so that there is each state. Its
/// keys were made for this.
@Suite("Rows of transaction signing that an earlier version has written")
struct SigningStoredDataTests {
    private struct Stored {
        let provider: SigningProvider
        let context: EngineContext
        let clock = ManualClock()
        let user: User
        let directory: URL

        static let did = SigningID(text: "GUyc_zAVFWUncUt7WovR6A") ?? SigningID(random: SystemRandom())

        init() async throws {
            let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent()
            let file = try Data(contentsOf: tests.appending(path: "StoredData/signing.json"))
            let data = try JSONValue.parse(Array(file))
            directory = FileManager.default.temporaryDirectory.appending(path: "assent-stored-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            let at = try #require(data["at"]?.integer)
            clock.advance(by: Double(at) - clock.now.timeIntervalSince1970)
            let location = try await TestDatabase.location(directory.appending(path: "assent.sqlite").path)
            let database = try await location.open(clock: clock)
            let key = try #require(Data(base64Encoded: data["masterKey"]?.string ?? ""))
            context = EngineContext(
                database: database, clock: clock, random: SystemRandom(),
                masterKey: try MasterKey(Secret(bytes: Array(key))),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            for part in ["written", "varied"] {
                for table in data[part]?.object?.members ?? [] {
                    for row in table.value.array ?? [] { try await Self.insert(row, into: table.name, database) }
                }
            }
            let issuer = SigningIssuer(name: try #require(data["issuer"]?.string), realm: "/alpha")
            provider = SigningProvider(context, settings: SigningSettings(issuer: issuer, name: "Bank of Example"))
            user = try #require(try await Users(context).find(username: "ana", realm: "/alpha"))
        }

        private static func insert(_ row: JSONValue, into table: String, _ database: any SQLDatabase) async throws {
            let members = row.object?.members ?? []
            let values = try members.map { member -> SQL in
                if let text = member.value.string { return "\(text)" }
                if let number = member.value.integer { return "\(number)" }
                return "\([UInt8](try #require(Data(base64Encoded: member.value["base64"]?.string ?? ""))))"
            }
            let columns = SQL(verbatim: "\(table) (\(members.map(\.name).joined(separator: ", ")))")
            let list = values.dropFirst().reduce(try #require(values.first)) { "\($0), \($1)" }
            _ = try await database.run(SQLStatement("INSERT INTO \(columns) VALUES (\(list))", expecting: .exactly(1)))
        }

        var now: Int64 { clock.epochSeconds }

        func ids(_ table: String, _ id: String) async throws -> [(id: SigningID, state: String)] {
            let columns = SQL(verbatim: "SELECT \(id) AS id, state FROM \(table) ORDER BY \(id)")
            return try await context.database.run(.read(columns)).map { (try $0.value("id"), try $0.text("state")) }
        }

        /// The one of a state that is not the device's own.
        func id(_ state: String, _ table: String, _ id: String) async throws -> SigningID {
            try #require(try await ids(table, id).first { $0.state == state && $0.id != Self.did }).id
        }

        func close() async throws {
            try await context.database.close()
            try? FileManager.default.removeItem(at: directory)
        }
    }

    @Test("Each row of each state is read as it is")
    func read() async throws {
        let stored = try await Stored()
        let provider = stored.provider
        for (did, state) in try await stored.ids("signing_containers", "did") {
            #expect(try await provider.devices.find(did)?.state.rawValue == state)
        }
        for (pid, state) in try await stored.ids("signing_invites", "pid") {
            #expect(try await provider.invites.find(pid)?.state.rawValue == state)
        }
        for (did, state) in try await stored.ids("signing_enrolments", "did") {
            #expect(try await provider.enrolments.find(did)?.state.rawValue == state)
        }
        for (pid, state) in try await stored.ids("signing_renewals", "pid") {
            let renewal = try #require(try await provider.enrolments.renewal(pid: pid))
            #expect(renewal.state.rawValue == state && (renewal.sent != nil) == ["COMPLETED", "DONE"].contains(state))
        }
        for (txn, state) in try await stored.ids("signing_transactions", "txn") {
            #expect(try await provider.documents.find(txn, evenUnclaimed: true)?.state.rawValue == state)
        }
        let keys = try await provider.devices.keys(of: Stored.did)
        #expect(keys.count(where: \.isActive) == 5 && keys.count { $0.state == .retired } == 2)
        #expect(keys.filter { $0.slot == .signing }.map(\.keystore.isSealed) == [true])
        let slots = try await provider.slots.all(of: Stored.did)
        #expect(Set(slots.map(\.slot)) == [.session, .signing, .otp] && slots.count { $0.isHeld } == 1)
        #expect(Set(try await provider.notices.waiting(for: Stored.did).map(\.event)) == Set(DeviceEvent.allCases))
        let enrolment = try await stored.id("STARTED", "signing_enrolments", "did")
        let invite = try await stored.id("OPEN", "signing_invites", "pid")
        #expect(try await provider.slots.offered(enrolment, pid: invite).map(\.evaluations) == [1])
        #expect(try await provider.devices.of(user: stored.user.id).count == 5)
        try await SigningHousekeeping.purge(stored.context)
        try await stored.close()
    }

    @Test("The issuer's keys open and sign, and the evidence of a decision stands")
    func evidence() async throws {
        let stored = try await Stored()
        let provider = stored.provider
        let begun = try await Sessions(stored.context).begin(
            userID: stored.user.id, realm: "/alpha", limits: SessionLimits())
        let session = try #require(try await Sessions(stored.context).live(token: begun.token))
        let decided = try await stored.context.database.run(.read("SELECT txn FROM signing_decisions"))
        let txn: SigningID = try #require(decided.first).value("txn")
        let bytes = try await provider.evidence.bundle(txn.text, for: .caller(SigningCaller(session)))
        let bundle = try EvidenceBundle(reading: bytes)
        let identity = try #require(try await provider.keys.current().identity)
        let report = EvidenceVerification.report(on: bundle, trust: identity.thumbprint)
        #expect(report.exitStatus == 0 && !report.established.isEmpty, "\(report.contradicted)")
        #expect(try await provider.keys.current().online.count == 2)
        let container = try #require(try await provider.devices.find(Stored.did))
        let echo = try provider.opened(container.sealedEcho, "echo", of: Stored.did).revealBytes()
        #expect(SigningHash(sha256: echo) == container.echoHash)
        #expect(try provider.opened(container.sealedHandle, "handle", of: Stored.did).revealBytes().count == 32)
        try await stored.close()
    }

    @Test("What was open goes on: devices, invites, enrolments, renewals, slots, transactions")
    func goOn() async throws {
        let stored = try await Stored()
        let (provider, now) = (stored.provider, stored.now)
        let container = try #require(try await provider.devices.find(Stored.did))
        func proof() -> SpentProof { SpentProof(jti: SigningID(random: SystemRandom()), did: Stored.did) }
        let pending = try await stored.id("PENDING", "signing_transactions", "txn")
        let open = try await provider.documents.open(container, limit: 20, at: now)
        #expect(open.contains { $0.txn == pending } && open.contains { $0.kind == .record })
        let key = try #require(
            try await provider.devices.keys(of: Stored.did).first { $0.isActive && $0.usage == .sign && $0.slot == nil }
        )
        let decision = SigningDecision(
            txn: try #require(open.first).txn, did: Stored.did, dh: "decision", decision: "d", possession: nil,
            txd: nil, receipt: "receipt")
        let effects = DecisionEffects(
            kid: key.kid, state: .approved, status: "accept", needsNumber: false, auditID: UUID().uuidString)
        #expect(
            try await provider.decisions.decide(decision, effects, container: container, proof: proof(), at: now)
                == "receipt")

        let blocked = try #require(
            try await provider.devices.find(try await stored.id("BLOCKED", "signing_containers", "did")))
        #expect(try await provider.devices.change(blocked, .unblock, by: "admin", at: now))
        let waiting = try #require(
            try await provider.devices.find(try await stored.id("UNCONFIRMED", "signing_containers", "did")))
        #expect(
            try await provider.invites.compare(digits: "12345678", pid: waiting.pid, at: now)
                == .right(did: waiting.did))
        let activation = SigningActivation(record: "record", hash: "hash", approvalsFrom: now)
        #expect(try await provider.enrolments.acceptDigits(waiting, activation: activation, at: now))
        #expect(
            try await provider.enrolments.confirm(
                waiting, echoHash: waiting.echoHash, activation: activation, at: now))
        #expect(try await provider.devices.find(waiting.did)?.state == .active)

        let started = try #require(
            try await provider.enrolments.find(try await stored.id("STARTED", "signing_enrolments", "did")))
        let nonce = SigningNonce(random: SystemRandom())
        #expect(
            try await provider.enrolments.commit(
                KeyEnrolment(started, user: stored.user.id, named: "ana"),
                CommitBody(commitment: "commitment", offer: .offer(started.offer)), nonce: nonce, proof: nil, at: now)
                == nonce)
        #expect(try await provider.enrolments.renewal(of: Stored.did, at: now)?.sent?.endorsements == ["a.b.c"])

        let slot = try #require(try await provider.slots.find(.signing, of: Stored.did))
        let lock = AssistedPasswordLock(max: 5, cap: 20, delays: [])
        let tried = SlotTry(
            did: Stored.did, slot: .signing, generation: slot.generation, rid: "another", element: "e",
            ratchet: try #require(slot.next), next: "later", last: 2, nonceMadeAt: now)
        #expect(try await provider.slots.count(tried, of: container, lock: lock, at: now).n == slot.n + 1)
        let confirmed = try #require(
            try await provider.decisions.confirmed("evaluation", slot: .signing, of: Stored.did, at: now))
        #expect(confirmed.evaluation.n == 2 && confirmed.changedAt == slot.changedAt)
        #expect(try await provider.devices.change(container, .revoke, by: "ana", at: now))
        #expect(try await provider.slots.find(.signing, of: Stored.did)?.sealedKey == nil)
        try await stored.close()
    }
}
