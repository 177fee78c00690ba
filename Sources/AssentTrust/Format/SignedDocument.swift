import AssentCore
import AssentJOSE
import AssentSigningProtocol

/// A signed document whose form is right and whose signature nobody has verified yet: compact, ES256, and with exactly
/// `alg`, `typ` and `kid` in its header.
struct SignedDocument {
    /// What a document is.
    struct Kind: Sendable {
        /// The `typ` in the header.
        let type: String
        /// What it is called in errors, with a small letter.
        let name: String

        static let trustFile = Kind(type: TrustFile.type, name: "trust file")
        static let deviceConfiguration = Kind(type: DeviceConfigurationContent.type, name: "device configuration")
    }

    let compact: String
    let kid: KeyThumbprint
    private let kind: Kind
    private let message: UnverifiedJWS

    /// - Throws: ``TrustFileError``.
    init(_ text: String, _ kind: Kind) throws(TrustFileError) {
        guard text.utf8.count <= TrustFile.limit else {
            throw TrustFileError(.tooLarge, "A \(kind.name) has at most 64 KiB.")
        }
        do throws(JOSEError) {
            message = try UnverifiedJWS.parse(text, limit: TrustFile.limit)
        } catch {
            let code: TrustFileError.Code = error.code == .unsupportedAlgorithm ? .wrongType : .malformed
            throw TrustFileError(code, "It is not a \(kind.name). \(error.detail)")
        }
        let header = message.header
        guard header["alg"] == "ES256", header["typ"] == .string(kind.type) else {
            throw TrustFileError(.wrongType, "A \(kind.name) has the typ \(kind.type) and the alg ES256.")
        }
        guard header.members.count == 3, let kid = header["kid"]?.string.flatMap({ KeyThumbprint(text: $0) }) else {
            throw TrustFileError(.malformed, "The header has exactly alg, typ and kid, the thumbprint of a key.")
        }
        (self.kid, self.kind, compact) = (kid, kind, text)
    }

    /// What it says.
    ///
    /// - Throws: ``TrustFileError``.
    func content<Content: MessagePart>() throws(TrustFileError) -> Content {
        do throws(SigningProtocolError) {
            return try Content(plaintext: message.payload, limit: TrustFile.limit)
        } catch {
            throw TrustFileError(error, in: kind.name)
        }
    }

    /// Verifies it with that one of some keys which its header names.
    ///
    /// - Throws: ``TrustFileError`` `unknownKey`, `invalidSignature`.
    func verify(with keys: [ProtocolKey]) throws(TrustFileError) {
        guard let key = keys.first(where: { $0.thumbprint == kid }) else {
            throw TrustFileError(.unknownKey, "The key that signed the \(kind.name) is not one that may.")
        }
        guard (try? message.verified(with: key.jwk, algorithms: [.es256])) != nil else {
            throw TrustFileError(.invalidSignature, "The signature of the \(kind.name) is not good.")
        }
    }
}
