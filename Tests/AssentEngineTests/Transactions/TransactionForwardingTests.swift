import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Forwarding the request of a taken transaction")
struct TransactionForwardingTests {
    private static func taken(_ fixture: TransactionFixture) async throws -> TakenTransaction {
        let id = try await fixture.approved()
        guard case .taken(let taken) = try await fixture.transactions.take(id: id, binding: try fixture.binding())
        else { throw EngineError.internalFailure("the transaction was not taken") }
        return taken
    }

    private static func outcome(_ id: String, _ fixture: TransactionFixture) async throws -> UpstreamOutcome? {
        try await fixture.transactions.outcome(id: id, session: fixture.ana)?.outcome
    }

    @Test("Of 20 who forward at once one sends, and what became of it is on record")
    func once() async throws {
        let fixture = try await TransactionFixture()
        let taken = try await Self.taken(fixture)
        let sends = Locked(0)
        let results = await withTaskGroup(of: String?.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    let result = await fixture.transactions.forwarding(taken) {
                        sends.withLock { $0 += 1 }
                        return ("reply", UpstreamOutcome.answered(status: 201))
                    }
                    guard case .sent(let reply) = result else { return nil }
                    return reply
                }
            }
            return await group.reduce(into: [String?]()) { $0.append($1) }
        }
        #expect(results.compactMap(\.self) == ["reply"])
        #expect(sends.withLock { $0 } == 1)
        #expect(try await Self.outcome(taken.id, fixture) == .answered(status: 201))
    }

    @Test("What is known of a request is not overwritten, and what was unknown can become known")
    func knownOutcome() async throws {
        let fixture = try await TransactionFixture()
        let transactions = fixture.transactions
        let taken = try await Self.taken(fixture)
        try #require(try await transactions.recordForwarding(id: taken.id))
        try await transactions.recordOutcome(id: taken.id, .unknown)
        try await transactions.recordOutcome(id: taken.id, .answered(status: 201))
        for late in [UpstreamOutcome.unknown, .answered(status: 500), .notForwarded] {
            // Whether it is told or passed over: the record stays.
            try? await transactions.recordOutcome(id: taken.id, late)
            #expect(try await Self.outcome(taken.id, fixture) == .answered(status: 201))
        }
    }

    @Test("A client that goes away stops neither the sending nor the record of it")
    func cancelled() async throws {
        let fixture = try await TransactionFixture()
        let taken = try await Self.taken(fixture)
        let wasCancelled = Locked<Bool?>(nil)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await fixture.transactions.forwarding(taken) {
                wasCancelled.withLock { $0 = Task.isCancelled }
                return ((), UpstreamOutcome.unknown)
            }
        }
        guard case .sent = await task.value else {
            Issue.record("it must be sent")
            return
        }
        #expect(wasCancelled.withLock { $0 } == false)
        #expect(try await Self.outcome(taken.id, fixture) == .unknown)
    }

    @Test("Nothing is sent that could not be recorded before, or that was not taken")
    func unrecorded() async throws {
        let fixture = try await TransactionFixture()
        let taken = try await Self.taken(fixture)
        let approved = TakenTransaction(id: try await fixture.create().id)
        guard case .sentBefore = await fixture.transactions.forwarding(approved, send: Self.unexpected) else {
            Issue.record("a transaction that was not taken sends nothing")
            return
        }
        try await fixture.database.close()
        guard case .notRecorded = await fixture.transactions.forwarding(taken, send: Self.unexpected) else {
            Issue.record("without a record nothing may be sent")
            return
        }
    }

    @Test(
        "What was not sent for want of a record is on record as not forwarded, as soon as the database takes that",
        arguments: [0, 1, 3])
    func unsent(failures: Int) async throws {
        let fixture = try await TransactionFixture()
        let taken = try await Self.taken(fixture)
        let database = NodeDatabase(
            fixture.database, [.doneUnknown] + Array(repeating: .undone, count: failures))
        let transactions = Transactions(try TransactionFixture.context(database, clock: fixture.clock))
        guard case .notRecorded = await transactions.forwarding(taken, send: Self.unexpected) else {
            Issue.record("without a record nothing may be sent")
            return
        }
        for _ in 0..<failures {
            while fixture.clock.sleeperCount == 0 { await Task.yield() }
            #expect(try await Self.outcome(taken.id, fixture) == .forwarded)
            fixture.clock.advance(by: 8)
        }
        while try await Self.outcome(taken.id, fixture) == .forwarded { await Task.yield() }
        #expect(try await Self.outcome(taken.id, fixture) == .notForwarded)
        #expect(try await fixture.audited(.transactionOutcome, taken.id) == ["failed -"])
        guard case .sentBefore = await fixture.transactions.forwarding(taken, send: Self.unexpected) else {
            Issue.record("what is said to be unsent stays unsent")
            return
        }
    }

    @Test(
        "What the service has answered is on record as soon as the database takes that, and once",
        arguments: [[NodeDatabase.Fault.undone], [.undone, .undone, .undone], [.doneUnknown]])
    func late(faults: [NodeDatabase.Fault]) async throws {
        let fixture = try await TransactionFixture()
        let taken = try await Self.taken(fixture)
        let database = NodeDatabase(fixture.database, [.none] + faults)
        let transactions = Transactions(try TransactionFixture.context(database, clock: fixture.clock))
        let result = await transactions.forwarding(taken) { ("reply", UpstreamOutcome.answered(status: 201)) }
        guard case .sent("reply") = result else {
            Issue.record("who has asked has the reply, whatever is on record")
            return
        }
        // The second try does not wait.
        for _ in faults.dropFirst() {
            while fixture.clock.sleeperCount == 0, !Task.isCancelled { await Task.yield() }
            #expect(try await Self.outcome(taken.id, fixture) == .forwarded)
            fixture.clock.advance(by: 8)
        }
        while try await Self.outcome(taken.id, fixture) == .forwarded, !Task.isCancelled { await Task.yield() }
        #expect(try await Self.outcome(taken.id, fixture) == .answered(status: 201))
        #expect(try await fixture.audited(.transactionOutcome, taken.id) == ["success -"])
    }

    @Test(
        "What an enforcement point was not granted, since it could not be noted, is on record as not forwarded",
        arguments: [NodeDatabase.Fault.undone, .doneUnknown])
    func unnoted(fault: NodeDatabase.Fault) async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved(try fixture.binding(maker: .caller(fixture.gateway.user.id)))
        let database = NodeDatabase(fixture.database, [.none, fault])
        let context = try TransactionFixture.context(database, clock: fixture.clock)
        let point = AccessSettlement(
            context, decisions: PolicyDecisionPoint(policySets: [try TransactionFixture.policySet()]),
            transactions: Transactions(context))
        let request = EvaluateRequest(
            realm: "/alpha", policySet: "bank", resources: ["https://api.bank.example/transfers?kind=sepa"],
            subject: .session(PresentedSession(fixture.ana)),
            environment: [
                "TxId": [id], "method": ["POST"], "contentType": ["application/json"],
                "body": [Base64URL.encode(TransactionFixture.body)], "report": ["outcome"],
            ])
        await #expect(throws: EngineError.self) { try await point.settle(request, caller: fixture.gateway) }
        #expect(try await fixture.state(id) == "TAKEN")
        while try await Self.outcome(id, fixture) != .notForwarded, !Task.isCancelled { await Task.yield() }
        #expect(try await fixture.audited(.transactionOutcome, id) == ["failed -"])
    }

    @Sendable private static func unexpected() async -> (Int, UpstreamOutcome) {
        Issue.record("nothing may be sent")
        return (0, .unknown)
    }
}
