import AssentCore
import Foundation
import Testing

@testable import AssentServer

@Suite("Clients with a secret, over HTTP", .server)
struct ClientAuthenticationRouteTests {
    private static let form = ("Content-Type", "application/x-www-form-urlencoded")
    private static let web = "web:1 +%"

    /// RFC 6749 §2.3.1: id and secret are form-encoded before they are joined.
    private static func basic(_ id: String, _ secret: String) -> (String, String) {
        let pair = [id, secret].map { PercentEncoding.encode($0).replacing("%20", with: "+") }.joined(separator: ":")
        return ("Authorization", "Basic " + Data(pair.utf8).base64EncodedString())
    }

    private func post(
        _ path: String, _ items: [(String, String)], _ fields: [(String, String)] = []
    ) async throws -> Answer {
        let fixture = try #require(ServerFixture.shared)
        return try await fixture.send(
            "POST", fixture.oauth(path), [Self.form] + fields, text: ServerFixture.query(items))
    }

    /// Tokens of the client with a secret.
    private func tokens() async throws -> JSONValue {
        let fixture = try #require(ServerFixture.shared)
        let verifier = SystemRandom().token()
        let redirect = try await fixture.authorize(
            session: try await fixture.session(),
            [
                ("client_id", Self.web), ("code_challenge", Base64URL.encode(SHA2.sha256(verifier.utf8))),
            ])
        let reply = try await post(
            "access_token",
            [
                ("grant_type", "authorization_code"), ("code", try #require(redirect.parameter("code"))),
                ("redirect_uri", "http://127.0.0.1/callback"), ("code_verifier", verifier),
            ], [Self.basic(Self.web, FixtureConfiguration.webSecret)])
        #expect(reply.status == 200, "\(reply.text)")
        return reply.json
    }

    @Test(
        "client_secret_basic and client_secret_post do at token, introspection and revocation, whatever characters they have"
    )
    func methods() async throws {
        let secret = FixtureConfiguration.webSecret
        var token = try #require(try await tokens()["refresh_token"]?.string)
        for (items, fields) in [
            ([], [Self.basic(Self.web, secret)]), ([("client_id", Self.web)], [Self.basic(Self.web, secret)]),
            ([("client_id", Self.web), ("client_secret", secret)], []),
        ] {
            let reply = try await post(
                "access_token", [("grant_type", "refresh_token"), ("refresh_token", token)] + items, fields)
            #expect(reply.status == 200, "\(reply.text)")
            token = try #require(reply.json["refresh_token"]?.string)
            let state = try await post("introspect", [("token", token)] + items, fields)
            #expect(state.status == 200 && state.json["active"] == true)
            #expect(state["Cache-Control"]?.contains("no-store") == true)
            #expect(try await post("token/revoke", [("token", "none")] + items, fields).status == 200)
        }
    }

    @Test(
        "Who does not prove to be the client is refused: the header with 401, the form with AM's 400 or, as RFC 7662 has it, 401"
    )
    func refusals() async throws {
        let secret = FixtureConfiguration.webSecret
        for path in ["access_token", "introspect", "token/revoke"] {
            let asked = [("grant_type", "refresh_token"), ("refresh_token", "x"), ("token", "x")]
            for header in [
                Self.basic(Self.web, secret + "x"), Self.basic(Self.web, ""), Self.basic("bank-app", "x"),
                Self.basic("nobody", secret), ("Authorization", "Basic %%%"), ("Authorization", "Bearer x"),
                ("Authorization", "Basic " + Data("\(Self.web):\(secret)".utf8).base64EncodedString()),
            ] {
                let reply = try await post(path, asked, [header])
                #expect(reply.status == 401 && reply.error == "invalid_client", "\(path) \(header)")
                #expect(reply["WWW-Authenticate"] == #"Basic realm="/alpha""#)
                #expect(reply["Cache-Control"]?.contains("no-store") == true)
            }
            for items in [
                [("client_id", Self.web)], [("client_id", Self.web), ("client_secret", secret + "x")],
                [("client_id", "bank-app"), ("client_secret", secret)], [("client_secret", secret)],
                [("client_id", Self.web), ("client_assertion", "x")],
            ] {
                let reply = try await post(path, asked + items)
                let status = path == "introspect" ? 401 : 400
                #expect(reply.status == status && reply.error == "invalid_client", "\(path) \(items)")
            }
            let twoWays = try await post(
                path, asked + [("client_id", Self.web), ("client_secret", secret)], [Self.basic(Self.web, secret)])
            #expect(twoWays.status == 400 && twoWays.error == "invalid_request")
            let twoNames = try await post(
                path, asked + [("client_id", "bank-app")], [Self.basic(Self.web, secret)])
            #expect(twoNames.status == 400 && twoNames.error == "invalid_request")
        }
    }

    @Test("Introspection tells a client of its own tokens, a resource server of all, and nobody of anything else")
    func introspection() async throws {
        let fixture = try #require(ServerFixture.shared)
        let own = try await tokens()
        let other = try await fixture.tokens(session: try await fixture.session())
        let web = Self.basic(Self.web, FixtureConfiguration.webSecret)
        let reader = Self.basic("reader", FixtureConfiguration.readerSecret)
        for (token, client) in [
            (try #require(own["access_token"]?.string), Self.web),
            (try #require(own["refresh_token"]?.string), Self.web),
            (other.access, "bank-app"), (other.refresh, "bank-app"),
        ] {
            let seen = try await post("introspect", [("token", token), ("token_type_hint", "wrong")], [reader])
            #expect(seen.json["active"] == true && seen.json["client_id"]?.string == client)
            #expect(seen.json["username"] == "ana" && seen.json["sub"] != nil && seen.json["exp"] != nil)
            let asked = try await post("introspect", [("token", token)], [web])
            #expect(asked.status == 200)
            #expect(asked.json["active"] == .bool(client == Self.web))
            if client != Self.web { #expect(asked.text == #"{"active":false}"#) }
        }
        for token in ["x", "a.b.c", other.access + "x", other.id, String(repeating: "a", count: 8000)] {
            let unknown = try await post("introspect", [("token", token)], [reader])
            #expect(unknown.status == 200 && unknown.text == #"{"active":false}"#)
        }
        let missing = try await post("introspect", [], [reader])
        #expect(missing.status == 400 && missing.error == "invalid_request")
        // A token must not be tried out by just anybody (RFC 7662 §2.1).
        let open = try await post("introspect", [("token", other.access), ("client_id", "bank-app")])
        #expect(open.status == 401 && open.error == "invalid_client")
        // A resource server gets no tokens.
        let grant = try await post("access_token", [("grant_type", "refresh_token"), ("refresh_token", "x")], [reader])
        #expect(grant.status == 400 && grant.error == "unauthorized_client")
    }

    @Test("A token of another client is not revoked, and says so")
    func foreignRevocation() async throws {
        let fixture = try #require(ServerFixture.shared)
        let other = try await fixture.tokens(session: try await fixture.session())
        let web = Self.basic(Self.web, FixtureConfiguration.webSecret)
        for token in [other.access, other.refresh] {
            let reply = try await post("token/revoke", [("token", token)], [web])
            #expect(reply.status == 400 && reply.error == "invalid_grant")
        }
        let bearer = ServerFixture.bearer(other.access)
        #expect(try await fixture.send("GET", fixture.oauth("userinfo"), bearer).status == 200)
    }
}
