package import AssentCore
import AssentJOSE

/// A signed message whose form is right and whose signature nobody has verified yet.
package struct UnverifiedMessage<Content: SignedContent>: Sendable {
    package let compact: String

    /// The key that is said to have signed it.
    package let kid: KeyThumbprint

    /// What it says, of which nobody has proved anything.
    package let content: Content

    private let message: UnverifiedJWS

    /// Reads a message.
    package init(_ compact: String) throws(SigningProtocolError) {
        let type = Content.type
        guard compact.utf8.count <= type.limit else {
            throw SigningProtocolError(.tooLarge, "A message \(type.rawValue) has at most \(type.limit) characters.")
        }
        do {
            message = try UnverifiedJWS.parse(compact, limit: type.limit)
        } catch {
            throw SigningProtocolError(.malformed, "It is not a signed message of this protocol. \(error.detail)")
        }
        let header = message.header
        guard header["alg"] == "ES256", let typ = header["typ"], let text = header["kid"]?.string,
            header.members.count == 3
        else {
            throw SigningProtocolError(
                .malformed, "The header of a signed message has exactly alg (ES256), typ and kid.")
        }
        guard typ == .string(type.rawValue) else {
            throw SigningProtocolError(.wrongType, "It is not a message \(type.rawValue).")
        }
        guard let kid = KeyThumbprint(text: text) else {
            throw SigningProtocolError(.malformed, "The header's kid is not a thumbprint.")
        }
        content = try Content(plaintext: message.payload, limit: type.contentLimit)
        (self.kid, self.compact) = (kid, compact)
    }

    /// Verifies the signature with a key that was stored under the message's `kid`.
    ///
    /// - Throws: ``SigningProtocolError`` with `unknownKey` when the key is another one, or `invalidSignature`.
    package func verified(with key: ProtocolKey) throws(SigningProtocolError) -> SignedMessage<Content> {
        guard kid == key.thumbprint else {
            throw SigningProtocolError(.unknownKey, "The message is signed by another key.")
        }
        do {
            _ = try message.verified(with: key.jwk, algorithms: [.es256])
        } catch {
            throw SigningProtocolError(.invalidSignature, "The signature of the message is not good.")
        }
        return SignedMessage(compact: compact, kid: kid, content: content)
    }
}

extension UnverifiedMessage where Content: SelfSignedContent {
    /// Verifies the signature with the key in the message.
    ///
    /// - Throws: ``SigningProtocolError`` with `unknownKey` or `invalidSignature`.
    package func verifiedByItself() throws(SigningProtocolError) -> SignedMessage<Content> {
        try verified(with: content.signer)
    }
}

/// A signed message whose signature is good. Only ``UnverifiedMessage`` and ``sign(_:with:)`` make one.
package struct SignedMessage<Content: SignedContent>: Sendable {
    /// The message as it was sent: what hashes are over, and what is kept.
    package let compact: String

    package let kid: KeyThumbprint

    package let content: Content

    fileprivate init(compact: String, kid: KeyThumbprint, content: Content) {
        (self.compact, self.kid, self.content) = (compact, kid, content)
    }

    /// Reads and verifies a message with the key that `keys` has under its `kid`.
    package init(_ compact: String, keys: (KeyThumbprint) -> ProtocolKey?) throws(SigningProtocolError) {
        let message = try UnverifiedMessage<Content>(compact)
        guard let key = keys(message.kid) else {
            throw SigningProtocolError(.unknownKey, "The key that signed the message is not known.")
        }
        self = try message.verified(with: key)
    }

    /// Reads and verifies a message with one key.
    package init(_ compact: String, key: ProtocolKey) throws(SigningProtocolError) {
        self = try UnverifiedMessage(compact).verified(with: key)
    }

    /// Signs `content`.
    ///
    /// - Throws: ``SigningProtocolError`` when the key is not on P-256 or the message is too long, ``JOSEError``, and
    ///   what the key throws.
    package static func sign(_ content: Content, with key: any SigningKey) async throws -> SignedMessage {
        try await sign(content, with: key, named: try ProtocolKey(key).thumbprint)
    }

    /// The same with a key on P-256 whose thumbprint is known, so that it is not worked out for each message.
    ///
    /// - Throws: as ``sign(_:with:)``.
    package static func sign(
        _ content: Content, with key: any SigningKey, named kid: KeyThumbprint
    ) async throws -> SignedMessage {
        let payload = content.encoded()
        let header: JSONObject = ["typ": .string(Content.type.rawValue), "kid": kid.json]
        let compact = try await JWS.sign(payload, header: header, with: key)
        guard compact.utf8.count <= Content.type.limit, payload.count <= Content.type.contentLimit else {
            throw SigningProtocolError(.tooLarge, "The message \(Content.type.rawValue) would be too long.")
        }
        return SignedMessage(compact: compact, kid: kid, content: content)
    }
}
