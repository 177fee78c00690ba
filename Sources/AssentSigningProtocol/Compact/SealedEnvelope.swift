package import AssentCore
import AssentJOSE

/// Encrypting and decrypting (TSP/1 "JWE"). An envelope says nothing about its sender: a request gets its sender from
/// its proof, a reply from the signed message inside.
package struct SealedEnvelope: Sendable {
    /// What is inside.
    package enum Content: String, Hashable, Sendable {
        case request = "json"
        case reply = "JWT"
    }

    /// The key to which it is said to be encrypted.
    package let kid: KeyThumbprint

    /// The sender's name as the envelope says: for `start`, by which a server finds out whose device key it is. Nobody
    /// has proved it. `nil` when it is not ASCII.
    package var claimedSender: String? {
        guard let text = message.header["apu"]?.string, let bytes = Base64URL.decode(text),
            bytes.allSatisfy(\.isASCIIPrintable)
        else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    private let message: SealedJWE

    /// Reads an envelope without opening it.
    ///
    /// - Throws: ``SigningProtocolError`` with `tooLarge` or `malformed`.
    package init(_ compact: String) throws(SigningProtocolError) {
        guard compact.utf8.count <= MessageType.maximumBody else {
            throw SigningProtocolError(.tooLarge, "An encrypted message has at most \(MessageType.maximumBody) bytes.")
        }
        do {
            message = try SealedJWE.parse(compact, limit: MessageType.maximumBody)
        } catch {
            throw SigningProtocolError(.malformed, "It is not an encrypted message of this protocol. \(error.detail)")
        }
        let header = message.header
        let names = ["alg", "enc", "cty", "kid", "apu", "apv", "epk"]
        guard header.members.count == names.count, names.allSatisfy({ header[$0] != nil }), header["alg"] == "ECDH-ES",
            header["enc"] == "A256GCM", let kid = header["kid"]?.string.flatMap({ KeyThumbprint(text: $0) }),
            let epk = header["epk"]
        else {
            throw SigningProtocolError(
                .malformed, "The header of an encrypted message has exactly \(names.joined(separator: ", ")).")
        }
        _ = try ProtocolKey(epk, at: "epk")
        self.kid = kid
    }

    /// Compares the header with what is expected, and decrypts. A name is `iss`, or a device's `did` (for `start` the
    /// thumbprint of its device key).
    ///
    /// - Throws: ``SigningProtocolError`` with `wrongRecipient` before it decrypts, or `decryptionFailed`; and what the
    ///   key throws.
    package func opened(
        with key: any KeyAgreementKey, content: Content, sender: String, recipient: String
    ) async throws -> [UInt8] {
        try await opened(
            with: key, named: try ProtocolKey(key).thumbprint, content: content, sender: sender, recipient: recipient)
    }

    /// The same with a key whose thumbprint is known, so that it is not worked out for each message.
    ///
    /// - Throws: as ``opened(with:content:sender:recipient:)``.
    package func opened(
        with key: any KeyAgreementKey, named name: KeyThumbprint, content: Content, sender: String, recipient: String
    ) async throws -> [UInt8] {
        let header = message.header
        guard kid == name, header["cty"] == .string(content.rawValue),
            header["apu"] == .string(Self.encoded(sender)), header["apv"] == .string(Self.encoded(recipient))
        else {
            throw SigningProtocolError(
                .wrongRecipient, "The message is encrypted for somebody else, or by somebody else, than expected.")
        }
        do {
            return try await message.opened(with: key).plaintext
        } catch is JOSEError {
            throw SigningProtocolError(.decryptionFailed, "The message cannot be decrypted.")
        }
    }

    /// Encrypts, and returns the compact JWE. The initialization vector comes from `random`.
    ///
    /// - Throws: ``SigningProtocolError`` with `tooLarge`, or `malformed` when it could not be encrypted.
    package static func seal(
        _ plaintext: [UInt8], to key: ProtocolKey, content: Content, sender: String, recipient: String,
        random: any RandomSource = SystemRandom()
    ) throws(SigningProtocolError) -> String {
        let header: JSONObject = [
            "cty": .string(content.rawValue), "kid": key.thumbprint.json, "apu": .string(encoded(sender)),
            "apv": .string(encoded(recipient)),
        ]
        let compact: String
        do {
            compact = try JWE.encrypt(plaintext, to: key.jwk, algorithm: .ecdhES, header: header, random: random)
        } catch {
            throw SigningProtocolError(.malformed, "The message could not be encrypted. \(error.detail)")
        }
        guard compact.utf8.count <= MessageType.maximumBody else {
            throw SigningProtocolError(.tooLarge, "An encrypted message has at most \(MessageType.maximumBody) bytes.")
        }
        return compact
    }

    private static func encoded(_ name: String) -> String { Base64URL.encode(Array(name.utf8)) }
}
