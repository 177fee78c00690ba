import AssentCore
import AssentPeers
import AssentTokens
import HTTPTypes
import Testing

/// Apache with mod_oauth2 as a resource server: it knows our keys' address, our issuer and its own name, nothing else
/// of us.
@Suite("mod_oauth2 in front of a resource", .ourServer)
struct ResourceServerTests {
    @Test("It accepts our access token and refuses a broken one, an expired one, one for others, an ID token, and none")
    func accessTokens() async throws {
        let server = try #require(OurServer.current)
        let (apache, port) = try await Peer.start(
            "apache.sh", [server.issuer + "/connect/jwk_uri", server.issuer, OurServer.audience])
        defer { apache.withLock { $0.stop() } }
        let client = try PeerClient()
        func get(_ token: Secret?) async throws -> PeerClient.Answer {
            let fields: HTTPFields = token.map { [.authorization: "Bearer \($0.reveal())"] } ?? [:]
            return try await client.send(.get, "http://127.0.0.1:\(port)/api/", fields)
        }

        let tokens = try await server.tokens()
        let good = try await get(tokens.accessToken)
        #expect(good.status == 200 && good.text == "protected\n")

        var broken = Array(tokens.accessToken.reveal())
        broken[broken.count - 20] = broken[broken.count - 20] == "A" ? "B" : "A"
        let refused = try await get(Secret(String(broken)))
        #expect(refused.status == 401)
        #expect(refused.fields[.wwwAuthenticate]?.contains(#"error="invalid_token""#) == true)

        // As old as the server was two hours ago: its lifetime is one hour.
        server.clock.advance(by: -7200)
        let old = try await server.tokens()
        server.clock.advance(by: 7200)
        #expect(try await get(old.accessToken).status == 401)

        #expect(try await get(try await server.tokens(client: "elsewhere").accessToken).status == 401)
        #expect(try await get(try #require(tokens.idToken).text).status == 401)
        #expect(try await get(nil).status == 401)
        // It was the tokens, not the server, that it refused.
        #expect(try await get(tokens.accessToken).status == 200)
    }
}
