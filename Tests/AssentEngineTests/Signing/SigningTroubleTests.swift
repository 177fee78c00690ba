import AssentCore
import AssentSigning
import AssentSigningProtocol
import AssentStore
import AssentTesting
import AssentVault
import Foundation
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("Clocks, documents and databases that are not as they were")
struct SigningTroubleTests {
    private let pin = Secret("271828")
    private let new = Secret("839201")

    @Test(
        "A device whose clock is minutes or years off enrols, approves, changes its PIN and has good evidence",
        arguments: [-600.0, 600, -10 * 365.25 * 86400, 10 * 365.25 * 86400])
    func clocks(offset: TimeInterval) async throws {
        let world = try await SigningWorld.withPIN()
        let sdk = try SDKWorld(world, clock: ManualClock(world.base.clock.now.addingTimeInterval(offset)))
        let device = sdk.device()
        let container = try await sdk.enrolled(device, pin: pin)
        #expect(try await container.status().state == .active)
        let first = try await sdk.approve(container, on: device, pin: pin)
        let password = try #require(container.password(.signing))
        try await password.change(from: pin, to: new)
        await #expect(throws: SigningError(.wrongPassword)) { try await password.verify(pin) }
        // It may also jump while the device runs, in either direction.
        sdk.deviceClock.advance(by: -3 * offset)
        world.base.clock.advance(by: 86400)
        let second = try await sdk.approve(container, on: sdk.device(), pin: new)
        for receipt in [first, second] {
            #expect(receipt.effect == .approve)
            let report = try await sdk.report(receipt.transactionID)
            #expect(report.exitStatus == 0, "\(report.contradicted)")
        }
        _ = try await world.asked()
        let id = try #require(await container.transactionIDs().last)
        #expect(try await device.retrieveTransactionInfo(id).transaction().setStatus("deny").effect == .deny)
    }

    @Test("A text that the server changes between fetch and decision is not what is approved")
    func changedText() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let (txn, _) = try await world.asked()
        let document = try await device.fetch(txn, container)
        let body = try await device.signed(try device.decision(document, status: "accept"), label: "payments")
        // Another payee, as well signed as the first one.
        let text = String(decoding: document.content.encoded(), as: UTF8.self)
        let changed = try TransactionDocument(plaintext: Array(text.replacing("Bob", with: "Eve").utf8))
        let forged = try await world.provider.keys.sign(changed)
        _ = try await world.base.database.run(
            SQLStatement(
                """
                UPDATE signing_documents SET txd = \(forged), txh = \(SigningHash.document(forged).text)
                WHERE txn = \(txn.text)
                """))
        #expect(try await device.fetch(txn, container).content.body.fields.map(\.display).contains("Eve"))
        #expect(try await refusal { _ = try await device.decide(body, container) } == "hash_mismatch")
        #expect(try await world.state(txn) == "PENDING")
        // Put back, the same bytes count: the hash was what was wrong.
        let first = document.compact
        _ = try await world.base.database.run(
            SQLStatement(
                """
                UPDATE signing_documents SET txd = \(first), txh = \(SigningHash.document(first).text)
                WHERE txn = \(txn.text)
                """))
        let receipt = try await device.decide(body, container)
        #expect(receipt.content.state == .approved && receipt.content.document == .document(document.compact))
    }

    @Test("What a database says of its fault reaches neither the device nor the relying party")
    func silentFault() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let body = try await device.sealed(EmptyBody().encoded(), sender: container.did.text)
        let proof = try await device.proof(container.did, path: "status", body: body)
        let broken = InterruptedDatabase(world.base.database) { _ in
            throw StoreError(.statement, "the column sealed_k of Ana is damaged")
        }
        let context = try TransactionFixture.context(broken, clock: world.base.clock)
        let provider = SigningProvider(context, settings: world.provider.settings)
        let answer = await #expect(throws: SigningRefusal.self) {
            try await provider.door.answer(.status, proof: proof, body: Array(body.utf8), address: "192.0.2.1")
        }
        let client = await #expect(throws: SigningRefusal.self) { try await provider.parties.create(world.wish()) }
        let unknown = SigningRefusal(answering: StoreError(.corrupt, "the column sealed_k of Ana is damaged"))
        for refusal in [answer, client, unknown] {
            #expect(refusal?.code == .unavailable && refusal?.detail == SigningRefusal(.unavailable).detail)
        }
    }

    @Test("The same decision many times at once is one decision, and each caller gets its receipt")
    func parallel() async throws {
        for (template, hasPIN) in [("payment", false), ("numbered", false), ("payment", true), ("numbered", true)] {
            let world = try await hasPIN ? SigningWorld.withPIN() : SigningWorld()
            let device: TestDevice
            let container: TestDevice.Enrolled
            var unl: SigningID?
            if hasPIN {
                let enrolled = try await world.enrolledWithPIN()
                (device, container) = (enrolled.device, enrolled.container)
                let opened = try #require(try await enrolled.pin.open("2580"))
                device.keys.withLock { $0["payments"] = opened.key }
                unl = try opened.unl
            } else {
                (device, container) = try await world.enrolled()
            }
            let (txn, number) = try await world.asked(template)
            let document = try await device.fetch(txn, container)
            let decision = try device.decision(document, status: "accept", number: number, unl: unl)
            let body = try await device.signed(decision, label: "payments")
            let receipts = try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<20 { group.addTask { try await device.decide(body, container).compact } }
                return try await group.reduce(into: Set()) { $0.insert($1) }
            }
            #expect(receipts.count == 1)
            // One note of success, and none of a refusal.
            let notes = try await world.base.database.run(
                .read("SELECT outcome FROM audit WHERE event = 'signing.decide'"))
            #expect(try notes.map { try $0.text("outcome") } == ["success"])
        }
    }

    // MARK: A database of yesterday

    /// Those that refer to others come before them.
    private static let tables = [
        "signing_slots", "signing_confirms", "signing_transactions", "signing_documents", "signing_decisions",
        "signing_proofs", "signing_keys", "signing_containers", "signing_enrolments", "signing_invites",
    ]

    /// Keeps what the tables have in tables beside them.
    private func backUp(_ world: SigningWorld) async throws {
        for table in Self.tables {
            _ = try await world.base.database.run(
                SQLStatement("CREATE TABLE \(SQL(verbatim: "kept_" + table)) AS SELECT * FROM \(SQL(verbatim: table))"))
        }
    }

    /// Puts that back, and fences it, as an operator does before the first start.
    private func restore(_ world: SigningWorld) async throws {
        for table in Self.tables {
            _ = try await world.base.database.run(SQLStatement("DELETE FROM \(SQL(verbatim: table))"))
        }
        for table in Self.tables.reversed() {
            _ = try await world.base.database.run(
                SQLStatement("INSERT INTO \(SQL(verbatim: table)) SELECT * FROM \(SQL(verbatim: "kept_" + table))"))
        }
        _ = try await RestoredDatabase(world.base.context).fence(keepingSessions: true)
        world.base.clock.advance(by: 1)
    }

    @Test("With the database of yesterday a device approves again after its user has authenticated, and is no suspect")
    func restored() async throws {
        let world = try await SigningWorld.withPIN()
        let sdk = try SDKWorld(world)
        let device = sdk.device()
        let container = try await sdk.enrolled(device, pin: pin)
        let before = try await sdk.approve(container, on: device, pin: pin)
        let open = try await world.asked()
        try await backUp(world)
        for _ in 0..<3 { _ = try await sdk.approve(container, on: device, pin: pin) }
        try await restore(world)
        world.base.clock.advance(by: 600)

        let password = try #require(container.password(.signing))
        #expect(try await container.status().state == .active)
        #expect(try await world.state(open.txn) == "FAILED")
        // The server's own signature on a later evaluation says who went back; the fence has locked the slot besides.
        await #expect(throws: SigningError(.serverRolledBack)) { try await password.verify(pin) }
        let again = SigningCaller(try await TransactionFixture.signIn("ana", world.base.context))
        #expect(try await world.provider.slots.act(again, did: container.id, .unlock, on: "signing") == .active)
        let after = try await sdk.approve(container, on: device, pin: pin)
        #expect(try await container.status().state == .active)
        for receipt in [before, after] {
            let report = try await sdk.report(receipt.transactionID)
            #expect(report.exitStatus == 0, "\(report.contradicted)")
        }
        let slot = try #require(await container.status().passwords.first)
        #expect(slot.tries == 5 && slot.state == .open)
    }

    @Test("A device that has deleted its proof of yesterday's server gains no guess by it")
    func restoredThief() async throws {
        let (world, device, container, pin) = try await SigningWorld.withEnrolledPIN()
        for _ in 0..<3 { #expect(try await pin.unlock("0000") == nil) }
        try await backUp(world)
        for _ in 0..<2 { #expect(try await pin.unlock("0000") == nil) }
        #expect(try await refusal { _ = try await pin.unlock("0000") } == "locked")
        try await restore(world)
        pin.kept.withLock { $0.last = nil }
        // Two tries are forgotten, but locked is locked.
        world.base.clock.advance(by: 60)
        #expect(try await refusal { _ = try await pin.unlock("0000") } != nil)
        let slot = try #require(await device.status(container.did).slots.first)
        #expect(slot.state == .locked)
    }

    @Test("A confirmation from before a restore forgives no guess that has its number since, and the right PIN does")
    func restoredConfirmation() async throws {
        let (world, device, container, pin) = try await SigningWorld.withEnrolledPIN()
        try await backUp(world)
        // Evidence has both texts, and the thief has the evidence.
        let opened = try #require(try await pin.open("2580"))
        let lost = try await pin.confirmation(opened)
        try await restore(world)
        world.base.clock.advance(by: 120)
        let again = SigningCaller(try await TransactionFixture.signIn("ana", world.base.context))
        #expect(try await world.provider.slots.act(again, did: container.did.text, .unlock, on: "signing") == .active)
        pin.kept.withLock { $0.last = nil }
        #expect(try await pin.unlock("0000") == nil)
        #expect(try await refusal { _ = try await device.call("slots/confirm", container.did, lost) } == nil)
        let guessed = try #require(await device.status(container.did).slots.first)
        #expect(guessed.tries == 4 && guessed.spare == 19)
        let taken = try await world.base.database.run(.read("SELECT taken_by FROM signing_confirms"))
        #expect(try taken.map { try $0.text("taken_by") } == ["restored"])
        _ = try #require(try await pin.open("2580"))
        let right = try #require(await device.status(container.did).slots.first)
        #expect(right.tries == 5 && right.spare == 20)
    }
}
