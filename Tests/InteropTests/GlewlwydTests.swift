import AssentCore
import AssentJOSE
import AssentPeers
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import Testing

/// The SDK against a provider that others wrote.
@Suite("glewlwyd as the provider")
struct GlewlwydTests {
    @Test("Code with PKCE, a checked ID token, userinfo, rotated refresh, sign-out")
    func wholeFlow() async throws {
        let provider = try await Glewlwyd.shared
        let clock = ManualClock(Date())
        let manager = TokenManager(
            configuration: try provider.configuration(), transport: try PeerClient.transport(),
            store: MemorySecretStore(), clock: clock)
        try await manager.install(try await provider.session())

        let first = try await manager.tokens()
        let idToken = try #require(first.idToken)
        #expect(!idToken.subject.isEmpty && idToken.claims.aud == [Glewlwyd.publicClient])
        #expect(idToken.claims.iss == provider.issuer)
        #expect(try await manager.userInfo()["sub"]?.string == idToken.subject)

        clock.advance(by: 700)
        let second = try await manager.tokens()
        #expect(second.accessToken != first.accessToken)
        let (old, new) = (try #require(first.refreshToken), try #require(second.refreshToken))
        #expect(old != new)
        #expect(try await manager.userInfo()["sub"]?.string == idToken.subject)

        let result = await manager.signOut()
        #expect(try await manager.storedTokens() == nil)
        #expect(try await manager.session() == nil)
        #expect(result.localFailure == nil && result.session != nil)
        // A client without a secret may not revoke there: said, and nothing is left here all the same.
        #expect(result.undone.map(\.step) == [.revokeTokens])
        #expect(result.undone.first?.reason.contains("401") == true)
    }
}
