import AssentCore
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("When the database fails around the forwarding of a request")
struct LostRecordTests {
    private static let body = #"{"amount":"200.00"}"#

    /// Makes the database refuse that a column of transactions is set, whichever database it is.
    private func refuse(_ column: String, _ fixture: ServerFixture) async throws {
        let event = "CREATE TRIGGER lost BEFORE UPDATE OF \(column) ON transactions"
        let statements: [SQLStatement] =
            TestDatabase.isPostgreSQL
            ? [
                SQLStatement(
                    """
                    CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS
                    'BEGIN RAISE EXCEPTION ''lost'' USING ERRCODE = ''53100''; END'
                    """), SQLStatement("\(SQL(verbatim: event)) FOR EACH ROW EXECUTE FUNCTION lose()"),
            ] : [SQLStatement("\(SQL(verbatim: event)) BEGIN SELECT RAISE(ABORT, 'lost'); END")]
        _ = try await fixture.server.context.database.run(statements)
    }

    private func allow(_ fixture: ServerFixture) async throws {
        let place: SQL = TestDatabase.isPostgreSQL ? " ON transactions" : ""
        _ = try await fixture.server.context.database.run([SQLStatement("DROP TRIGGER lost\(place)")])
    }

    private func pay(_ id: String, _ session: String, _ fixture: ServerFixture) async throws -> Answer {
        try await fixture.send(
            "POST", fixture.gateway("/nods?_txid=\(id)"), ServerFixture.jsonFields + ServerFixture.session(session),
            text: Self.body)
    }

    @Test(
        "Between the take and the note that it forwards: 503, nothing is forwarded, then or later, and the record says so"
    )
    func beforeForwarding() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let id = try await fixture.completedTransaction(body: Self.body, session: session)
            try await refuse("forwarded_at, outcome", fixture)
            let failed = try await pay(id, session, fixture)
            #expect(failed.status == 503 && failed.json["forwarded"] == "no", "\(failed.text)")
            #expect(failed.json["transaction"]?.string == id)
            #expect(!failed.text.contains("lost"))
            let again = try await pay(id, session, fixture)
            #expect(again.status == 409 && again.json["outcome"] == ["state": "taken"], "\(again.text)")
            #expect(fixture.upstream.requests.isEmpty)
            #expect(try await fixture.audit(id).contains { $0.event == .transactionTake && $0.outcome == .success })
            #expect(try await !fixture.audit(id).contains { $0.event == .transactionOutcome })
            try await allow(fixture)
            var late = again
            while late.json["outcome"] == ["state": "taken"] {
                fixture.clock.advance(by: 1)
                late = try await pay(id, session, fixture)
            }
            #expect(late.status == 409 && late.json["outcome"] == ["state": "notForwarded"], "\(late.text)")
            #expect(try await fixture.audit(id).contains { $0.event == .transactionOutcome && $0.outcome == .failed })
            #expect(fixture.upstream.requests.isEmpty)
        }
    }

    @Test("Between the answer and its note: the client has the answer, and it is noted as soon as that can be")
    func beforeOutcome() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let id = try await fixture.completedTransaction(body: Self.body, session: session)
            try await refuse("outcome", fixture)
            let paid = try await pay(id, session, fixture)
            #expect(paid.status == 201, "\(paid.text)")
            let forwarded = try await pay(id, session, fixture)
            #expect(forwarded.status == 409 && forwarded.json["outcome"] == ["state": "forwarded"])
            try await allow(fixture)
            var late = forwarded
            while late.json["outcome"] == ["state": "forwarded"], !Task.isCancelled {
                fixture.clock.advance(by: 1)
                late = try await pay(id, session, fixture)
            }
            #expect(late.status == 409 && late.json["outcome"] == ["state": "answered", "status": 201], "\(late.text)")
            let notes = try await fixture.audit(id).filter { $0.event == .transactionOutcome }
            #expect(notes.map(\.outcome) == [.success])
            #expect(fixture.upstream.requests.count == 1)
        }
    }
}
