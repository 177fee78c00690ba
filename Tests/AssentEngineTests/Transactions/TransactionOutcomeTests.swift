import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("What became of a taken transaction")
struct TransactionOutcomeTests {
    @Test("It is told from taken over forwarded to the answer, and only to its own session")
    func outcomes() async throws {
        let fixture = try await TransactionFixture()
        let transactions = fixture.transactions
        let id = try await fixture.approved()
        #expect(try await transactions.outcome(id: id, session: fixture.ana)?.outcome == nil)
        #expect(try await !transactions.recordForwarding(id: id), "nothing may be sent before the take")
        _ = try await transactions.take(id: id, binding: try fixture.binding())
        #expect(try await fixture.outcome(id) == .taken)
        #expect(try await transactions.recordForwarding(id: id))
        #expect(try await !transactions.recordForwarding(id: id), "a second sender must be told no")
        #expect(try await fixture.outcome(id) == .forwarded)
        try await transactions.recordOutcome(id: id, .unknown)
        #expect(try await fixture.outcome(id) == .unknown)
        try await transactions.recordOutcome(id: id, .answered(status: 201))
        try await transactions.recordOutcome(id: id, .unknown)
        try await transactions.recordOutcome(id: id, .answered(status: 500))
        #expect(try await fixture.outcome(id) == .answered(status: 201))
        #expect(try await fixture.audited(.transactionOutcome, id).sorted() == ["failed -", "success -"])
        #expect(try await transactions.outcome(id: id, session: fixture.anaElsewhere) == nil)
        #expect(try await transactions.outcome(id: id, session: fixture.ben) == nil)
    }

    @Test("An outcome that nobody has recorded in ten minutes is unknown, with one record; a late answer replaces it")
    func lost() async throws {
        let fixture = try await TransactionFixture()
        let transactions = fixture.transactions
        let ids = [try await fixture.approved(), try await fixture.approved(), try await fixture.approved()]
        for id in ids { _ = try await transactions.take(id: id, binding: try fixture.binding()) }
        let (lost, answered, unsent) = (ids[0], ids[1], ids[2])
        #expect(try await transactions.recordForwarding(id: lost))
        #expect(try await transactions.recordForwarding(id: answered))
        try await transactions.recordOutcome(id: answered, .answered(status: 201))
        fixture.clock.advance(by: 599)
        #expect(try await transactions.recordLostOutcomes() == 0)
        #expect(try await fixture.outcome(lost) == .forwarded)
        fixture.clock.advance(by: 1)
        #expect(try await fixture.outcome(unsent) == .taken)
        #expect(try await transactions.recordLostOutcomes() == 2)
        #expect(try await transactions.recordLostOutcomes() == 0)
        #expect(try await fixture.outcome(lost) == .unknown)
        #expect(try await fixture.outcome(answered) == .answered(status: 201))
        #expect(try await fixture.outcome(unsent) == .notForwarded)
        let records = try await AuditLog(fixture.context).records(transactionID: lost)
        let note = try #require(records.last)
        #expect(note.event == .transactionOutcome && note.outcome == .failed && note.userID == fixture.ana.user.id)
        #expect(note.detail["outcome"] == ["state": "unknown"])
        try await transactions.recordOutcome(id: lost, .answered(status: 200))
        #expect(try await fixture.outcome(lost) == .answered(status: 200))
        #expect(try await fixture.audited(.transactionOutcome, lost).sorted() == ["failed -", "success -"])
    }

    @Test("A request that was taken ten minutes ago and never forwarded is not forwarded later, and one record says so")
    func neverForwarded() async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved()
        guard case .taken(let taken) = try await fixture.transactions.take(id: id, binding: try fixture.binding())
        else {
            Issue.record("it must be taken")
            return
        }
        fixture.clock.advance(by: 600)
        #expect(try await fixture.transactions.recordLostOutcomes() == 1)
        let late = await fixture.transactions.forwarding(taken) {
            Issue.record("nothing may be sent")
            return ((), UpstreamOutcome.unknown)
        }
        guard case .sentBefore = late else {
            Issue.record("its time is over")
            return
        }
        try await fixture.transactions.recordOutcome(id: id, .unknown)
        #expect(try await fixture.outcome(id) == .notForwarded)
        #expect(try await fixture.audited(.transactionOutcome, id) == ["failed -"])
        let note = try await AuditLog(fixture.context).records(transactionID: id).last
        #expect(note?.detail["outcome"] == ["state": "notForwarded"] && note?.userID == fixture.ana.user.id)
    }

    @Test("What an enforcement point over REST has taken stays taken: what it does with that is not known here")
    func takenOverREST() async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved()
        _ = try await fixture.database.run(
            SQLStatement("UPDATE transactions SET kind = 'POLICY' WHERE id = \(id)"))
        _ = try await fixture.transactions.take(id: id, binding: try fixture.binding())
        fixture.clock.advance(by: 3600)
        #expect(try await fixture.transactions.recordLostOutcomes() == 0)
        #expect(try await fixture.outcome(id) == .taken)
    }

    @Test("A request that is forwarded while it is taken for lost is forwarded, and no record says otherwise")
    func forwardedMeanwhile() async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved()
        _ = try await fixture.transactions.take(id: id, binding: try fixture.binding())
        fixture.clock.advance(by: 600)
        let database = InterruptedDatabase(fixture.database) { [transactions = fixture.transactions] statement in
            guard !statement.isRead else { return false }
            let isFirst = try await transactions.recordForwarding(id: id)
            #expect(isFirst)
            return true
        }
        let other = Transactions(try TransactionFixture.context(database, clock: fixture.clock, seed: 2))
        #expect(try await other.recordLostOutcomes() == 0)
        #expect(database.wasInterrupted)
        #expect(try await fixture.outcome(id) == .forwarded)
        #expect(try await fixture.audited(.transactionOutcome, id).isEmpty)
    }

    @Test("An answer that is recorded while an outcome is taken for lost stands, and no record says otherwise")
    func answeredMeanwhile() async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved()
        _ = try await fixture.transactions.take(id: id, binding: try fixture.binding())
        #expect(try await fixture.transactions.recordForwarding(id: id))
        fixture.clock.advance(by: 600)
        let database = InterruptedDatabase(fixture.database) { [transactions = fixture.transactions] statement in
            guard !statement.isRead else { return false }
            try await transactions.recordOutcome(id: id, .answered(status: 201))
            return true
        }
        let other = Transactions(try TransactionFixture.context(database, clock: fixture.clock, seed: 2))
        #expect(try await other.recordLostOutcomes() == 0)
        #expect(database.wasInterrupted)
        #expect(try await fixture.outcome(id) == .answered(status: 201))
        #expect(try await fixture.audited(.transactionOutcome, id) == ["success -"])
    }

    @Test("That nobody knows an outcome is written once, however often it is said")
    func unknownOnce() async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved()
        _ = try await fixture.transactions.take(id: id, binding: try fixture.binding())
        #expect(try await fixture.transactions.recordForwarding(id: id))
        for _ in 1...3 {
            try await fixture.transactions.recordOutcome(id: id, .unknown)
            fixture.clock.advance(by: 1)
        }
        #expect(try await fixture.outcome(id) == .unknown)
        #expect(try await fixture.audited(.transactionOutcome, id) == ["failed -"])
        try await fixture.transactions.recordOutcome(id: id, .answered(status: 201))
        #expect(try await fixture.audited(.transactionOutcome, id).sorted() == ["failed -", "success -"])
    }

    @Test("A repeat of the same request is told what is known, and leaves one record")
    func repeated() async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved()
        _ = try await fixture.transactions.take(id: id, binding: try fixture.binding())
        _ = try await fixture.transactions.recordForwarding(id: id)
        try await fixture.transactions.recordOutcome(id: id, .notForwarded)
        guard
            case .alreadyTaken(let record) = try await fixture.transactions.take(id: id, binding: try fixture.binding())
        else {
            Issue.record("the same binding must be answered with what is known")
            return
        }
        #expect(record.outcome == .notForwarded)
        #expect(record.outcome?.json == ["state": "notForwarded"])
        #expect(try await fixture.audited(.transactionTake, id).sorted() == ["refused taken", "success -"])
    }
}

extension TransactionFixture {
    fileprivate func outcome(_ id: String) async throws -> UpstreamOutcome? {
        try await transactions.outcome(id: id, session: ana)?.outcome
    }
}
