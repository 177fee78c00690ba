import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Transactions and clocks that differ")
struct TransactionClockTests {
    @Test("What was made up to a minute ahead of this clock is used", arguments: [(-60.0, true), (-61, false)])
    func made(seconds: Double, granted: Bool) async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved()
        fixture.clock.advance(by: seconds)
        #expect(try await fixture.transactions.take(id: id, binding: try fixture.binding()).isTaken == granted)
        #expect(try await fixture.state(id) == (granted ? "TAKEN" : "COMPLETED"))
    }

    @Test(
        "An approval from a time well ahead of this clock grants nothing, though the transaction is older than that",
        arguments: [(-60.0, true), (-61, false)])
    func approved(seconds: Double, granted: Bool) async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.create().id
        fixture.clock.advance(by: 100)
        try await fixture.approve(id)
        fixture.clock.advance(by: seconds)
        #expect(try await fixture.transactions.take(id: id, binding: try fixture.binding()).isTaken == granted)
        #expect(try await fixture.state(id) == (granted ? "TAKEN" : "COMPLETED"))
    }

    @Test(
        "A request that is repeated after the clock was set back gets a transaction that it can use",
        arguments: [(-60.0, true), (-61, false)])
    func repeated(seconds: Double, isSame: Bool) async throws {
        let fixture = try await TransactionFixture()
        func create() async throws -> String {
            try await fixture.transactions.create(
                binding: try fixture.binding(), url: "https://api.bank.example:443/transfers?kind=sepa", display: [],
                ttl: 180
            ).id
        }
        let first = try await create()
        fixture.clock.advance(by: seconds)
        let second = try await create()
        #expect((second == first) == isSame)
        try await fixture.approve(second)
        #expect(try await fixture.transactions.take(id: second, binding: try fixture.binding()).isTaken)
    }

    @Test("Whatever was seen expired stays so when the clock is set back, and what had ended otherwise stays that")
    func ends() async throws {
        let fixture = try await TransactionFixture()
        let transactions = fixture.transactions
        let created = try await fixture.create().id
        let running = try await fixture.create().id
        _ = try await transactions.start(id: running, session: fixture.ana)
        let declined = try await fixture.create().id
        #expect(try await transactions.decline(id: declined, session: fixture.ana))
        let taken = try await fixture.approved()
        #expect(try await transactions.take(id: taken, binding: try fixture.binding()).isTaken)
        fixture.clock.advance(by: 181)
        for _ in 0..<2 {
            for id in [created, declined, taken] {
                await #expect(throws: EngineError.transactionUnreadable) {
                    try await transactions.start(id: id, session: fixture.ana)
                }
            }
            await #expect(throws: EngineError.transactionUnreadable) {
                try await transactions.check(id: running, session: fixture.ana)
            }
            #expect(try await fixture.state(created) == "EXPIRED")
            #expect(try await fixture.state(running) == "EXPIRED")
            #expect(try await fixture.state(declined) == "DECLINED")
            #expect(try await fixture.state(taken) == "TAKEN")
            fixture.clock.advance(by: -100)
        }
    }

    @Test("What was taken is known for a day after its time, to the second")
    func retention() async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved()
        #expect(try await fixture.transactions.take(id: id, binding: try fixture.binding()).isTaken)
        fixture.clock.advance(by: Double(180 + Transactions.takenRetention - 1))
        #expect(try await fixture.transactions.purge() == 0)
        fixture.clock.advance(by: 1)
        #expect(try await fixture.transactions.purge() == 1)
    }

    @Test("Nothing is said to have become of a request whose transaction was not taken", arguments: [false, true])
    func untaken(isApproved: Bool) async throws {
        let fixture = try await TransactionFixture()
        let id = isApproved ? try await fixture.approved() : try await fixture.create().id
        for outcome in [UpstreamOutcome.unknown, .notForwarded, .answered(status: 201)] {
            try await fixture.transactions.recordOutcome(id: id, outcome)
        }
        #expect(try await !fixture.transactions.recordForwarding(id: id))
        let rows = try await fixture.database.run(
            .read("SELECT outcome, upstream_status, forwarded_at FROM transactions WHERE id = \(id)"))
        let row = try #require(rows.first)
        #expect(try row.optionalText("outcome") == nil && row.optionalInteger("upstream_status") == nil)
        #expect(try row.optionalInteger("forwarded_at") == nil)
        #expect(try await fixture.audited(.transactionOutcome, id).isEmpty)
    }

    @Test("What is said to be unsent while it is taken for lost has one record, not two")
    func unsentMeanwhile() async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved()
        #expect(try await fixture.transactions.take(id: id, binding: try fixture.binding()).isTaken)
        fixture.clock.advance(by: 600)
        let database = InterruptedDatabase(fixture.database) { [transactions = fixture.transactions] statement in
            guard !statement.isRead else { return false }
            try await transactions.recordOutcome(id: id, .notForwarded)
            return true
        }
        let other = Transactions(try TransactionFixture.context(database, clock: fixture.clock, seed: 2))
        #expect(try await other.recordLostOutcomes() == 0)
        #expect(database.wasInterrupted)
        #expect(try await fixture.audited(.transactionOutcome, id) == ["failed -"])
    }
}
