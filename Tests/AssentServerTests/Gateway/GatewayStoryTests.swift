import AssentCore
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("The gateway, from advice to outcome")
struct GatewayStoryTests {
    @Test("A transfer is advised, approved, forwarded once with its own bytes, and never again")
    func story() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.signIn(journey: "Login")
            let tokens = try await fixture.tokens(session: session)
            let bearer = ServerFixture.bearer(tokens.access)
            let body = "{ \"to\":\"B\u{f6}b \u{1F600}\",\r\n\t\"currency\":\"EUR\", \"amount\" : \"200.00\" }\n"
            let id = try await fixture.completedTransaction(
                "/transfers", body: body, session: session, credentials: bearer)
            let renewed = try #require(try await fixture.refresh(tokens.refresh).json["access_token"]?.string)
            let fields = ServerFixture.jsonFields + ServerFixture.bearer(renewed)
            let paid = try await fixture.send("POST", fixture.gateway("/transfers?_txid=\(id)"), fields, text: body)
            #expect(paid.status == 201 && paid.text == #"{"done":true}"#)
            let request = try #require(fixture.upstream.requests.first)
            #expect(request.line == "POST /transfers HTTP/1.1")
            #expect(request.body == Array(body.utf8))
            #expect(request.values("Idempotency-Key") == [id])
            #expect(request.values("X-Remote-User") == ["ana"])
            #expect(request.values("Authorization").isEmpty)

            let again = try await fixture.send("POST", fixture.gateway("/transfers?_txid=\(id)"), fields, text: body)
            #expect(again.status == 409)
            #expect(again.json["transaction"]?.string == id)
            #expect(again.json["outcome"] == ["state": "answered", "status": 201])
            #expect(fixture.upstream.requests.count == 1)
        }
    }

    @Test("The vendor's ID token beside a repeated request is not what was approved, and no service sees it")
    func idToken() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.signIn(journey: "Login")
            let tokens = try await fixture.tokens(session: session)
            let bearer = ServerFixture.bearer(tokens.access)
            let body = #"{"to":"Bob","currency":"EUR","amount":"200.00"}"#
            let id = try await fixture.completedTransaction(
                "/transfers?a=1", body: body, session: session, credentials: bearer)
            let paid = try await fixture.send(
                "POST", fixture.gateway("/transfers?a=1&_txid=\(id)&_idtoken=\(tokens.id)"),
                ServerFixture.jsonFields + bearer + [("X-IdToken", tokens.id)], text: body)
            #expect(paid.status == 201)
            let request = try #require(fixture.upstream.requests.first)
            #expect(request.line == "POST /transfers?a=1 HTTP/1.1")
            #expect(!request.head.contains(tokens.id))
        }
    }
}
