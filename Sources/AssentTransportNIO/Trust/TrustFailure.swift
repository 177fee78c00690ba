import Foundation

/// Why a path from a server's certificate to a trusted root is not acceptable.
enum TrustFailure: Hashable, Sendable, CustomStringConvertible {
    /// Whose certificate on the path it is.
    enum Owner: Hashable, Sendable {
        case server
        /// The subject as the certificate says it.
        case authority(String)
    }

    case expired(Owner, Date)
    case notYetValid(Owner, Date)
    case otherHost
    /// The name is only in the subject.
    case noAlternativeName
    case keyUsage
    case extendedKeyUsage
    case unreadableExtension
    case pathTooLong
    case weakSignature
    case weakKey
    /// Everything else was right.
    case noPinnedKey
    /// What the library's own checks say (RFC 5280, the server's identity).
    case library(String)

    /// The reason, in printable ASCII of bounded length: certificates may quote what an attacker likes.
    var description: String {
        switch self {
        case .expired(let owner, let date): "\(Self.name(owner)) expired on \(date.formatted(.iso8601))"
        case .notYetValid(let owner, let date): "\(Self.name(owner)) is not valid before \(date.formatted(.iso8601))"
        case .otherHost: "the certificate is for another host"
        case .noAlternativeName: "the certificate has no subject alternative name"
        case .keyUsage: "the key usage of a certificate does not allow this"
        case .extendedKeyUsage: "the extended key usage of a certificate does not allow a TLS server"
        case .unreadableExtension: "an extension of a certificate cannot be read"
        case .pathTooLong: "the path is too long"
        case .weakSignature: "a signature algorithm is too weak"
        case .weakKey: "a key is too weak"
        case .noPinnedKey: "no key of the chain is pinned for this host"
        case .library(let text): Self.printable(text, limit: 240)
        }
    }

    /// What to do about it, where that is not what an untrusted server usually needs.
    var suggestion: String? {
        switch self {
        case .expired, .notYetValid:
            "Set this device's clock if it is wrong. Else the server needs another certificate."
        default: nil
        }
    }

    private static func name(_ owner: Owner) -> String {
        switch owner {
        case .server: "the server's certificate"
        case .authority(let subject): "the certificate of the authority \(printable(subject, limit: 100))"
        }
    }

    /// Long texts lose their middle: the library quotes a whole certificate before or behind what it says.
    private static func printable(_ text: String, limit: Int) -> String {
        let characters = text.unicodeScalars.filter { (0x20...0x7E).contains($0.value) }.map(Character.init)
        guard characters.count > limit else { return String(characters) }
        return "\(String(characters.prefix(limit / 2))) ... \(String(characters.suffix(limit / 2)))"
    }
}
