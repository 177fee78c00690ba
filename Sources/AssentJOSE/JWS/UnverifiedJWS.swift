public import AssentCore
import Crypto
import Foundation

/// A signed message in compact form that was read but not verified: nothing in it can be trusted yet.
///
/// Look at ``keyID`` or the issuer in ``payload`` to find the key, then call one of the `verified` methods.
public struct UnverifiedJWS: Sendable {
    /// The header as it came.
    public let header: JSONObject

    /// `alg`.
    public let algorithm: SignatureAlgorithm

    /// `kid`.
    public let keyID: String?

    /// `typ`.
    public let type: String?

    /// The content, of which nobody has proved anything.
    public let payload: [UInt8]

    private let signingInput: [UInt8]
    private let signature: [UInt8]

    /// Members of a header that change what is signed, or how it is read.
    static let refusedMembers = ["crit", "b64"]

    /// Reads `header.payload.signature`.
    ///
    /// - Parameters:
    ///   - compact: the text.
    ///   - limit: how many bytes are accepted; 64 KiB by default.
    /// - Returns: the message, which nobody has proved anything about.
    /// - Throws: ``JOSEError`` with `tooLarge`, `malformed` (also for base64url with padding or spare bits and for
    ///   header members that occur twice), `unsupportedAlgorithm` (`none` among them), or `unsupportedExtension` for
    ///   `crit` and `b64`.
    public static func parse(_ compact: String, limit: Int = 64 << 10) throws(JOSEError) -> UnverifiedJWS {
        try UnverifiedJWS(compact, limit: limit)
    }

    private init(_ compact: String, limit: Int) throws(JOSEError) {
        let parts = try CompactParts(compact, limit: limit)
        let header = try CompactHeader(encoded: parts.header, refused: Self.refusedMembers)
        algorithm = SignatureAlgorithm(rawValue: header.alg)
        guard SignatureAlgorithm.supported.contains(algorithm) else { throw JOSEError(.unsupportedAlgorithm) }
        (payload, signature) = try parts.decoded()
        self.header = header.object
        keyID = header.keyID
        type = header.type
        signingInput = parts.signingInput
    }

    /// Verifies with whichever key of a set fits `kid` and `alg`.
    ///
    /// - Parameters:
    ///   - keys: public keys that are trusted to sign this.
    ///   - algorithms: those that the caller accepts here.
    /// - Returns: the message, proved to come from that key.
    /// - Throws: ``JOSEError`` with `algorithmNotAllowed`, `noMatchingKey` or `invalidSignature`.
    public func verified(with keys: JWKSet, algorithms: Set<SignatureAlgorithm>) throws(JOSEError) -> VerifiedJWS {
        try checkAllowed(algorithms)
        let candidates = keys.candidates(keyID: keyID, algorithm: algorithm)
        guard !candidates.isEmpty else { throw JOSEError(.noMatchingKey) }
        for key in candidates where isSigned(by: key) { return VerifiedJWS(self, key: key) }
        throw JOSEError(.invalidSignature)
    }

    /// Verifies with one key.
    ///
    /// - Parameters:
    ///   - key: a public key that is trusted to sign this.
    ///   - algorithms: those that the caller accepts here.
    /// - Returns: the message, proved to come from that key.
    /// - Throws: ``JOSEError`` with `algorithmNotAllowed`, `algorithmMismatch` when the algorithm is not the key's,
    ///   `noMatchingKey` when header and key have different `kid`s, or `invalidSignature`.
    public func verified(with key: JWK, algorithms: Set<SignatureAlgorithm>) throws(JOSEError) -> VerifiedJWS {
        try checkAllowed(algorithms)
        guard key.verifies(algorithm) else { throw JOSEError(.algorithmMismatch, "The key is not for \(algorithm).") }
        if let keyID, let own = key.keyID, !keyID.utf8.elementsEqual(own.utf8) { throw JOSEError(.noMatchingKey) }
        guard isSigned(by: key) else { throw JOSEError(.invalidSignature) }
        return VerifiedJWS(self, key: key)
    }

    /// Verifies an HS256 message with a shared key of at least 32 bytes. No other algorithm passes here, and HS256
    /// passes nowhere else, so a public key cannot be taken for a shared one.
    ///
    /// - Throws: ``JOSEError`` with `algorithmNotAllowed`, `weakKey` or `invalidSignature`.
    public func verified(hmacKey: Secret) throws(JOSEError) -> VerifiedJWS {
        guard algorithm == .hs256 else { throw JOSEError(.algorithmNotAllowed, "\(algorithm) is not allowed here.") }
        guard hmacKey.count >= HMACSigningKey.minimumBytes else { throw JOSEError(.weakKey) }
        let code = HMAC<SHA256>.authenticationCode(for: signingInput, using: hmacKey.symmetricKey)
        guard ConstantTime.equal(Array(code), signature) else { throw JOSEError(.invalidSignature) }
        return VerifiedJWS(self, key: nil)
    }

    private func checkAllowed(_ algorithms: Set<SignatureAlgorithm>) throws(JOSEError) {
        guard algorithm != .hs256, algorithms.contains(algorithm) else {
            throw JOSEError(.algorithmNotAllowed, "\(algorithm) is not allowed here.")
        }
    }

    private func isSigned(by key: JWK) -> Bool {
        key.material.isValid(signature, for: signingInput, algorithm: algorithm)
    }
}

/// The three parts of a compact JWS, as they came.
struct CompactParts {
    let header: Substring
    /// What is signed.
    let signingInput: [UInt8]
    private let payload: Substring
    private let signature: Substring

    /// - Throws: ``JOSEError`` with `tooLarge` or `malformed`.
    init(_ compact: String, limit: Int) throws(JOSEError) {
        guard compact.utf8.count <= limit else { throw JOSEError(.tooLarge, "The JWS has more than \(limit) bytes.") }
        // The dots are looked for in an array: through the text's view that takes several times as long.
        let (text, dot) = (compact.utf8, UInt8(ascii: "."))
        var bytes = Array(text)
        guard let first = bytes.firstIndex(of: dot), let second = bytes[(first + 1)...].firstIndex(of: dot),
            !bytes[(second + 1)...].contains(dot)
        else {
            throw JOSEError(.malformed, "A compact JWS has three parts; this has another number.")
        }
        let headerEnd = text.index(text.startIndex, offsetBy: first)
        let payloadEnd = text.index(text.startIndex, offsetBy: second)
        header = Substring(text[..<headerEnd])
        payload = Substring(text[text.index(after: headerEnd)..<payloadEnd])
        signature = Substring(text[text.index(after: payloadEnd)...])
        bytes.removeLast(bytes.count - second)
        signingInput = bytes
    }

    /// - Throws: ``JOSEError`` with `malformed`.
    func decoded() throws(JOSEError) -> (payload: [UInt8], signature: [UInt8]) {
        guard let payload = Base64URL.decode(payload), let signature = Base64URL.decode(signature) else {
            throw JOSEError(.malformed, "The payload or the signature is not base64url.")
        }
        return (payload, signature)
    }
}

/// A signed message whose signature is good. Only the `verified` methods of ``UnverifiedJWS`` make one.
///
/// Whether its content may be used now and here is another question: see ``JWTValidation``.
public struct VerifiedJWS: Sendable {
    /// The header, protected by the signature.
    public let header: JSONObject

    /// `alg`.
    public let algorithm: SignatureAlgorithm

    /// `kid`.
    public let keyID: String?

    /// `typ`.
    public let type: String?

    /// The content.
    public let payload: [UInt8]

    /// The public key that verified it; `nil` for HS256.
    public let key: JWK?

    fileprivate init(_ message: UnverifiedJWS, key: JWK?) {
        header = message.header
        algorithm = message.algorithm
        keyID = message.keyID
        type = message.type
        payload = message.payload
        self.key = key
    }
}
