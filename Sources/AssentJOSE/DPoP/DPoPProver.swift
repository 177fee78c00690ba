package import AssentCore

/// Makes the proofs of one key, whose header is the same in all of them and is written once (RFC 9449 §4.2).
package struct DPoPProver: Sendable {
    private let key: any SigningKey
    private let header: JWS.EncodedHeader
    /// Nearly all proofs of a key go with one token.
    private let lastDigest = Locked<(token: Secret, digest: String)?>(nil)

    /// A maker of proofs.
    ///
    /// - Parameter key: the key that tokens are bound to; not a symmetric one.
    /// - Throws: ``JOSEError`` with `invalidKey` for a symmetric key, or `unsupportedAlgorithm`.
    package init(_ key: any SigningKey) throws(JOSEError) {
        let jwk = try JWK(publicKeyInfo: key.publicKeyInfo)
        self.key = key
        header = try JWS.EncodedHeader(
            JSONObject([
                .init(name: "typ", value: .string(DPoPProof.type)), .init(name: "jwk", value: jwk.json),
            ]), algorithm: key.algorithm)
    }

    /// The value of a `DPoP` header field for one request; see
    /// ``DPoPProof/make(method:uri:accessToken:nonce:key:clock:random:)``.
    ///
    /// - Throws: ``JOSEError`` with `malformed` when `uri` is not an HTTP URI; and what the key throws.
    package func proof(
        method: String, uri: String, accessToken: Secret? = nil, nonce: String? = nil, clock: any WallClock,
        random: any RandomSource = SystemRandom()
    ) async throws -> String {
        let more = JSONObject(
            omittingNil: [
                "ath": accessToken.map { .string(digest($0)) }, "nonce": nonce.map { .string($0) },
            ])
        return try await proof(method: method, uri: uri, more: more, clock: clock, random: random)
    }

    private func digest(_ token: Secret) -> String {
        lastDigest.withLock { last in
            // Usually it is a copy of the token that is kept here and shares its memory. Comparing the bytes in
            // constant time takes about as long as hashing them.
            if let last, last.token.isCopy(of: token) || last.token == token { return last.digest }
            let digest = DPoPProof.digest(token)
            last = (token, digest)
            return digest
        }
    }

    /// The same, with any claims besides those that each proof has.
    package func proof(
        method: String, uri: String, more: JSONObject, clock: any WallClock, random: any RandomSource
    ) async throws -> String {
        guard let target = HTTPTarget(uri) else { throw JOSEError(.malformed, "The address is not an HTTP URI.") }
        let claims = [
            JSONObject.Member(name: "jti", value: .string(random.token())),
            JSONObject.Member(name: "htm", value: .string(method)),
            JSONObject.Member(name: "htu", value: .string(target.text)),
            JSONObject.Member(name: "iat", value: .integer(clock.epochSeconds)),
        ]
        let payload = JSONValue.object(JSONObject(claims + more.members)).serializedBytes()
        return try await JWS.sign(payload, header: header, with: key)
    }
}
