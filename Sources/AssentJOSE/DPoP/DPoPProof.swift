public import AssentCore
import Crypto
public import Foundation

/// A verified proof that the sender of an HTTP request holds a key (DPoP, RFC 9449 §4).
///
/// Whoever accepts one must still remember ``jti`` for the time that the proof is good, so that it is accepted once.
public struct DPoPProof: Sendable {
    /// The `typ` of a proof.
    public static let type = "dpop+jwt"

    /// What verifies a proof unless the caller says otherwise: every asymmetric algorithm here.
    public static let algorithms: Set<SignatureAlgorithm> = [.es256, .es384, .es512, .rs256, .ps256, .edDSA]

    private static let sizeLimit = 8 << 10
    private static let textLimit = 512

    /// The key that signed it.
    public let key: JWK

    /// The unique name of this proof.
    public let jti: String

    /// When it was made.
    public let issuedAt: Date

    /// The server's nonce in it.
    public let nonce: String?

    /// The key's thumbprint, as in a token's `cnf.jkt`.
    public var thumbprint: String { key.thumbprint }

    /// Makes the value of a `DPoP` header field for one request.
    ///
    /// - Parameters:
    ///   - method: the request's method.
    ///   - uri: the request's URI; query and fragment do not matter.
    ///   - accessToken: the token that is sent with the request, if any.
    ///   - nonce: the newest that the server gave, if it gave any.
    ///   - key: the key that tokens are bound to; not a symmetric one.
    ///   - clock: where `iat` comes from.
    ///   - random: where `jti` comes from.
    /// - Returns: the proof.
    /// - Throws: ``JOSEError`` with `malformed` when `uri` is no HTTP URI, `invalidKey` for a symmetric key; and what
    ///   the key throws.
    public static func make(
        method: String, uri: String, accessToken: Secret? = nil, nonce: String? = nil, key: any SigningKey,
        clock: any WallClock, random: any RandomSource = SystemRandom()
    ) async throws -> String {
        guard let target = HTTPTarget(uri) else { throw JOSEError(.malformed, "The address is not an HTTP URI.") }
        let jwk = try JWK(publicKeyInfo: key.publicKeyInfo)
        var claims = JWTClaims()
        claims.jti = random.token()
        claims["htm"] = .string(method)
        claims["htu"] = .string(target.text)
        claims["iat"] = .integer(clock.epochSeconds)
        claims["ath"] = accessToken.map { .string(digest($0)) }
        claims["nonce"] = nonce.map(JSONValue.string)
        let header = JSONObject([.init(name: "typ", value: .string(type)), .init(name: "jwk", value: jwk.json)])
        return try await JWS.sign(claims.payload, header: header, with: key)
    }

    /// Verifies the one value of a request's `DPoP` header field.
    ///
    /// - Parameters:
    ///   - proof: the value.
    ///   - method: the request's method.
    ///   - uri: the request's URI as the client sees it; query and fragment do not matter.
    ///   - accessToken: the token that came with the request; `nil` at the token endpoint.
    ///   - nonces: those that are good now; `nil` when the server gives none.
    ///   - algorithms: those that are accepted.
    ///   - clock: where the time comes from.
    ///   - maximumAge: how many seconds after `iat` a proof is good.
    ///   - leeway: how many seconds the client's clock may differ.
    /// - Returns: the proof: its key and its `jti`.
    /// - Throws: ``JOSEError`` with the code of what is wrong; `wrongNonce` asks the client to try again with a new
    ///   nonce.
    public static func verify(
        _ proof: String, method: String, uri: String, accessToken: Secret? = nil, nonces: Set<String>? = nil,
        algorithms: Set<SignatureAlgorithm> = DPoPProof.algorithms, clock: any WallClock,
        maximumAge: TimeInterval = 60, leeway: TimeInterval = 10
    ) throws(JOSEError) -> DPoPProof {
        let message = try UnverifiedJWS.parse(proof, limit: sizeLimit)
        guard let jwk = message.header["jwk"] else {
            throw JOSEError(.malformed, "The proof has no jwk in its header.")
        }
        let key = try JWK(jwk)
        let verified = try message.verified(with: key, algorithms: algorithms)
        let rules = JWTValidation(
            issuer: nil, audience: nil, clock: clock, leeway: leeway, requiredType: type,
            requiredClaims: ["jti", "htm", "htu", "iat"], maximumAge: maximumAge)
        let claims = try rules.validate(verified)
        let jti = try text(claims, "jti")
        guard !jti.isEmpty else { throw JOSEError(.malformedClaim("jti")) }
        guard try text(claims, "htm").utf8.elementsEqual(method.utf8) else { throw JOSEError(.wrongMethod) }
        guard let htu = claims["htu"]?.string.flatMap(HTTPTarget.init) else { throw JOSEError(.malformedClaim("htu")) }
        guard let target = HTTPTarget(uri), target == htu else { throw JOSEError(.wrongURI) }
        if let accessToken {
            guard claims["ath"] != nil else { throw JOSEError(.missingClaim("ath")) }
            guard ConstantTime.equal(try text(claims, "ath"), digest(accessToken)) else {
                throw JOSEError(.wrongAccessToken)
            }
        }
        let nonce = claims["nonce"] == nil ? nil : try text(claims, "nonce")
        if let nonces {
            guard let nonce, nonces.contains(where: { ConstantTime.equal($0, nonce) }) else {
                throw JOSEError(.wrongNonce)
            }
        }
        guard let issuedAt = claims.iat else { throw JOSEError(.missingClaim("iat")) }
        return DPoPProof(key: key, jti: jti, issuedAt: issuedAt, nonce: nonce)
    }

    private static func text(_ claims: JWTClaims, _ name: String) throws(JOSEError) -> String {
        guard let text = claims[name]?.string, text.utf8.count <= textLimit else {
            throw JOSEError(.malformedClaim(name))
        }
        return text
    }

    /// `ath`: the access token's SHA-256 as base64url (RFC 9449 §4.2).
    private static func digest(_ token: Secret) -> String {
        token.withUnsafeBytes { bytes in
            var hash = SHA256()
            hash.update(bufferPointer: bytes)
            return Base64URL.encode(Array(hash.finalize()))
        }
    }
}
