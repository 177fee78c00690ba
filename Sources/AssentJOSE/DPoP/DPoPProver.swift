package import AssentCore

/// Makes the proofs of one key, whose header is the same in all of them and is written once (RFC 9449 §4.2).
package struct DPoPProver: Sendable {
    private let key: any SigningKey
    private let header: JWS.EncodedHeader
    /// Nearly all proofs of a key go with one token.
    private let last = Locked<Shown?>(nil)

    /// What is the same in all requests with one token.
    private struct Shown: Sendable {
        let token: Secret
        /// The claim `ath`.
        let digest: String
        /// The value of `Authorization`, once it was asked for.
        var authorization: Secret?

        init(_ token: Secret) {
            self.token = token
            digest = DPoPProof.digest(token)
        }

        func isOf(_ token: Secret) -> Bool {
            // Usually it is a copy of the token that is kept here and shares its memory. Comparing the bytes in
            // constant time takes about as long as hashing them.
            self.token.isCopy(of: token) || self.token == token
        }
    }

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
        var claims = try Self.claims(method: method, uri: uri, clock: clock, random: random)
        if let accessToken { Self.append("ath", .string(digest(accessToken)), to: &claims) }
        if let nonce { Self.append("nonce", .string(nonce), to: &claims) }
        claims.append(UInt8(ascii: "}"))
        return try await JWS.sign(claims, header: header, with: key)
    }

    private func digest(_ token: Secret) -> String {
        last.withLock { last in
            if let last, last.isOf(token) { return last.digest }
            let shown = Shown(token)
            last = shown
            return shown.digest
        }
    }

    /// The value of `Authorization` with a token that belongs to the key (RFC 9449 §7.1).
    package func authorization(_ token: Secret) -> Secret {
        last.withLock { last in
            if let last, let known = last.authorization, last.isOf(token) { return known }
            let field = Secret(TokenScheme.dpop.field(token))
            if last?.isOf(token) != true { last = Shown(token) }
            last?.authorization = field
            return field
        }
    }

    /// The same, with any claims besides those that each proof has.
    package func proof(
        method: String, uri: String, more: JSONObject, clock: any WallClock, random: any RandomSource
    ) async throws -> String {
        var claims = try Self.claims(method: method, uri: uri, clock: clock, random: random)
        for member in more.members { Self.append(member.name, member.value, to: &claims) }
        claims.append(UInt8(ascii: "}"))
        return try await JWS.sign(claims, header: header, with: key)
    }

    /// The claims that each proof has, without the bracket behind them. They are written as they stand in the text: a
    /// client signs a proof for each call, and an object for it would be put together and taken apart again.
    private static func claims(
        method: String, uri: String, clock: any WallClock, random: any RandomSource
    ) throws(JOSEError) -> [UInt8] {
        guard let target = HTTPTarget(uri) else { throw JOSEError(.malformed, "The address is not an HTTP URI.") }
        var text: [UInt8] = []
        text.reserveCapacity(target.text.utf8.count + 320)
        text += #"{"jti":""#.utf8
        // 43 characters of base64url, none of which is escaped.
        Base64URL.append(random.bytes(32), to: &text)
        text += #"","htm":"#.utf8
        JSONValue.append(method, to: &text)
        text += #","htu":"#.utf8
        JSONValue.append(target.text, to: &text)
        text += #","iat":"#.utf8
        text += clock.epochSeconds.description.utf8
        return text
    }

    private static func append(_ name: String, _ value: JSONValue, to claims: inout [UInt8]) {
        claims.append(UInt8(ascii: ","))
        JSONValue.append(name, to: &claims)
        claims.append(UInt8(ascii: ":"))
        value.append(to: &claims)
    }
}
