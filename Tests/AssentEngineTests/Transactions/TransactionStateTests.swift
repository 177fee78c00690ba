import AssentCore
import AssentEngine
import AssentStore
import AssentTesting
import Testing

@Suite("A transaction's states")
struct TransactionStateTests {
    enum Operation: String, CaseIterable { case start, check, complete, decline, take }

    typealias State = TransactionRecord.State

    /// What each operation does in each state; what is not named is refused and changes nothing.
    static let allowed: [State: [Operation: State]] = [
        .created: [.start: .inProgress, .decline: .declined],
        .inProgress: [.check: .inProgress, .complete: .completed, .decline: .declined],
        .completed: [.take: .taken],
    ]

    @Test(
        "Every operation in every state does what the table says, and else nothing", arguments: State.allCases,
        Operation.allCases)
    func table(state: State, operation: Operation) async throws {
        let fixture = try await TransactionFixture()
        let record = try await fixture.create()
        let approval = try await fixture.transactions.start(id: record.id, session: fixture.ana)
        try await fixture.force(record.id, state)

        let succeeded: Bool
        switch operation {
        case .start:
            succeeded = await fixture.succeeds {
                try await fixture.transactions.start(id: record.id, session: fixture.ana)
            }
        case .check:
            succeeded = await fixture.succeeds {
                try await fixture.transactions.check(id: record.id, session: fixture.ana)
            }
        case .complete:
            succeeded = await fixture.succeeds {
                try await fixture.database.run(fixture.transactions.completion(of: approval, session: fixture.ana))
            }
        case .decline: succeeded = try await fixture.transactions.decline(id: record.id, session: fixture.ana)
        case .take:
            succeeded = try await fixture.transactions.take(id: record.id, binding: try fixture.binding()).isTaken
        }

        let expected = Self.allowed[state]?[operation]
        #expect(succeeded == (expected != nil))
        #expect(try await fixture.state(record.id) == (expected ?? state).rawValue)
    }

    @Test("A start that is refused says the same whatever the reason, and the audit log says the reason")
    func refusedStart() async throws {
        let fixture = try await TransactionFixture()
        let refused = EngineError.transactionUnreadable
        let started = try await fixture.approved()
        let foreign = try await fixture.create()
        let old = try await fixture.create()
        await #expect(throws: refused) { try await fixture.transactions.start(id: started, session: fixture.ana) }
        await #expect(throws: refused) { try await fixture.transactions.start(id: foreign.id, session: fixture.ben) }
        await #expect(throws: refused) {
            try await fixture.transactions.start(id: foreign.id, session: fixture.anaElsewhere)
        }
        await #expect(throws: refused) { try await fixture.transactions.start(id: "nonsense", session: fixture.ana) }
        fixture.clock.advance(by: 181)
        await #expect(throws: refused) { try await fixture.transactions.start(id: old.id, session: fixture.ana) }

        #expect(try await fixture.audited(.transactionStart, started).sorted() == ["refused state", "success -"])
        #expect(
            try await Set(fixture.audited(.transactionStart, foreign.id)) == ["refused subject", "refused session"])
        #expect(try await fixture.audited(.transactionStart, old.id) == ["refused expired"])
        #expect(try await fixture.state(foreign.id) == "CREATED")
    }

    @Test("The approval carries the journey, what is bound and what is shown")
    func approval() async throws {
        let fixture = try await TransactionFixture()
        let record = try await fixture.create()
        let approval = try await fixture.transactions.start(id: record.id, session: fixture.ana)
        #expect(approval.journey == "Confirm")
        #expect(approval.expiresAt == fixture.clock.epochSeconds + 180)
        #expect(approval.id == record.id)
        #expect(approval.method == "POST")
        #expect(approval.resource == "https://api.bank.example:443/transfers?kind=sepa")
        #expect(approval.contentType == "application/json")
        #expect(approval.bodySHA256 == "dsdOW4kZcjATaqC4WPfEtLqJ7KsyhBV0FSVrYJRhhBU")
        #expect(approval.display == [DisplayField(label: "Amount", value: "200.00 EUR")])
        #expect(try await fixture.transactions.check(id: record.id, session: fixture.ana) == approval)
    }

    @Test("What is not bound is not told")
    func unbound() async throws {
        let fixture = try await TransactionFixture()
        let policy = try TransactionFixture.policy(bind: [], display: [])
        let record = try await fixture.transactions.create(
            binding: try fixture.binding(policy: policy, maker: .caller("p")),
            url: "https://api.bank.example:443/transfers",
            display: [], ttl: 180)
        let approval = record.approval
        #expect(approval.method == nil && approval.contentType == nil && approval.bodySHA256 == nil)
        #expect(approval.resource == "https://api.bank.example:443/transfers" && approval.display.isEmpty)
    }

    @Test("Of parallel starts one makes it IN_PROGRESS")
    func parallelStart() async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.create().id
        let started = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    await fixture.succeeds { try await fixture.transactions.start(id: id, session: fixture.ana) }
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(started == 1)
        #expect(try await fixture.audited(.transactionStart, id).filter { $0 == "success -" }.count == 1)
    }

    @Test(
        "A session that has ended, or whose user is shut out, neither starts nor completes", arguments: [true, false])
    func endedSession(endsSession: Bool) async throws {
        let fixture = try await TransactionFixture()
        let waiting = try await fixture.create()
        let running = try await fixture.create()
        let approval = try await fixture.transactions.start(id: running.id, session: fixture.ana)
        if endsSession {
            _ = try await Sessions(fixture.context).end(id: fixture.ana.id)
        } else {
            try await Users(fixture.context).setActive(false, userID: fixture.ana.user.id)
        }
        await #expect(throws: EngineError.self) {
            try await fixture.transactions.start(id: waiting.id, session: fixture.ana)
        }
        await #expect(throws: EngineError.self) {
            try await fixture.transactions.check(id: running.id, session: fixture.ana)
        }
        await #expect(throws: StoreError(.unexpectedCount, "")) {
            try await fixture.database.run(fixture.transactions.completion(of: approval, session: fixture.ana))
        }
        await #expect(throws: EngineError.sessionRequired) { try await fixture.create() }
        #expect(try await fixture.audited(.transactionStart, waiting.id) == ["refused sessionEnded"])
        #expect(try await fixture.audited(.transactionComplete, running.id).isEmpty)
    }

    @Test("What was asked for by a token whose grant has ended neither starts nor completes, while the session goes on")
    func endedGrant() async throws {
        let fixture = try await TransactionFixture()
        try await fixture.giveGrant("g1")
        let binding = try fixture.binding(grantID: "g1")
        let waiting = try await fixture.create(binding)
        let running = try await fixture.create(binding)
        let approval = try await fixture.transactions.start(id: running.id, session: fixture.ana)
        _ = try await fixture.database.run(
            SQLStatement("UPDATE grants SET revoked_at = 1 WHERE id = 'g1'", expecting: .exactly(1)))
        await #expect(throws: EngineError.transactionUnreadable) {
            try await fixture.transactions.start(id: waiting.id, session: fixture.ana)
        }
        await #expect(throws: EngineError.transactionUnreadable) {
            try await fixture.transactions.check(id: running.id, session: fixture.ana)
        }
        await #expect(throws: StoreError(.unexpectedCount, "")) {
            try await fixture.database.run(fixture.transactions.completion(of: approval, session: fixture.ana))
        }
        #expect(try await fixture.audited(.transactionStart, waiting.id) == ["refused sessionEnded"])
        #expect(try await fixture.state(running.id) == "IN_PROGRESS")
        // The control: the session itself.
        _ = try await fixture.approved()
    }

    @Test("Completion fails once the time is over, and leaves no audit record behind")
    func lateCompletion() async throws {
        let fixture = try await TransactionFixture()
        let record = try await fixture.create()
        let approval = try await fixture.transactions.start(id: record.id, session: fixture.ana)
        fixture.clock.advance(by: 180)
        await #expect(throws: StoreError(.unexpectedCount, "")) {
            try await fixture.database.run(fixture.transactions.completion(of: approval, session: fixture.ana))
        }
        #expect(try await fixture.audited(.transactionComplete, record.id).isEmpty)
        #expect(try await fixture.state(record.id) == "IN_PROGRESS")
    }

    @Test("A later transaction leaves the earlier ones valid, up to the limit of the window")
    func creationLimit() async throws {
        let fixture = try await TransactionFixture(limits: TransactionLimits(creations: 3, window: 60))
        let first = try await fixture.create()
        _ = try await fixture.create()
        _ = try await fixture.create()
        await #expect(throws: EngineError(.tooManyRequests)) {
            try await fixture.create()
        }
        _ = try await fixture.create(try fixture.binding(session: fixture.anaElsewhere))
        try await fixture.approve(first.id)
        #expect(try await fixture.transactions.take(id: first.id, binding: try fixture.binding()).isTaken)
        fixture.clock.advance(by: 60)
        _ = try await fixture.create()
    }
}

extension TransactionFixture {
    func succeeds<Value>(_ body: () async throws -> Value) async -> Bool {
        do {
            _ = try await body()
            return true
        } catch {
            return false
        }
    }

    func force(_ id: String, _ state: TransactionRecord.State) async throws {
        _ = try await database.run(
            SQLStatement(
                "UPDATE transactions SET state = \(state.rawValue), completed_at = created_at WHERE id = \(id)",
                expecting: .exactly(1)))
    }
}
