import AssentCore
import AssentEngine
import AssentStore
import StoreTesting
import Testing

@Suite("Transactions on a database that fails")
struct TransactionFaultTests {
    @Test(
        "A full database: nothing is taken, started or made, and nothing is half done",
        .enabled(if: !TestDatabase.isPostgreSQL, "it fills a SQLite file"))
    func full() async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved()
        let waiting = try await fixture.create()
        try await fixture.fill()

        await #expect(throws: EngineError.unavailable) {
            for _ in 0..<50 {
                _ = try await fixture.transactions.take(id: id, binding: try fixture.binding(session: fixture.ben))
            }
        }
        await #expect(throws: EngineError.unavailable) {
            try await fixture.transactions.take(id: id, binding: try fixture.binding())
        }
        await #expect(throws: EngineError.unavailable) {
            try await fixture.transactions.start(id: waiting.id, session: fixture.ana)
        }
        await #expect(throws: EngineError.unavailable) { try await fixture.create() }
        #expect(try await fixture.state(id) == "COMPLETED")
        #expect(try await fixture.state(waiting.id) == "CREATED")
        #expect(try await !fixture.audited(.transactionTake, id).contains("success -"))

        try await fixture.database.limitSize(pages: 1_000_000)
        #expect(try await fixture.transactions.take(id: id, binding: try fixture.binding()).isTaken)
        #expect(try await fixture.audited(.transactionTake, id).contains("success -"))
    }

    @Test(
        "A full database: the gateway denies",
        .enabled(if: !TestDatabase.isPostgreSQL, "it fills a SQLite file"))
    func gatewayDenies() async throws {
        let fixture = try await TransactionFixture()
        let point = try fixture.settlement()
        try await fixture.fill()
        let request = SentRequest(
            session: PresentedSession(fixture.ana), method: "POST",
            resource: try CanonicalResource("https://api.bank.example/transfers"), mediaType: "application/json",
            body: TransactionFixture.body)
        #expect(await point.settle(request) == .denied(.unavailable))
    }

    @Test("A database that is gone: the gateway denies whatever it is asked", arguments: [true, false])
    func closed(withID: Bool) async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved()
        let point = try fixture.settlement()
        try await fixture.database.close()
        var request = SentRequest(
            session: PresentedSession(fixture.ana), method: "POST",
            resource: try CanonicalResource("https://api.bank.example/transfers?kind=sepa"),
            mediaType: "application/json", body: TransactionFixture.body)
        if withID { request.transactionID = id }
        #expect(await point.settle(request) == .denied(.unavailable))
    }
}

extension TransactionFixture {
    /// Fills the database until not one more audit record fits, wherever in the index its id would stand.
    fileprivate func fill() async throws {
        try await database.limitSize(pages: 1)
        var refused = 0
        while refused < 200 {
            do {
                try await AuditLog(context).write(
                    AuditRecord(AuditEvent(rawValue: "fill"), .success, transactionID: context.random.uuid()))
                refused = 0
            } catch let error as StoreError {
                #expect(error.code == .unavailable)
                refused += 1
            }
        }
    }
}
