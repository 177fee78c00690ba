import AssentCore
import AssentJOSE

/// A client's key in a test, and the proofs that it makes: right ones, and ones that are wrong in one place.
struct ProofKey: Sendable {
    let key: SoftwareSigningKey
    let jwk: JWK

    /// As a token's `cnf.jkt`.
    var thumbprint: String { jwk.thumbprint }

    init(_ algorithm: SignatureAlgorithm = .es256) throws {
        key = try SoftwareSigningKey.generate(algorithm, rsaBits: 2048)
        jwk = try JWK(publicKeyInfo: key.publicKeyInfo)
    }

    /// What a proof is about.
    struct Subject: Sendable {
        var method = "GET"
        /// As the server's public address has it.
        var url: String
        var token: String
        var nonce: String?
        /// Seconds since 1970.
        var issuedAt: Int64
    }

    /// A proof about `subject`, after a change to its header and to its claims. It is built by hand, so that it can
    /// have what nobody makes who means well.
    func proof(
        _ subject: Subject, header changeHeader: (inout JSONObject) -> Void = { _ in },
        claims changeClaims: (inout JSONObject) -> Void = { _ in }
    ) async throws -> String {
        var header: JSONObject = ["typ": "dpop+jwt", "alg": .string(key.algorithm.rawValue), "jwk": jwk.json]
        changeHeader(&header)
        var claims: JSONObject = [
            "jti": .string(SystemRandom().token()), "htm": .string(subject.method), "htu": .string(subject.url),
            "iat": .integer(subject.issuedAt),
            "ath": .string(Base64URL.encode(Array(SHA2.sha256(subject.token.utf8)))),
        ]
        claims["nonce"] = subject.nonce.map(JSONValue.string)
        changeClaims(&claims)
        let input =
            Base64URL.encode(JSONValue.object(header).serializedBytes()) + "."
            + Base64URL.encode(JSONValue.object(claims).serializedBytes())
        return input + "." + Base64URL.encode(try await key.signature(for: Array(input.utf8)))
    }

    /// What a form has with a new assertion of the client whose key this is, which is valid so many seconds from `now`
    /// on.
    func assertion(
        of client: String, to audience: String, at now: Int64, seconds: Int64 = 300
    ) async throws -> [(String, String)] {
        var claims = JWTClaims()
        (claims.iss, claims.sub) = (client, client)
        claims.aud = [audience]
        claims.jti = SystemRandom().token()
        claims["iat"] = .integer(now)
        claims["exp"] = .integer(now + seconds)
        return [
            ("client_assertion", try await JWS.sign(claims.payload, with: key)),
            ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
        ]
    }
}
