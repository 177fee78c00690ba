import AssentCore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("When the proof of a token request is spent")
struct ProofClaimTests {
    private static let key = Base64URL.encode([UInt8](repeating: 1, count: 32))
    private static let otherKey = Base64URL.encode([UInt8](repeating: 2, count: 32))

    /// A provider, and how many proofs it has spent.
    private struct Place {
        let fixture: ProviderFixture
        let claims = Locked(0)

        init() async throws { fixture = try await ProviderFixture() }

        /// The token endpoint. With `isUsed`, the proof turns out to be used before.
        func ask(
            _ parameters: OAuthParameters, isUsed: Bool = false, key: String? = key
        ) async throws -> IssuedTokens {
            let caller = try await fixture.grants.clients.client(of: parameters, authorization: nil, at: .token)
            let proof = key.map { TokenRequestProof(keyThumbprint: $0) }
            return try await fixture.grants.tokens(parameters, of: caller, proof: proof) {
                claims.withLock { $0 += 1 }
                if isUsed { throw SenderProofRefusal(.invalidProof, "used") }
            }
        }
    }

    private static func form(code: String, _ changes: [String: String?] = [:]) throws -> OAuthParameters {
        try ProviderFixture.parameters(
            [
                "grant_type": "authorization_code", "client_id": "bank-app", "code": code,
                "redirect_uri": "https://bank.example/cb", "code_verifier": ProviderFixture.verifier,
            ], changes)
    }

    private static func form(refresh: Secret?, _ changes: [String: String?] = [:]) throws -> OAuthParameters {
        try ProviderFixture.parameters(
            [
                "grant_type": "refresh_token", "client_id": "bank-app", "refresh_token": refresh?.reveal() ?? "",
            ], changes)
    }

    @Test("A request without anything that is valid spends no proof, so nobody can fill the memory of them with it")
    func nothingValid() async throws {
        let place = try await Place()
        let code = try await place.fixture.code(["dpop_jkt": Self.key])
        let unspent = try await place.fixture.code()
        var forms = [
            try Self.form(code: "made-up"), try Self.form(refresh: Secret("made-up")),
            try Self.form(code: unspent, ["client_id": "other-app", "redirect_uri": "https://other.example/cb"]),
            try Self.form(code: unspent, ["redirect_uri": "http://127.0.0.1/cb"]),
            try Self.form(code: unspent, ["code_verifier": String(repeating: "x", count: 43)]),
        ]
        await #expect(throws: OAuthError.invalidGrant) {
            try await place.ask(try Self.form(code: code), key: Self.otherKey)
        }
        let first = try await place.ask(try Self.form(code: code))
        #expect(place.claims.withLock { $0 } == 1)
        forms += [
            try Self.form(refresh: first.refreshToken, ["client_id": "other-app"]),
            try Self.form(refresh: first.refreshToken, ["scope": "payments"]),
        ]
        await #expect(throws: OAuthError.invalidGrant) {
            try await place.ask(try Self.form(refresh: first.refreshToken), key: Self.otherKey)
        }
        for form in forms { await #expect(throws: OAuthError.self) { try await place.ask(form) } }
        let late = try await place.fixture.code()
        place.fixture.clock.advance(by: 61)
        await #expect(throws: OAuthError.invalidGrant) { try await place.ask(try Self.form(code: late)) }
        #expect(place.claims.withLock { $0 } == 1)

        // A second use ends the grant, once; afterwards there is nothing valid any more.
        for _ in 0..<2 {
            await #expect(throws: OAuthError.invalidGrant) { try await place.ask(try Self.form(code: code)) }
        }
        await #expect(throws: OAuthError.invalidGrant) {
            try await place.ask(try Self.form(refresh: first.refreshToken))
        }
        #expect(place.claims.withLock { $0 } == 2)
    }

    @Test("After a proof that was used before, nothing is spent and nothing has ended")
    func usedProof() async throws {
        let place = try await Place()
        let code = try await place.fixture.code()
        let exchange = try Self.form(code: code)
        func refused(_ form: OAuthParameters) async {
            await #expect(throws: SenderProofRefusal.self) { try await place.ask(form, isUsed: true) }
        }
        await refused(exchange)
        let first = try await place.ask(exchange)
        // As when somebody sends the whole request again.
        await refused(exchange)
        let refresh = try Self.form(refresh: first.refreshToken)
        await refused(refresh)
        let second = try await place.ask(refresh)
        await refused(refresh)
        let third = try await place.ask(try Self.form(refresh: second.refreshToken))
        #expect(try await place.fixture.count("grants", where: "revoked_at IS NULL") == 1)
        await #expect(throws: OAuthError.invalidGrant) { try await place.ask(refresh) }
        await #expect(throws: OAuthError.invalidGrant) {
            try await place.ask(try Self.form(refresh: third.refreshToken))
        }
    }
}
