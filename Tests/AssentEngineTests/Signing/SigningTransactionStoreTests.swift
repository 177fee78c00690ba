import AssentSigningProtocol
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Transactions to sign, as statements")
struct SigningTransactionStoreTests {
    @Test("A repeated request gets the same transaction; another one under its key is refused")
    func idempotency() async throws {
        let fixture = try await SigningStoreFixture()
        let key = SigningTransactionRecord.Idempotency(key: "1", request: "a")
        let first = try await fixture.documents.create(
            fixture.transaction(idempotency: key), limits: SigningLimits())
        let again = try await fixture.documents.create(
            fixture.transaction(idempotency: key), limits: SigningLimits())
        #expect(again == first)
        let other = SigningTransactionRecord.Idempotency(key: "1", request: "b")
        #expect(
            try await signingCode {
                _ = try await fixture.documents.create(
                    fixture.transaction(idempotency: other), limits: SigningLimits())
            } == .invalidRequest)
        let foreign = try await fixture.documents.create(
            fixture.transaction(client: "other", idempotency: key), limits: SigningLimits())
        #expect(foreign.txn != first.txn)
    }

    @Test("Of many repetitions at once there is one transaction")
    func idempotencyRace() async throws {
        let fixture = try await SigningStoreFixture()
        let key = SigningTransactionRecord.Idempotency(key: "1", request: "a")
        let made = try await withThrowingTaskGroup(of: SigningID.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    try await fixture.documents.create(
                        fixture.transaction(idempotency: key), limits: SigningLimits()
                    ).txn
                }
            }
            return try await group.reduce(into: Set<SigningID>()) { $0.insert($1) }
        }
        #expect(made.count == 1)
    }

    @Test("A client has five open transactions of a user, another client has its own, a user has twenty")
    func openLimits() async throws {
        let fixture = try await SigningStoreFixture()
        var limits = SigningLimits()
        limits.perMinute = 100
        limits.unanswered = 100
        let made = try await Self.create(fixture, limits, tasks: 12) { _ in "shop" }
        #expect(made == 5)
        let others = try await Self.create(fixture, limits, tasks: 30) { "client \($0 / 4)" }
        #expect(others == 15)
        let own = try await fixture.documents.create(fixture.transaction(own: true), limits: limits)
        #expect(own.state == .pending)
        #expect(try await !fixture.audited(.signingCreate, own.txn).isEmpty)
    }

    private static func create(
        _ fixture: SigningStoreFixture, _ limits: SigningLimits, tasks: Int, client: @escaping @Sendable (Int) -> String
    ) async throws -> Int {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for task in 0..<tasks {
                group.addTask {
                    try await signingCode {
                        _ = try await fixture.documents.create(
                            fixture.transaction(client: client(task)), limits: limits)
                    } != .rateLimited
                }
            }
            return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
    }

    @Test("Five in a minute, and eight that nobody has answered, until one is answered")
    func rateLimits() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.active()
        func make() async throws -> SigningTransactionRecord? {
            do {
                return try await fixture.documents.create(fixture.transaction(), limits: SigningLimits())
            } catch let error as SigningRefusal where error.code == .rateLimited {
                return nil
            }
        }
        var made: [SigningTransactionRecord] = []
        for _ in 0..<4 { made.append(try #require(try await make())) }
        try await fixture.documents.cancel(made[0].txn, client: "shop", at: fixture.now)
        made.append(try #require(try await make()))
        try await fixture.documents.cancel(made[1].txn, client: "shop", at: fixture.now)
        #expect(try await make() == nil)
        fixture.base.clock.advance(by: 200)
        for _ in 0..<3 { made.append(try #require(try await make())) }
        fixture.base.clock.advance(by: 61)
        #expect(try await make() == nil)
        let last = try #require(made.last)
        _ = try await fixture.decisions.decide(
            fixture.decision(last, container, .denied), container: container, proof: fixture.proof(container.did),
            at: fixture.now)
        fixture.base.clock.advance(by: 1)
        #expect(try await make() != nil)
    }

    @Test("Eight that nobody has answered hold a client up for an hour")
    func hour() async throws {
        let fixture = try await SigningStoreFixture()
        var limits = SigningLimits()
        (limits.perMinute, limits.openOfClient) = (100, 100)
        func code() async throws -> SigningErrorCode? {
            try await signingCode { _ = try await fixture.documents.create(fixture.transaction(), limits: limits) }
        }
        for _ in 0..<8 { #expect(try await code() == nil) }
        #expect(try await code() == .rateLimited)
        fixture.base.clock.advance(by: 3599)
        #expect(try await code() == .rateLimited)
        fixture.base.clock.advance(by: 1)
        #expect(try await code() == nil)
    }

    @Test("A document is made once for each container of the user, and only while the transaction is open")
    func documents() async throws {
        let fixture = try await SigningStoreFixture()
        let (one, two) = (try await fixture.active(), try await fixture.active())
        let transaction = try await fixture.pending()
        let (store, now) = (fixture, fixture.now)
        func document(_ text: String) -> SigningDocument { SigningDocument(txd: text, txh: "hash of \(text)") }
        #expect(try await store.documents.deliver(document("a"), of: transaction, to: one, at: now).txd == "a")
        #expect(try await store.documents.deliver(document("b"), of: transaction, to: one, at: now).txd == "a")
        #expect(try await store.documents.deliver(document("c"), of: transaction, to: two, at: now).txd == "c")
        #expect(try await store.documents.open(one, limit: 20, at: now).map(\.txn) == [transaction.txn])
        #expect(try await store.documents.pending(one, at: now) == 1)
        let bound = try await store.documents.create(fixture.transaction(did: one.did), limits: SigningLimits())
        #expect(
            try await signingCode { _ = try await store.documents.deliver(document("d"), of: bound, to: two, at: now) }
                == .transactionUnknown)
        let late = transaction.expiresAt
        #expect(
            try await signingCode {
                _ = try await store.documents.deliver(document("e"), of: transaction, to: one, at: late)
            }
                == .transactionExpired)
        #expect(try await store.devices.change(one, .block, by: "admin", at: now))
        #expect(try await store.documents.open(one, limit: 20, at: now).isEmpty)
    }

    @Test("No document is made for keys that a renewal has replaced meanwhile: each later fetch would get it")
    func replacedKeys() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.active()
        let (transaction, next) = (try await fixture.pending(), "the next record" as SigningHash)
        _ = try await fixture.base.database.run(
            SQLStatement("UPDATE signing_containers SET record = \(next) WHERE did = \(container.did)"))
        let (made, now) = (SigningDocument(txd: "a", txh: "hash of a"), fixture.now)
        #expect(
            try await signingCode {
                _ = try await fixture.documents.deliver(made, of: transaction, to: container, at: now)
            } == .keyRetired)
        #expect(try await fixture.documents.document(of: transaction.txn, did: container.did) == nil)
        let renewed = try #require(try await fixture.devices.find(container.did))
        #expect(try await fixture.documents.deliver(made, of: transaction, to: renewed, at: now).txd == "a")
    }

    @Test("Who asked takes it back, and nobody else")
    func cancel() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.active()
        let transaction = try await fixture.pending(client: "shop")
        func cancel(_ client: String) async throws -> SigningErrorCode? {
            try await signingCode {
                try await fixture.documents.cancel(transaction.txn, client: client, at: fixture.now)
            }
        }
        #expect(try await cancel("other") == .transactionUnknown)
        #expect(try await cancel("shop") == nil)
        #expect(try await cancel("shop") == nil)
        let decision = fixture.decision(transaction, container)
        #expect(
            try await signingCode {
                _ = try await fixture.decisions.decide(
                    decision, container: container, proof: fixture.proof(container.did), at: fixture.now)
            } == .transactionCanceled)
        #expect(try await fixture.audited(.signingDecide, transaction.txn) == ["refused tx_canceled"])
        #expect(try await fixture.audited(.signingCancel, transaction.txn) == ["success -"])
    }

    @Test("Housekeeping writes that the time of a transaction is over")
    func expiry() async throws {
        let fixture = try await SigningStoreFixture()
        let transaction = try await fixture.pending()
        #expect(transaction.state(at: transaction.expiresAt - 1) == .pending)
        #expect(transaction.state(at: transaction.expiresAt) == .expired)
        fixture.base.clock.advance(by: 180)
        try await SigningHousekeeping.purge(fixture.base.context)
        #expect(try await fixture.documents.find(transaction.txn)?.state == .expired)
    }
}
