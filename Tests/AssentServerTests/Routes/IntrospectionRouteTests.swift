import AssentCore
import Foundation
import Testing

@testable import AssentServer

@Suite("Introspection and scopes over HTTP", .server)
struct IntrospectionRouteTests {
    private static let form = ("Content-Type", "application/x-www-form-urlencoded")

    private func introspect(
        _ fixture: ServerFixture, _ parameters: [(String, String)], basic: (String, String)? = nil
    ) async throws -> Answer {
        var fields = [Self.form]
        if let basic {
            let credentials = Data("\(basic.0):\(basic.1)".utf8).base64EncodedString()
            fields.append(("Authorization", "Basic \(credentials)"))
        }
        return try await fixture.send(
            "POST", fixture.oauth("introspect"), fields, text: ServerFixture.query(parameters))
    }

    @Test("A confidential client that may is told what a token is, with its secret in the form or in Authorization")
    func active() async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        let tokens = try await fixture.tokens(session: session)
        let secret = FixtureConfiguration.clientSecret
        let posted = try await introspect(
            fixture, [("token", tokens.access), ("client_id", "back-office"), ("client_secret", secret)])
        #expect(posted.status == 200 && posted.json["active"] == true)
        #expect(posted.json["client_id"] == "bank-app" && posted.json["username"] == "ana")
        #expect(posted.json["scope"] == "openid profile accounts" && posted.json["token_type"] == "Bearer")
        #expect(posted["Cache-Control"]?.contains("no-store") == true)
        let basic = try await introspect(fixture, [("token", tokens.access)], basic: ("back-office", secret))
        #expect(basic.json == posted.json)
        let refresh = try await introspect(fixture, [("token", tokens.refresh)], basic: ("back-office", secret))
        #expect(refresh.json["active"] == true)
        _ = try await fixture.send(
            "POST", fixture.oauth("token/revoke"), [Self.form],
            text: ServerFixture.query([("token", tokens.refresh), ("client_id", "bank-app")]))
        for token in [tokens.access, tokens.refresh, "nonsense", "a.b.c", String(repeating: "x", count: 5000)] {
            let dead = try await introspect(fixture, [("token", token)], basic: ("back-office", secret))
            #expect(dead.status == 200 && dead.text == #"{"active":false}"#)
        }
    }

    @Test("A client is told nothing of another's token")
    func foreign() async throws {
        let fixture = try #require(ServerFixture.shared)
        let tokens = try await fixture.tokens(session: try await fixture.session())
        for token in [tokens.access, tokens.refresh] {
            let reply = try await introspect(
                fixture, [("token", token)], basic: ("partner", FixtureConfiguration.clientSecret))
            #expect(reply.status == 200 && reply.text == #"{"active":false}"#)
        }
    }

    @Test("Who is no confidential client, or proves it twice or not, learns nothing")
    func refused() async throws {
        let fixture = try #require(ServerFixture.shared)
        let token = try await fixture.tokens(session: try await fixture.session()).access
        let secret = FixtureConfiguration.clientSecret
        let cases: [([(String, String)], (String, String)?, Int, String)] = [
            ([("token", token)], nil, 401, "invalid_client"),
            ([("token", token), ("client_id", "bank-app")], nil, 401, "invalid_client"),
            ([("token", token), ("client_id", "back-office")], nil, 401, "invalid_client"),
            ([("token", token), ("client_id", "back-office"), ("client_secret", "guess")], nil, 401, "invalid_client"),
            ([("token", token), ("client_id", "nobody"), ("client_secret", secret)], nil, 401, "invalid_client"),
            ([("token", token)], ("back-office", "guess"), 401, "invalid_client"),
            ([("token", token)], ("back-office", ""), 401, "invalid_client"),
            ([("token", token)], ("bank-app", secret), 401, "invalid_client"),
            ([("token", token), ("client_secret", secret)], ("back-office", secret), 400, "invalid_request"),
            ([], ("back-office", secret), 400, "invalid_request"),
            ([("token", token), ("token", token)], ("back-office", secret), 400, "invalid_request"),
        ]
        for (parameters, basic, status, error) in cases {
            let reply = try await introspect(fixture, parameters, basic: basic)
            #expect(reply.status == status && reply.error == error, "\(parameters.map(\.0)) \(reply.text)")
            #expect(reply.json["active"] == nil)
            if status == 401 { #expect(reply["WWW-Authenticate"]?.hasPrefix("Basic ") == true) }
        }
        let inQuery = try await fixture.send(
            "GET", fixture.oauth("introspect") + "?token=\(token)",
            [("Authorization", "Basic " + Data("back-office:\(secret)".utf8).base64EncodedString())])
        #expect(inQuery.status == 405 || inQuery.status == 404)
    }

    @Test("A token without a route's scopes is refused there with the scope that is missing, and nothing is forwarded")
    func scopes() async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        let narrow = try await fixture.tokens(session: session, scope: "openid profile").access
        let wide = try await fixture.tokens(session: session, scope: "openid accounts").access
        let url = fixture.gateway("/scoped")
        func forwarded() -> Int { fixture.upstream.requests.count { $0.line.contains("/scoped") } }
        let refused = try await fixture.send("GET", url, ServerFixture.bearer(narrow))
        #expect(refused.status == 403)
        #expect(refused["WWW-Authenticate"] == #"Bearer error="insufficient_scope", scope="accounts""#)
        #expect(forwarded() == 0)
        // A session beside it does not make the token good.
        let both = try await fixture.send("GET", url, ServerFixture.bearer(narrow) + ServerFixture.session(session))
        #expect(both.status == 403 && forwarded() == 0)
        #expect(try await fixture.send("GET", url, ServerFixture.bearer(wide)).status == 200)
        #expect(try await fixture.send("GET", url, ServerFixture.session(session)).status == 200)
        #expect(try await fixture.send("GET", fixture.gateway("/accounts"), ServerFixture.bearer(narrow)).status == 200)
        #expect(forwarded() == 2)
    }
}
