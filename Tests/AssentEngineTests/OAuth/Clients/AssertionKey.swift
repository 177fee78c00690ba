import AssentCore
import AssentJOSE
import AssentTesting

@testable import AssentEngine

/// A client's key in a test, and the assertions that it signs: right ones, and ones that are wrong in one place.
struct AssertionKey: Sendable {
    let key: SoftwareSigningKey
    let jwk: JWK

    init(_ algorithm: SignatureAlgorithm = .es256, keyID: String? = nil) throws {
        key = try SoftwareSigningKey.generate(algorithm, rsaBits: 2048)
        jwk = try JWK(publicKeyInfo: key.publicKeyInfo, keyID: keyID)
    }

    /// A confidential client with these keys, which may do whatever a client can.
    static func client(
        _ keys: [AssertionKey], id: String = "office", algorithms: Set<SignatureAlgorithm>? = nil
    ) -> OAuthClient {
        var own = ClientKeys(.listed(JWKSet(keys.map(\.jwk))))
        if let algorithms { own.algorithms = algorithms }
        var client = OAuthClient(
            id: id, kind: .keyed(own), redirectURIs: ["https://office.example/cb"], scopes: ["openid", "accounts"])
        client.grantTypes = Set(OAuthClient.GrantType.allCases)
        client.defaultScopes = ["accounts"]
        client.idTokenAlgorithm = .es256
        return client
    }

    /// An assertion, after a change to its header and to its claims. It is built by hand, so that it can have what
    /// nobody makes who means well.
    func assertion(
        of client: String = "office", now clock: any WallClock,
        header changeHeader: (inout JSONObject) -> Void = { _ in },
        claims changeClaims: (inout JSONObject) -> Void = { _ in }
    ) async throws -> String {
        var header: JSONObject = ["alg": .string(key.algorithm.rawValue)]
        changeHeader(&header)
        let now = clock.epochSeconds
        var claims: JSONObject = [
            "iss": .string(client), "sub": .string(client), "aud": .string(ProviderFixture.issuer),
            "jti": .string(SystemRandom().token()), "iat": .integer(now), "exp": .integer(now + 60),
        ]
        changeClaims(&claims)
        return try await signed(
            header: JSONValue.object(header).serializedBytes(), claims: JSONValue.object(claims).serializedBytes())
    }

    /// Any header and any claims, signed.
    func signed(header: [UInt8], claims: [UInt8]) async throws -> String {
        let input = Base64URL.encode(header) + "." + Base64URL.encode(claims)
        return input + "." + Base64URL.encode(try await key.signature(for: Array(input.utf8)))
    }

    /// What a form has with an assertion.
    static func form(_ assertion: String, _ changes: [String: String?] = [:]) -> [String: String?] {
        changes.merging([
            "client_id": nil, "client_assertion": assertion, "client_assertion_type": ClientAssertion.parameterType,
        ]) { changed, _ in changed }
    }
}

extension ProviderFixture {
    /// The form by which the client `office` asks for a token of its own.
    static func ownToken(_ assertion: String, _ changes: [String: String?] = [:]) throws -> OAuthParameters {
        try parameters(["grant_type": "client_credentials"], AssertionKey.form(assertion, changes))
    }

    /// The error of a request for a token of its own; `nil` when there is a token.
    func refusal(
        _ assertion: String, _ changes: [String: String?] = [:], authorization: String? = nil
    ) async throws -> String? {
        do {
            _ = try await grants.tokens(try Self.ownToken(assertion, changes), authorization: authorization)
            return nil
        } catch let error as OAuthError {
            return error.code.rawValue
        }
    }
}
