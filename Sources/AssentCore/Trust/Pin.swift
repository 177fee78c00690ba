import Crypto
import Foundation

/// A pinned public key: the SHA-256 of a certificate's SubjectPublicKeyInfo (RFC 7469 §2.4).
public struct Pin: Hashable, Sendable, CustomStringConvertible {
    /// The digest, 32 bytes.
    public let sha256: [UInt8]

    /// A pin from a digest.
    ///
    /// - Throws: ``PinError`` when it is not 32 bytes long, or is the digest of nothing, which usual command lines
    ///   print when fetching the certificate failed.
    public init(sha256: [UInt8]) throws(PinError) {
        guard sha256.count == SHA256.byteCount else { throw .wrongLength(sha256.count) }
        guard sha256 != Array(SHA256.hash(data: [UInt8]())) else { throw .digestOfNothing }
        self.sha256 = sha256
    }

    /// A pin from its usual text: base 64, with or without `sha256/` in front.
    public init(_ text: String) throws(PinError) {
        let base64 = text.hasPrefix("sha256/") ? String(text.dropFirst(7)) : text
        guard let digest = Data(base64Encoded: base64) else { throw .notBase64 }
        try self.init(sha256: Array(digest))
    }

    /// The pin of a public key, from its DER SubjectPublicKeyInfo.
    public init(publicKeyInfo: [UInt8]) throws(PinError) {
        guard !publicKeyInfo.isEmpty else { throw .digestOfNothing }
        try self.init(sha256: Array(SHA256.hash(data: publicKeyInfo)))
    }

    /// The usual text: `sha256/` and base 64.
    public var description: String { "sha256/" + Data(sha256).base64EncodedString() }
}

/// Why a text is not a pin. Errors are equal when their codes are.
public struct PinError: AssentError {
    /// What went wrong, as a stable name.
    public let code: Code

    /// What is wrong.
    public let detail: String

    /// What to do about it.
    public let suggestion: String?

    private init(_ code: Code, _ detail: String, _ suggestion: String) {
        self.code = code
        self.detail = detail
        self.suggestion = suggestion
    }

    /// A stable name of a mistake; more may be added.
    public struct Code: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// It is not base 64.
        public static let notBase64 = Code("notBase64")
        /// A SHA-256 has 32 bytes, this has another number.
        public static let wrongLength = Code("wrongLength")
        /// It is the SHA-256 of no bytes at all: the command that made it had failed.
        public static let digestOfNothing = Code("digestOfNothing")
    }

    /// It is not base 64.
    package static let notBase64 = PinError(
        .notBase64, "This pin is not base 64.", "Give the base 64 of the SHA-256 of the key.")

    /// It has this number of bytes.
    package static func wrongLength(_ count: Int) -> PinError {
        PinError(.wrongLength, "A pin has 32 bytes, and this has \(count).", "Copy all of the digest.")
    }

    /// It is the SHA-256 of no bytes.
    package static let digestOfNothing = PinError(
        .digestOfNothing, "This pin is the SHA-256 of nothing.",
        "Run the command that made it again: it could not fetch the certificate.")
}
