import AssentCore
import AssentPayload
import AssentStore
import AssentTesting
import Foundation
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("Sessions of payload encryption at a node")
struct PayloadSessionTests {
    private static let peer = PayloadPeer(
        role: .app, origin: "https://api.bank.example", client: nil, app: "bank", version: "3.2.0", platform: "linux")
    private static let note = SQLStatement.read("SELECT 1 AS one")

    private let fixture: TransactionFixture
    private let keys: PayloadKeys
    private let sessions: PayloadSessions
    private let key: PayloadKeys.Listed

    init() async throws {
        fixture = try await TransactionFixture()
        keys = PayloadKeys(fixture.context)
        sessions = PayloadSessions(fixture.context, keys: keys)
        let now = fixture.clock.epochSeconds
        key = try await keys.add(notBefore: now, notAfter: now + 86_400 * 365) { _ in Self.note }
        try await DPoPReplays(fixture.context, isDatabaseTimed: false).begin()
    }

    private func secrets() throws -> PayloadSecrets {
        let stored = Secret(bytes: SystemRandom().bytes(PayloadSecrets.storedLength))
        return try PayloadSecrets(session: sessions.makeName(), stored: stored)
    }

    private func kept() async throws -> PayloadSecrets {
        let secrets = try secrets()
        try await sessions.keep(secrets, peer: Self.peer, kid: key.kid)
        return secrets
    }

    private func head(_ secrets: PayloadSecrets, _ number: UInt64 = 1) -> FrameHead {
        FrameHead(.request, session: secrets.session, number: number, random: SystemRandom())
    }

    private func open(_ head: FrameHead, at node: PayloadSessions) async throws -> PayloadRefusal? {
        do {
            _ = try await node.opener(head, origin: Self.peer.origin)
            return nil
        } catch let refusal as PayloadRefusal {
            return refusal
        }
    }

    @Test("Secrets are what they were after they were stored")
    func stored() throws {
        let secrets = try secrets()
        let restored = try PayloadSecrets(session: secrets.session, stored: secrets.stored)
        #expect(restored.request == secrets.request)
        #expect(restored.reply == secrets.reply)
        #expect(throws: PayloadError.badKey) { try PayloadSecrets(session: secrets.session, stored: Secret("short")) }
        #expect(throws: PayloadError.badKey) { try PayloadSecrets(session: [1], stored: secrets.stored) }
    }

    @Test("A number is claimed once, by a session that is known")
    func claims() async throws {
        let secrets = try await kept()
        #expect(try await open(head(secrets), at: sessions) == nil)
        _ = try sessions.claim(head(secrets))
        #expect(throws: PayloadRefusal.repeated) { try sessions.claim(head(secrets)) }
        #expect(throws: PayloadRefusal.unknownSession) { try sessions.claim(head(try self.secrets())) }
        #expect(try await open(head(try self.secrets()), at: sessions) == .unknownSession)
    }

    @Test("All messages of a session open and are answered, whether what derives their keys was kept or is made anew")
    func keptKeys() async throws {
        let secrets = try await kept()
        for number: UInt64 in 1...6 {
            if number == 4 { try await sessions.look() }
            let head = head(secrets, number)
            var sealer = FrameSealer(head, key: secrets.request, bound: [])
            let request = try sealer.finish(with: [1, 2, 3])
            var opener = try await sessions.opener(head, origin: Self.peer.origin)
            let opened = try opener.open(request.dropFirst(FrameHead.length))
            #expect(opened == [1, 2, 3])
            var replying = try sessions.claim(head)
            let reply = try replying.finish(with: [4, 5])
            sessions.end(head)
            var reading = FrameOpener(replying.head, key: secrets.reply, bound: head.binding)
            let answered = try reading.open(reply.dropFirst(FrameHead.length))
            #expect(answered == [4, 5])
            #expect(sessions.keptKeys == 1)
        }
        try await sessions.end(ofKey: key.kid)
        #expect(sessions.keptKeys == 0)
    }

    @Test(
        "What derives keys is kept for so many sessions and no more, and until the next look",
        .enabled(if: !TestDatabase.isPostgreSQL))
    func keptKeysLimit() async throws {
        for _ in 0..<PayloadSessions.keptKeysLimit + 1 { _ = try sessions.claim(head(try await kept())) }
        #expect(sessions.keptKeys == PayloadSessions.keptKeysLimit)
        // One without is answered as the others are.
        let last = try await kept()
        let request = head(last)
        var replying = try sessions.claim(request)
        let reply = try replying.finish(with: [4, 5])
        var reading = FrameOpener(replying.head, key: last.reply, bound: request.binding)
        let answered = try reading.open(reply.dropFirst(FrameHead.length))
        #expect(answered == [4, 5])
        #expect(sessions.keptKeys == PayloadSessions.keptKeysLimit)
        try await sessions.look()
        #expect(sessions.keptKeys == 0 && sessions.count == PayloadSessions.keptKeysLimit + 2)
    }

    @Test("Another node reads a session where nodes share a database, and an unsafe number is spent once among them")
    func nodes() async throws {
        let other = PayloadSessions(fixture.context, keys: PayloadKeys(fixture.context))
        let secrets = try await kept()
        guard TestDatabase.isPostgreSQL else {
            #expect(try await open(head(secrets), at: other) == .unknownSession)
            return
        }
        #expect(try await open(head(secrets), at: other) == nil)
        #expect(other.count == 1)
        try await sessions.spendOnce(head(secrets))
        await #expect(throws: PayloadRefusal.repeated) { try await other.spendOnce(head(secrets)) }
        try await other.spendOnce(head(secrets, 2))
    }

    @Test("A session ends with its key: here at once, at another node with its next look")
    func withdrawn() async throws {
        let other = PayloadSessions(fixture.context, keys: PayloadKeys(fixture.context))
        let secrets = try await kept()
        if TestDatabase.isPostgreSQL { #expect(try await open(head(secrets), at: other) == nil) }
        #expect(try await keys.withdraw(key.kid, noting: Self.note))
        #expect(try await !keys.withdraw(key.kid, noting: Self.note))
        try await sessions.end(ofKey: key.kid)
        #expect(try await open(head(secrets), at: sessions) == .unknownSession)
        try await other.look()
        #expect(other.count == 0)
        let more = try self.secrets()
        guard TestDatabase.isPostgreSQL else { return }
        let rows = try await fixture.database.run(.read("SELECT id FROM payload_sessions"))
        #expect(rows.isEmpty, "no number can be spent in it any more")
        await #expect(throws: PayloadRefusal.unknownKey) {
            try await sessions.keep(more, peer: Self.peer, kid: key.kid)
        }
    }

    @Test(
        "No node reads a session whose key is withdrawn, also where the node that withdrew it has ended nothing yet",
        .enabled(if: TestDatabase.isPostgreSQL))
    func withdrawnAlone() async throws {
        let secrets = try await kept()
        let (before, after) = (
            PayloadSessions(fixture.context, keys: keys), PayloadSessions(fixture.context, keys: keys)
        )
        #expect(try await open(head(secrets), at: before) == nil)
        #expect(try await keys.withdraw(key.kid, noting: Self.note))
        #expect(try await open(head(secrets), at: after) == .unknownSession)
        try await before.look()
        #expect(try await open(head(secrets), at: before) == .unknownSession)
    }

    @Test("In one process, too, a look ends the sessions of a key that was withdrawn elsewhere")
    func look() async throws {
        _ = try await kept()
        try await sessions.look()
        #expect(sessions.count == 1)
        #expect(try await PayloadKeys(fixture.context).withdraw(key.kid, noting: Self.note))
        try await sessions.look()
        #expect(sessions.count == 0)
    }

    @Test("What one node has used is not idle at the other, and what nobody has used is deleted")
    func idle() async throws {
        let other = PayloadSessions(fixture.context, keys: PayloadKeys(fixture.context))
        let secrets = try await kept()
        fixture.clock.advance(by: 500)
        _ = try sessions.claim(head(secrets))
        sessions.end(head(secrets))
        try await sessions.look()
        fixture.clock.advance(by: 500)
        #expect(try await open(head(secrets, 2), at: sessions) == nil)
        if TestDatabase.isPostgreSQL { #expect(try await open(head(secrets, 2), at: other) == nil) }
        fixture.clock.advance(by: 1000)
        try await sessions.purge()
        #expect(try await open(head(secrets, 3), at: sessions) == .unknownSession)
        guard TestDatabase.isPostgreSQL else { return }
        let rows = try await fixture.database.run(.read("SELECT id FROM payload_sessions"))
        #expect(rows.isEmpty)
    }

    @Test("There are as many sessions in memory as may be")
    func full() async throws {
        let small = PayloadSessions(fixture.context, keys: keys, limit: 2)
        for _ in 0..<2 { try await small.keep(try secrets(), peer: Self.peer, kid: key.kid) }
        let third = try secrets()
        if TestDatabase.isPostgreSQL {
            try await small.keep(third, peer: Self.peer, kid: key.kid)
        } else {
            await #expect(throws: PayloadRefusal.busy) { try await small.keep(third, peer: Self.peer, kid: key.kid) }
        }
        #expect(small.count == 2)
    }

    @Test("An operator is told of one key alone, and of one that ends in a month")
    func warnings() async throws {
        #expect(try await keys.warnings().count == 1)
        let now = fixture.clock.epochSeconds
        _ = try await keys.add(notBefore: now, notAfter: now + 31 * 86_400) { _ in Self.note }
        #expect(try await keys.warnings().isEmpty)
        fixture.clock.advance(by: 2 * 86_400)
        #expect(try await keys.warnings().count == 1)
    }

    @Test("A key is taken between its times, and deleted after its end")
    func times() async throws {
        let now = fixture.clock.epochSeconds
        let later = try await keys.add(notBefore: now + 100, notAfter: now + 200) { _ in Self.note }
        func isTaken() async throws -> Bool { try await keys.valid(for: later.kid).contains { $0.kid == later.kid } }
        #expect(try await !isTaken())
        fixture.clock.advance(by: 100)
        #expect(try await isTaken())
        fixture.clock.advance(by: 90_000)
        try await keys.purge()
        #expect(try await keys.list().map(\.kid) == [key.kid])
    }

    @Test("No stored key has the private half as it is, and one that was moved does not open")
    func sealed() async throws {
        let now = fixture.clock.epochSeconds
        let other = try await keys.add(notBefore: now, notAfter: now + 1000) { _ in Self.note }
        _ = try await fixture.database.run(
            SQLStatement(
                """
                UPDATE payload_keys SET sealed_key = (SELECT sealed_key FROM payload_keys WHERE kid = \(other.kid))
                WHERE kid = \(key.kid)
                """))
        await #expect(throws: EngineError.self) { try await PayloadKeys(fixture.context).valid(for: key.kid) }
    }
}
