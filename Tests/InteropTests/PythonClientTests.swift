import AssentCore
import AssentPeers
import Testing

/// Clients that others wrote, in Python, against our server with TLS. What they assert themselves is in the scripts.
@Suite("Python clients against our server", .ourServer)
struct PythonClientTests {
    private static let clients = [("app", "none"), ("web", "basic"), ("web", "post")]

    @Test("requests and joserfc: every step and every refusal", arguments: clients)
    func oidcFlow(client: String, authentication: String) async throws {
        let server = try #require(OurServer.current)
        let seen = try await Peer.run("oidc_flow.py", server.job(client: client, authentication: authentication))
        let tokens: JSONValue = ["access_token", "expires_in", "id_token", "refresh_token", "scope", "token_type"]
        for step in ["token", "refresh"] {
            #expect(seen[step]?["status"] == 200 && seen[step]?["body"] == tokens, "\(step)")
        }
        #expect(seen["rotated"] == true)
        for step in ["token", "refresh", "userinfo", "revocation", "code_replay", "wrong_verifier"] {
            #expect(seen[step]?["cache"]?.string?.contains("no-store") == true, "\(step)")
            #expect(seen[step]?["type"] == "application/json", "\(step)")
        }

        // RFC 9068: the access token says what it is, and an ID token does not pass for one.
        #expect(seen["access_token"]?["header"]?["typ"] == "at+jwt")
        #expect(seen["access_token"]?["aud"]?.string == OurServer.audience)
        #expect(seen["id_token"]?["header"]?["typ"] == "JWT")
        // `app` says nothing about its algorithm.
        #expect(seen["id_token"]?["header"]?["alg"]?.string == (client == "app" ? "RS256" : "ES256"))
        let claims = seen["id_token"]?["claims"]?.strings ?? []
        #expect(claims == ["at_hash", "aud", "auth_time", "azp", "exp", "iat", "iss", "nonce", "sid", "sub"])

        #expect(seen["userinfo"]?["status"] == 200)
        #expect(seen["userinfo_without"]?["status"] == 401 && seen["userinfo_broken"]?["status"] == 401)
        #expect(seen["userinfo_without"]?["challenge"] == #"Bearer realm="/alpha""#)
        #expect(seen["userinfo_broken"]?["challenge"] == #"Bearer realm="/alpha", error="invalid_token""#)

        let introspection = try #require(seen["introspection"])
        #expect(introspection["active"] == true && introspection["client_id"]?.string == client)
        #expect(introspection["iss"]?.string == server.issuer && introspection["username"] == "ana")
        #expect(introspection["token_type"] == "Bearer" && introspection["scope"] == "openid profile")
        #expect(seen["introspection_refresh"] == true)

        let dead: JSONValue = ["active": false]
        expectRefusal(seen["refresh_reuse"])
        #expect(seen["after_refresh_reuse"] == ["refresh": 400, "userinfo": 401, "introspection": dead])
        #expect(seen["revocation"]?["status"] == 200 && seen["revocation_unknown"] == 200)
        expectRefusal(seen["after_revocation"]?["refresh"])
        #expect(seen["after_revocation"]?["userinfo"] == 401 && seen["after_revocation"]?["introspection"] == dead)
        expectRefusal(seen["code_replay"])
        #expect(seen["after_code_replay"] == ["refresh": 400, "userinfo": 401])
        expectRefusal(seen["wrong_verifier"])
        expectRefusal(seen["no_verifier"])
        #expect(seen["right_verifier"] == 200)
    }

    @Test("Authlib's client completes the flow, and is refused what it must be", arguments: clients)
    func authlib(client: String, authentication: String) async throws {
        let server = try #require(OurServer.current)
        let seen = try await Peer.run("authlib_flow.py", server.job(client: client, authentication: authentication))
        #expect(seen["token_type"] == "Bearer" && seen["subject"] == true && seen["userinfo"] == true)
        #expect(seen["rotated"] == true && seen["revocation"] == 200)
        #expect(
            seen["introspection"] == [
                "active": true, "client_id": .string(client), "iss": .string(server.issuer), "token_type": "Bearer",
            ])
        #expect(seen["after_revocation"] == ["active": false])
        for step in ["wrong_verifier", "refresh_after_revocation", "code_replay", "refresh_reuse"] {
            #expect(seen[step] == "invalid_grant", "\(step)")
        }
        #expect(seen["after_code_replay"] == 401 && seen["after_refresh_reuse"] == 401)
    }

    private func expectRefusal(_ reply: JSONValue?, _ location: SourceLocation = #_sourceLocation) {
        #expect(reply?["status"] == 400 && reply?["body"]?["error"] == "invalid_grant", sourceLocation: location)
    }
}
