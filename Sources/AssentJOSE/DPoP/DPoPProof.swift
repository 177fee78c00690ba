public import AssentCore
import Crypto
public import Foundation

/// A verified proof that the sender of an HTTP request holds a key (DPoP, RFC 9449 §4).
///
/// Someone who accepts one must still remember ``jti`` for the time that the proof is good, so that it is accepted
/// once.
public struct DPoPProof: Sendable {
    /// The `typ` of a proof.
    public static let type = "dpop+jwt"

    /// What verifies a proof unless the caller says otherwise. RS256 is not among them (FAPI 2.0 Security Profile,
    /// 5.4).
    public static let algorithms: Set<SignatureAlgorithm> = [.es256, .es384, .ps256, .edDSA]

    /// How many seconds after its `iat` a proof without a nonce is good.
    public static let maximumAge: TimeInterval = 60

    /// How many seconds the `iat` of a proof may lie ahead.
    public static let leeway: TimeInterval = 30

    private static let sizeLimit = 8 << 10
    private static let textLimit = 512

    /// Its key and the key's thumbprint, not copied: a key is large, and most callers need only the thumbprint.
    private let header: DPoPHeader

    /// The key that signed it.
    public var key: JWK { header.key }

    /// The unique name of this proof.
    public let jti: String

    /// When it was made.
    public let issuedAt: Date

    /// The server's nonce in it.
    public let nonce: String?

    /// What a handshake of payload encryption is proved by: the claim `pe`, where it is a text.
    package let payloadClaim: String?

    /// The key's thumbprint, as in a token's `cnf.jkt`.
    public var thumbprint: String { header.thumbprint }

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
    /// - Throws: ``JOSEError`` with `malformed` when `uri` is not an HTTP URI, `invalidKey` for a symmetric key; and
    ///   what the key throws.
    public static func make(
        method: String, uri: String, accessToken: Secret? = nil, nonce: String? = nil, key: any SigningKey,
        clock: any WallClock, random: any RandomSource = SystemRandom()
    ) async throws -> String {
        try await DPoPProver(key).proof(
            method: method, uri: uri, accessToken: accessToken, nonce: nonce, clock: clock, random: random)
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
    ///   - leeway: how many seconds `iat` may lie ahead.
    /// - Returns: the proof: its key and its `jti`.
    /// - Throws: ``JOSEError`` with the code of what is wrong; `wrongNonce` asks the client to try again with a new
    ///   nonce.
    public static func verify(
        _ proof: String, method: String, uri: String, accessToken: Secret? = nil, nonces: Set<String>? = nil,
        algorithms: Set<SignatureAlgorithm> = DPoPProof.algorithms, clock: any WallClock,
        maximumAge: TimeInterval = DPoPProof.maximumAge, leeway: TimeInterval = DPoPProof.leeway
    ) throws(JOSEError) -> DPoPProof {
        let read = try verifyUndated(
            proof, method: method, uri: uri, accessToken: accessToken, headers: DPoPHeaders(algorithms, limit: 0))
        try read.checkTime(clock: clock, maximumAge: maximumAge, leeway: leeway)
        if let nonces {
            guard let nonce = read.nonce, nonces.contains(where: { ConstantTime.equal($0, nonce) }) else {
                throw JOSEError(.wrongNonce)
            }
        }
        return read
    }

    /// Verifies all of a proof but its time: whether ``issuedAt`` or ``nonce`` is fresh is left to the caller, since
    /// either is enough (RFC 9449 §4.3, item 11). `exp` and `nbf` are claims of others and are not looked at.
    ///
    /// - Parameters:
    ///   - proof: the value of the `DPoP` header field.
    ///   - method: the request's method.
    ///   - uri: the request's URI as the client sees it; query and fragment do not matter.
    ///   - accessToken: the token that came with the request; `nil` at the token endpoint.
    ///   - tokenDigest: the token's SHA-256 as base64url, for somebody who has it already.
    ///   - headers: reads its header.
    /// - Returns: the proof.
    /// - Throws: ``JOSEError`` with the code of what is wrong.
    package static func verifyUndated(
        _ proof: String, method: String, uri: String, accessToken: Secret? = nil, tokenDigest: String? = nil,
        headers: DPoPHeaders = DPoPHeaders(limit: 0)
    ) throws(JOSEError) -> DPoPProof {
        let parts = try CompactParts(proof, limit: sizeLimit)
        let (header, isKnown) = try headers.header(parts.header)
        let (payload, signature) = try parts.decoded()
        guard header.isValid(signature, for: parts.signingInput) else { throw JOSEError(.invalidSignature) }
        if !isKnown { headers.remember(header, parts.header) }
        let claims = ProofClaims(try JWTClaims(payload: payload).object)
        if let name = claims.missing { throw JOSEError(.missingClaim(name)) }
        let jti = try text(claims.jti, "jti")
        guard !jti.isEmpty else { throw JOSEError(.malformedClaim("jti")) }
        guard let issuedAt = claims.iat.flatMap(JWTClaims.time) else { throw JOSEError(.malformedClaim("iat")) }
        guard try text(claims.htm, "htm").hasSameBytes(as: method) else { throw JOSEError(.wrongMethod) }
        guard let written = claims.htu?.string, let htu = HTTPTarget(written) else {
            throw JOSEError(.malformedClaim("htu"))
        }
        // Most clients write it as the server does, and then one reading is enough.
        guard written.hasSameBytes(as: uri) || HTTPTarget(uri) == htu else { throw JOSEError(.wrongURI) }
        if let accessToken {
            guard let ath = claims.ath else { throw JOSEError(.missingClaim("ath")) }
            guard ConstantTime.equal(try text(ath, "ath"), tokenDigest ?? digest(accessToken)) else {
                throw JOSEError(.wrongAccessToken)
            }
        }
        let nonce = claims.nonce == nil ? nil : try text(claims.nonce, "nonce")
        return DPoPProof(
            header: header, jti: jti, issuedAt: issuedAt, nonce: nonce, payloadClaim: claims.pe?.string)
    }

    /// Makes sure that ``issuedAt`` lies neither too far back nor too far ahead.
    ///
    /// - Parameters:
    ///   - clock: where the time comes from.
    ///   - maximumAge: how many seconds after `iat` a proof is good.
    ///   - leeway: how many seconds `iat` may lie ahead.
    /// - Throws: ``JOSEError`` with `tooOld` or `issuedInFuture`.
    package func checkTime(
        clock: any WallClock, maximumAge: TimeInterval = DPoPProof.maximumAge,
        leeway: TimeInterval = DPoPProof.leeway
    ) throws(JOSEError) {
        let age = clock.now.timeIntervalSince(issuedAt)
        guard age <= max(0, maximumAge) else { throw JOSEError(.tooOld) }
        guard age >= -max(0, leeway) else { throw JOSEError(.issuedInFuture) }
    }

    private static func text(_ claim: JSONValue?, _ name: String) throws(JOSEError) -> String {
        guard let text = claim?.string, text.utf8.count <= textLimit else {
            throw JOSEError(.malformedClaim(name))
        }
        return text
    }

    /// `ath`: the access token's SHA-256 as base64url (RFC 9449 §4.2).
    static func digest(_ token: Secret) -> String {
        token.withUnsafeBytes { bytes in
            var hash = SHA256()
            hash.update(bufferPointer: bytes)
            return hash.finalize().withUnsafeBytes { Base64URL.encode($0) }
        }
    }
}
