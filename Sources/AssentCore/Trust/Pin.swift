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

/// Why a text is no pin.
public enum PinError: Error, Hashable, Sendable, CustomStringConvertible {
    /// It is not base 64.
    case notBase64
    /// A SHA-256 has 32 bytes, this has another number.
    case wrongLength(Int)
    /// It is the SHA-256 of no bytes at all: the command that made it had failed.
    case digestOfNothing

    /// What is wrong and what to do.
    public var description: String {
        switch self {
        case .notBase64: "a pin is the base 64 of a SHA-256 digest; this is not base 64"
        case .wrongLength(let count): "a pin has 32 bytes, this has \(count)"
        case .digestOfNothing:
            "this pin is the SHA-256 of nothing: the command that made it could not fetch the certificate"
        }
    }
}
