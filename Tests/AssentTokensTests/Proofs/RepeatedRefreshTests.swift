import AssentCore
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import Testing

@Suite("Refreshes that a proxy sends twice, so that the client gets the answer to the second copy")
struct RepeatedRefreshTests {
    /// Gives a provider attempts as Assent's server has them: another attempt with a spent refresh token is reuse.
    /// While the returned switch is on, each refresh arrives twice.
    private func repeating(_ provider: FakeProvider) -> Locked<Bool> {
        let isOn = Locked(false)
        let spent = Locked<[String: String]>([:])
        provider.change { behaviour in
            behaviour.discovery["assent_refresh_attempt_supported"] = true
            let good = behaviour.tokenReply
            behaviour.tokenReply = { form in
                guard let token = form["refresh_token"] else { return try await good?(form) }
                let first = try await good?(form)
                if first?.status == 200 {
                    let attempt = form["attempt_id"] ?? ""
                    let isReuse = spent.withLock { spent in
                        defer { spent[token] = spent[token] ?? attempt }
                        return spent[token] != nil && spent[token] != attempt
                    }
                    if isReuse { return .json(400, ["error": "invalid_grant"]) }
                }
                return isOn.withLock { $0 } ? try await good?(form) : first
            }
        }
        return isOn
    }

    private func attempts(_ provider: FakeProvider) -> [String?] {
        provider.tokenRequests("refresh_token").map { $0.form["attempt_id"] }
    }

    /// The app loses its session, which would get tokens where the refresh token does not.
    private func forgetSession(_ provider: FakeProvider) async throws {
        let name = try #require(await provider.store.names().first { $0.hasPrefix("session.") })
        try await provider.store.update(name, to: nil, expected: .any)
    }

    @Test("A proof that was used before: the next refresh is the same attempt, so the grant lives on")
    func proof() async throws {
        let provider = try FakeProvider()
        let ring = KeyRing()
        provider.binds(ProofDoor(provider.clock))
        let isRepeating = repeating(provider)
        let stored = try await provider.boundSignedIn(ring).tokens()
        try await forgetSession(provider)
        provider.clock.advance(by: 601)
        isRepeating.withLock { $0 = true }
        let error = await #expect(throws: TokenError.self) { try await provider.bound(ring).tokens() }
        #expect(error?.code == .tokenRefused && error?.oauthError == "invalid_dpop_proof")
        #expect(try await provider.bound(ring).storedTokens() == stored)
        isRepeating.withLock { $0 = false }
        #expect(try await provider.bound(ring).tokens().isBound)
        let attempts = attempts(provider)
        #expect(attempts.count == 2 && Set(attempts).count == 1 && attempts[0] != nil)
    }

    @Test("An assertion that was used before: the next refresh is the same attempt, so the grant lives on")
    func assertion() async throws {
        let provider = try FakeProvider()
        let ring = KeyRing()
        provider.authenticates(
            by: ClientDoor(try await ClientKey.make(named: "bank", at: ring).keySet, clock: provider.clock))
        let isRepeating = repeating(provider)
        let stored = try await provider.clientSignedIn(ring).tokens()
        try await forgetSession(provider)
        provider.clock.advance(by: 601)
        func again() throws -> TokenManager {
            try provider.manager { $0.clientAuthentication = .privateKeyJWT(keys: ring, named: "bank") }
        }
        isRepeating.withLock { $0 = true }
        let error = await #expect(throws: TokenError.self) { try await again().tokens() }
        #expect(error?.code == .tokenRefused && error?.oauthError == "invalid_client")
        #expect(try await again().storedTokens() == stored)
        isRepeating.withLock { $0 = false }
        #expect(try await again().tokens().accessToken != stored.accessToken)
        let attempts = attempts(provider)
        #expect(attempts.count == 2 && Set(attempts).count == 1 && attempts[0] != nil)
    }

    @Test("What no second copy is answered with ends the attempt: nothing has happened, and the next one is another")
    func nothingHappened() async throws {
        for isBound in [true, false] {
            let provider = try FakeProvider()
            let (door, ring) = (ProofDoor(provider.clock), KeyRing())
            if isBound { provider.binds(door) }
            _ = repeating(provider)
            let manager = try await isBound ? provider.boundSignedIn(ring) : provider.signedIn()
            _ = try await manager.tokens()
            try await forgetSession(provider)
            provider.clock.advance(by: 601)
            let good = try #require(provider.behaviour.withLock { $0.tokenReply })
            if isBound {
                door.change { $0.isNeverContent = true }
            } else {
                provider.change { $0.tokenReply = { _ in .json(401, ["error": "invalid_client"]) } }
            }
            let error = await #expect(throws: TokenError.self) { try await manager.tokens() }
            #expect(error?.oauthError == (isBound ? "use_dpop_nonce" : "invalid_client"))
            door.change { ($0.isNeverContent, $0.nonce) = (false, nil) }
            provider.change { $0.tokenReply = good }
            _ = try await manager.tokens()
            let attempts = attempts(provider)
            #expect(attempts.first != attempts.last && Set(attempts).count == 2 && !attempts.contains(nil))
        }
    }
}
