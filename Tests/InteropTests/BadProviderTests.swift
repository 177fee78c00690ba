import AssentCore
import AssentJOSE
import AssentPeers
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

/// The SDK against a provider that ignores PKCE, has no revocation and no introspection, and rotates nothing.
@Suite("The bad provider")
struct BadProviderTests {
    private func manager(
        _ provider: BadProvider, client: String = "app", clock: any WallClock = OurServer.GoingClock(),
        transport: any HTTPTransport
    ) async throws -> TokenManager {
        let manager = TokenManager(
            configuration: try provider.configuration(client: client), transport: transport,
            store: MemorySecretStore(), clock: clock)
        // What it takes for a session is what is typed into its page.
        try await manager.install(Session(token: Secret("none")))
        return manager
    }

    @Test("All that it offers works: code, an ID token without kid, userinfo, a refresh that keeps the refresh token")
    func wholeFlow() async throws {
        let provider = try await BadProvider.shared
        let clock = OurServer.GoingClock()
        let manager = try await manager(provider, clock: clock, transport: try BadProvider.user())
        let first = try await manager.tokens()
        #expect(first.idToken?.subject == "alice@example.org")
        #expect(first.idToken?.claims.aud == ["app"])
        #expect(try await manager.userInfo()["email"]?.string == "alice@example.org")
        clock.advance(by: 3700)
        let second = try await manager.tokens()
        #expect(second.accessToken != first.accessToken)
        #expect(second.refreshToken != nil && second.refreshToken == first.refreshToken)
        #expect(second.idToken == first.idToken)
        #expect(try await manager.userInfo()["sub"]?.string == "alice@example.org")
    }

    @Test("A thief's code, put into the user's answer, gives no tokens although the provider does not check PKCE")
    func injectedCode() async throws {
        let provider = try await BadProvider.shared
        let metadata = try await manager(provider, transport: try PeerClient.transport()).metadata()
        let stolen = try await PeerClient(try BadProvider.user("mallory@example.org")).send(
            .get,
            [
                ("response_type", "code"), ("client_id", "app"), ("redirect_uri", "http://127.0.0.1:9999/cb"),
                ("scope", "openid email"), ("state", "s"), ("nonce", SystemRandom().token()),
            ].reduce(metadata.authorizationEndpoint) { URLText.appending($1.0, $1.1, to: $0) })
        let code = try #require(stolen.fields[.location]?.firstMatch(of: /code=([^&]+)/)).1
        let transport = try BadProvider.user { call, reply, _ in
            guard call.isTo("/authorize") else { return reply }
            return reply.redirecting { $0.replacing(/code=[^&]+/, with: "code=\(code)") }
        }
        let manager = try await manager(provider, transport: transport)
        await #expect {
            try await manager.tokens()
        } throws: { error in
            (error as? TokenError)?.code == .invalidIDToken && "\(error)".contains("wrongNonce")
        }
        #expect(transport.sent.contains("POST /oauth2/token"))
        #expect(try await manager.storedTokens() == nil)
    }

    @Test("An ID token with another access token's at_hash is refused")
    func foreignHash() async throws {
        let provider = try await BadProvider.shared
        let manager = try await manager(provider, client: "foreign-hash", transport: try BadProvider.user())
        await #expect {
            try await manager.tokens()
        } throws: { error in
            (error as? TokenError)?.code == .invalidIDToken && "\(error)".contains("at_hash")
        }
        #expect(try await manager.storedTokens() == nil)
    }
}
