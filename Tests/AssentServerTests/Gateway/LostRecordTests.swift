import AssentCore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("When the database fails around the forwarding of a request")
struct LostRecordTests {
    private static let body = #"{"amount":"200.00"}"#

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
            try await RefusedWrites.begin(
                "UPDATE OF forwarded_at, outcome ON transactions", in: fixture.server.context.database)
            let failed = try await pay(id, session, fixture)
            #expect(failed.status == 503 && failed.json["forwarded"] == "no", "\(failed.text)")
            #expect(failed.json["transaction"]?.string == id)
            #expect(!failed.text.contains("lost"))
            let again = try await pay(id, session, fixture)
            #expect(again.status == 409 && again.json["outcome"] == ["state": "taken"], "\(again.text)")
            #expect(fixture.upstream.requests.isEmpty)
            #expect(try await fixture.audit(id).contains { $0.event == .transactionTake && $0.outcome == .success })
            #expect(try await !fixture.audit(id).contains { $0.event == .transactionOutcome })
            try await RefusedWrites.end(in: fixture.server.context.database)
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
            try await RefusedWrites.begin("UPDATE OF outcome ON transactions", in: fixture.server.context.database)
            let paid = try await pay(id, session, fixture)
            #expect(paid.status == 201, "\(paid.text)")
            let forwarded = try await pay(id, session, fixture)
            #expect(forwarded.status == 409 && forwarded.json["outcome"] == ["state": "forwarded"])
            try await RefusedWrites.end(in: fixture.server.context.database)
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
