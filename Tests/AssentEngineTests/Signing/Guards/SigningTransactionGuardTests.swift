import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import Logging
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("Transactions to sign: limits, claims and numbers")
struct SigningTransactionGuardTests {
    /// Gives single bytes from a list, and more of them as the system does.
    private final class ListedBytes: RandomSource {
        private let list: Locked<[UInt8]>

        init(_ list: UInt8...) { self.list = Locked(list) }

        func bytes(_ count: Int) -> [UInt8] {
            guard count == 1 else { return SystemRandom().bytes(count) }
            return list.withLock { $0.isEmpty ? [0] : [$0.removeFirst()] }
        }
    }

    @Test("A client that nobody answers is held up until its own user answers it, not another client or user")
    func unanswered() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.active()
        var limits = SigningLimits()
        (limits.perMinute, limits.openOfClient, limits.openOfUser) = (100, 100, 100)
        func create(_ client: String) async throws -> SigningTransactionRecord? {
            do {
                return try await fixture.documents.create(fixture.transaction(client: client), limits: limits)
            } catch let refusal as SigningRefusal where refusal.code == .rateLimited {
                return nil
            }
        }
        func deny(_ transaction: SigningTransactionRecord) async throws {
            _ = try await fixture.decisions.decide(
                fixture.decision(transaction, container, .denied), container: container,
                proof: fixture.proof(container.did), at: fixture.now)
        }
        var made: [SigningTransactionRecord] = []
        for _ in 0..<8 { made.append(try #require(try await create("shop"))) }
        #expect(try await create("shop") == nil)
        let (other, foreign) = (try #require(try await create("other")), try #require(try await create("third")))
        fixture.base.clock.advance(by: 1)
        try await deny(other)
        _ = try await fixture.base.database.run(
            SQLStatement(
                """
                UPDATE signing_transactions SET client_id = 'shop', user_id = \(fixture.base.ben.user.id),
                    decided_at = \(fixture.now) WHERE txn = \(foreign.txn.text)
                """, expecting: .exactly(1)))
        #expect(try await create("shop") == nil)
        try await deny(made[0])
        #expect(try await create("shop") != nil)
    }

    @Test("A transaction of an hour is approved also where its document comes from a node whose clock is behind")
    func nodeBehind() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        world.base.clock.advance(by: 100)
        var wish = world.wish()
        wish.lifetime = 3600
        let made = try await world.provider.parties.create(wish)
        world.base.clock.advance(by: -60)
        #expect(try await device.approve(made.txn, container).content.state == .approved)
        let bundle = try EvidenceBundle(
            reading: try await world.provider.evidence.bundle(made.txn.text, for: .client("shop")))
        let report = EvidenceVerification.report(on: bundle, trust: bundle.identities.first?.thumbprint)
        #expect(report.contradicted.isEmpty, "\(report.contradicted)")
    }

    @Test("A container that another node has blocked meanwhile claims nothing, and what is another's stays so")
    func claims() async throws {
        let fixture = try await SigningStoreFixture()
        let (container, other) = (try await fixture.active(), try await fixture.active())
        let transaction = try await fixture.pending()
        func set(_ change: SQL) async throws {
            _ = try await fixture.base.database.run(SQLStatement("UPDATE \(change)"))
        }
        func claim(_ container: SigningContainerRecord) async throws -> SigningErrorCode? {
            try await signingCode {
                try await fixture.documents.claim(
                    transaction.txn, for: container, proof: fixture.proof(container.did), at: fixture.now)
            }
        }
        // It has a user already.
        #expect(try await claim(container) == .transactionUnknown)
        try await set("signing_transactions SET user_id = NULL")
        for change: SQL in ["state = 'BLOCKED'", "state = 'SUSPECT'", "state = 'ACTIVE', expires_at = \(fixture.now)"] {
            try await set("signing_containers SET \(change)")
            #expect(try await claim(container) == .transactionUnknown, "\(change)")
        }
        try await set("signing_containers SET state = 'ACTIVE', expires_at = \(fixture.now + 60)")
        for _ in 0..<2 { #expect(try await claim(container) == nil) }
        #expect(try await claim(other) == .transactionUnknown)
        let known = try await fixture.documents.find(transaction.txn)
        #expect(known?.userID == fixture.user && known?.state == .pending)
        #expect(try await fixture.documents.open(other, limit: 20, at: fixture.now).isEmpty)
        #expect(try await fixture.documents.pending(container, at: fixture.now) == 1)
    }

    @Test("Each of the hundred numbers is as likely as the others, and has two digits")
    func numbers() async throws {
        let world = try await SigningWorld()
        func number(_ random: ListedBytes) async throws -> String? {
            let base = world.base.context
            let context = EngineContext(
                database: world.base.database, clock: world.base.clock, random: random, masterKey: base.masterKey,
                logger: base.logger)
            let provider = SigningProvider(context, settings: world.provider.settings)
            return try await provider.parties.create(world.wish("numbered")).matchNumber
        }
        #expect(try await number(ListedBytes(255, 200, 199)) == "99")
        #expect(try await number(ListedBytes(7)) == "07")
        #expect(try await number(ListedBytes(100)) == "00")
    }

    @Test("A device that has more to answer than a list holds hears so, and gets the oldest first")
    func list() async throws {
        let world = try await SigningWorld { settings in
            (settings.limits.openOfClient, settings.limits.openOfUser, settings.limits.unanswered) = (100, 100, 100)
        }
        let (device, container) = try await world.enrolled()
        var made: [SigningID] = []
        func list() async throws -> (txns: [SigningID], hasMore: Bool) {
            let list: TransactionList = try await device.askSealed(
                "transactions/list", container.did, ListBody(wait: 0))
            let trust = try await device.trust()
            return (try list.tickets.map { try trust.verified($0, as: Ticket.self).content.txn }, list.more)
        }
        for _ in 0..<20 {
            made.append(try await world.asked().txn)
            world.base.clock.advance(by: 1)
        }
        #expect(try await list() == (made, false))
        _ = try await world.asked()
        #expect(try await list() == (made, true))
    }

    @Test("What is too long as a whole is refused before the user is asked, although each part could be shown")
    func size() async throws {
        var long = SigningWorld.payment
        long.fields += (0..<14).map {
            SigningTemplate.Field(
                id: "f-\($0)", label: LocalizedText("Field \($0)"), type: .text, pointer: "/0/f-\($0)")
        }
        let world = try await SigningWorld { [long] in $0.templates["long"] = long }
        func code(_ length: Int) async throws -> String? {
            let text = String(repeating: "€", count: length)
            let more = (0..<14).map { ",\"f-\($0)\":\"\(text)\"" }.joined()
            let details = SigningWorld.details.replacing("}]", with: "\(more)}]")
            return try await refusal {
                _ = try await world.provider.parties.create(world.wish("long", details: details))
            }
        }
        #expect(try await code(100) == nil)
        #expect(try await code(200) == "invalid_request")
    }
}
