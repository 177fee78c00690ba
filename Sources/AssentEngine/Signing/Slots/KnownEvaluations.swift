import AssentCore
import Crypto

/// The evaluations of which this node knows that a key of the issuer has signed them, by the SHA-256 of all their
/// bytes: it has made or verified them. A device sends each one back twice, with its confirmation and with its next
/// unlock, mostly to the node that has made it.
///
/// Whether the key may still be believed is asked each time. Only evaluations of the issuer come in here, so a stranger
/// cannot push others out.
final class KnownEvaluations: Sendable {
    private let known = Locked(RecentValues<SHA256Digest, Bool>(generation: 1024))

    /// Remembers an evaluation that a key of the issuer has signed.
    func remember(_ compact: String) {
        let digest = Self.digest(of: compact)
        known.withLock { $0.keep(true, for: digest) }
    }

    /// Whether a key of the issuer is known to have signed this.
    func contains(_ compact: String) -> Bool {
        let digest = Self.digest(of: compact)
        return known.withLock { $0.find(digest) } == true
    }

    private static func digest(of compact: String) -> SHA256Digest { SHA256.hash(data: Array(compact.utf8)) }
}
