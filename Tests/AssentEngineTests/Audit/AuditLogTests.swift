import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("The audit log")
struct AuditLogTests {
    private let record = AuditRecord(
        "transaction.take", .refused, reason: "body", realm: "/alpha", userID: "u", sessionAuditID: "s",
        transactionID: "t", detail: JSONObject([.init(name: "client", value: "bank-app")]))

    @Test("A record comes back as it went in")
    func roundTrip() async throws {
        let log = AuditLog(try await ProviderFixture().context)
        try await log.write(record)
        #expect(try await log.records(transactionID: "t") == [record])
        #expect(try await log.newest(5) == [record])
        #expect(try await log.records(transactionID: "u").isEmpty)
    }

    @Test("The newest come first, and no more than are asked for")
    func order() async throws {
        let fixture = try await ProviderFixture()
        let log = AuditLog(fixture.context)
        for index in 0..<5 {
            try await log.write(AuditRecord("event-\(index)", .success, transactionID: "t"))
            fixture.clock.advance(by: 1)
        }
        #expect(try await log.newest(2).map(\.event) == ["event-4", "event-3"])
        #expect(try await log.records(transactionID: "t").map(\.event) == (0..<5).map { "event-\($0)" })
    }

    @Test("A record is written with what it tells of, or neither is")
    func together() async throws {
        let fixture = try await ProviderFixture()
        let log = AuditLog(fixture.context)
        let impossible = SQLStatement("UPDATE users SET active = 1 WHERE id = 'nobody'", expecting: .exactly(1))
        for statements in [[log.statement(record), impossible], [impossible, log.statement(record)]] {
            await #expect(throws: StoreError.self) { try await fixture.database.run(statements) }
        }
        #expect(try await log.newest(5).isEmpty)
    }

    @Test("An outcome that nobody knows is reported, not guessed")
    func unknownOutcome() async throws {
        let fixture = try await ProviderFixture()
        let log = AuditLog(fixture.context)
        try await log.write(record)
        _ = try await fixture.database.run(SQLStatement("UPDATE audit SET outcome = 'maybe'"))
        await #expect(throws: StoreError(.corrupt, "")) { try await log.newest(1) }
    }
}
