import AssentCore
import AssentJOSE
import AssentPeers
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

/// The SDK against a provider that others wrote.
@Suite("glewlwyd as the provider")
struct GlewlwydTests {
    @Test("Code with PKCE, a checked ID token, userinfo, rotated refresh, sign-out")
    func wholeFlow() async throws {
        let provider = try await Glewlwyd.shared
        let clock = OurServer.GoingClock()
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

    @Test(
        "Proofs with mandatory nonces: sign-in, calls and refresh by the app's key; without it the tokens are refused",
        .enabled(if: Peer.has("/usr/bin/glewlwyd"), "glewlwyd is missing: run Scripts/setup.sh --tests"))
    func proofs() async throws {
        let provider = try await Glewlwyd.shared
        let directory = try Peer.temporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let keys = SoftwareKeyProvider(unprotectedFile: URL(fileURLWithPath: directory + "/keys"))
        var configuration = try provider.configuration(issuer: provider.provedIssuer)
        configuration.dpop = .on(keys: keys)
        let clock = OurServer.GoingClock()
        let wire = Tampering(try PeerClient.transport())
        let manager = TokenManager(
            configuration: configuration, transport: wire, store: MemorySecretStore(), clock: clock)
        try await manager.install(try await provider.session())

        // It says use_dpop_nonce, gives one, and takes the same code with a new proof.
        let first = try await manager.tokens()
        let thumbprint = try #require(first.keyThumbprint)
        #expect(try await keys.keyNames().count == 1)
        #expect(wire.calls(to: "/token").count == 2)
        let asked: String? = wire.calls(to: "/auth").first?.request.url
        #expect(URLText.query(of: try #require(asked))?[all: "dpop_jkt"] == [thumbprint])

        // Its nonces are one for both endpoints, and wear out: the next one comes with a reply, and no call is lost.
        let calls = 2 * Glewlwyd.nonceUses
        for _ in 0..<calls {
            #expect(try await manager.userInfo()["sub"]?.string == first.idToken?.subject)
        }
        let proved = wire.calls(to: "/userinfo")
        #expect(proved.count == calls)
        let userInfo = try #require(try await manager.metadata().userInfoEndpoint)
        let proofs = try proved.map { call in
            try DPoPProof.verifyUndated(
                try #require(call.request.headerFields[.dpop]), method: "GET", uri: userInfo,
                accessToken: first.accessToken)
        }
        #expect(Set(proofs.map(\.thumbprint)) == [thumbprint] && Set(proofs.map(\.jti)).count == calls)
        #expect(proofs.allSatisfy { $0.nonce != nil } && Set(proofs.map(\.nonce)).count > 1)

        try await thief(of: first, at: try await manager.metadata(), nonce: proofs.last?.nonce)
        clock.advance(by: 700)
        let second = try await manager.tokens()
        #expect(second.accessToken != first.accessToken && second.refreshToken != first.refreshToken)
        #expect(second.keyThumbprint == thumbprint)
        #expect(try await manager.userInfo()["sub"]?.string == first.idToken?.subject)

        _ = await manager.signOut()
        #expect(try await keys.keyNames().isEmpty)
    }

    /// What somebody can do who has the tokens and not the key. The refresh token is as it was afterwards.
    ///
    /// That glewlwyd takes an access token with another key's proof at its userinfo endpoint is a fault of its own: it
    /// compares the key with the token's at the token endpoint alone.
    private func thief(of tokens: TokenSet, at provider: ProviderMetadata, nonce: String?) async throws {
        let client = try PeerClient()
        let userInfo = try #require(provider.userInfoEndpoint)
        let bearer = try await client.send(
            .get, userInfo, [.authorization: "Bearer \(tokens.accessToken.reveal())"])
        #expect(bearer.status == 401)
        let form = FormItems([
            "grant_type": "refresh_token", "client_id": Glewlwyd.publicClient,
            "refresh_token": try #require(tokens.refreshToken).reveal(),
        ])
        let theirs = try await DPoPProof.make(
            method: "POST", uri: provider.tokenEndpoint, nonce: nonce, key: try SoftwareSigningKey.generate(.es256),
            clock: SystemClock())
        for fields: HTTPFields in [[:], [.dpop: theirs]] {
            let refused = try await client.post(provider.tokenEndpoint, form: form, fields: fields)
            #expect(refused.status == 403 && refused.json["error"] == "invalid_dpop_proof", "\(refused.text)")
        }
    }
}
