import AssentCore
import AssentPeers
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

/// A user whose browser the test is.
private struct Browsing: RedirectReceiver {
    let redirectURI: String
    let visit: @Sendable (_ url: String) async throws -> String

    func receive(opening url: String, accepting accepts: @escaping @Sendable (String) -> Bool) async throws -> String {
        let location = try await visit(url)
        guard accepts(location) else { throw PeerFailure("the redirect is not the answer: \(location)") }
        return location
    }
}

/// Neither of these providers ends a session for anybody but a browser (OpenID Connect RP-Initiated Logout 1.0 §2): one
/// leads to a page that asks, the other shows it. Both say so with a status that could be taken for success.
@Suite("Signing out at providers that others wrote")
struct EndSessionTests {
    @Test("glewlwyd leads to a page: that is said, its session does go on, and nothing is left here")
    func leadsToPage() async throws {
        let provider = try await Glewlwyd.shared
        let browser = try await provider.signIn()
        let transport = Tampering(try PeerClient.transport())
        let store = MemorySecretStore()
        let manager = TokenManager(configuration: try provider.configuration(), transport: transport, store: store)
        let visit = Browsing(redirectURI: Glewlwyd.redirectURI) { try await provider.authorize($0, in: browser) }
        _ = try await manager.signIn(through: visit)
        #expect(try await manager.metadata().endSessionEndpoint != nil)

        let result = await manager.signOut()
        #expect(transport.sent.contains { $0.contains("id_token_hint=") })
        #expect(result.localFailure == nil && !result.isComplete)
        #expect(result.undone.map(\.step) == [.revokeTokens, .endProviderSession], "\(result.undone)")
        #expect(result.undone.allSatisfy { !$0.isKept })
        #expect(await store.names().isEmpty)
        // The same browser still gets a code without typing anything.
        #expect(try await manager.signIn(through: visit).tokens.idToken != nil)
    }

    @Test("The bad provider shows a page with 200: that is not done, and asking again would change nothing")
    func showsPage() async throws {
        let provider = try await BadProvider.shared
        let transport = try BadProvider.user()
        let store = MemorySecretStore()
        let manager = try await signedIn(provider, transport, store)
        let result = await manager.signOut()
        #expect(transport.sent.contains { $0.contains("/end_session?id_token_hint=") })
        #expect(result.localFailure == nil)
        #expect(result.undone.map(\.step) == [.revokeTokens, .endProviderSession])
        #expect(result.undone.allSatisfy { !$0.isKept })
        #expect(result.undone.last?.reason.contains("page") == true, "\(result.undone)")
        #expect(await store.names().isEmpty)
        #expect(try await manager.retrySignOuts().isEmpty)
    }

    @Test("What could not be sent is kept until the provider is back, and gone when it has answered, whatever that was")
    func comesBack() async throws {
        let provider = try await BadProvider.shared
        let isDown = Locked(false)
        let transport = try BadProvider.user { call, reply, _ in
            guard isDown.withLock({ $0 }) else { return reply }
            throw HTTPTransportError(.connectionClosed, "the provider went away", mayHaveHadEffect: true)
        }
        let store = MemorySecretStore()
        let manager = try await signedIn(provider, transport, store)
        isDown.withLock { $0 = true }
        #expect(await manager.signOut().undone.filter(\.isKept).map(\.step) == [.endProviderSession])
        #expect(try await manager.storedTokens() == nil)
        #expect(try await manager.pendingSignOuts() == [.endProviderSession])
        #expect(try await manager.retrySignOuts().map(\.isKept) == [true])
        isDown.withLock { $0 = false }
        #expect(try await manager.retrySignOuts().map(\.isKept) == [false])
        #expect(await store.names().isEmpty)
    }

    private func signedIn(
        _ provider: BadProvider, _ transport: Tampering, _ store: MemorySecretStore
    ) async throws -> TokenManager {
        let configuration = try provider.configuration()
        let manager = TokenManager(configuration: configuration, transport: transport, store: store)
        let visit = Browsing(redirectURI: configuration.redirectURI) { url in
            let reply = try await transport.send(HTTPCall(try HTTPRequest(.get, url: url)))
            return try #require(reply.response.headerFields[.location])
        }
        _ = try await manager.signIn(through: visit)
        return manager
    }
}
