import AssentCore
import Crypto

/// Access tokens whose signature this node has verified lately, found again by the SHA-256 of all their bytes:
/// verifying costs as much as all the rest of a look-up.
///
/// It knows what a token says, never whether it is valid: its time, its grant, its session and the key that has signed
/// it are looked at every time. Only tokens of ours come in here, so a stranger cannot push others out.
final class VerifiedTokens: Sendable {
    /// A class, so that it is handed out of the lock without copying what the token says.
    final class Entry: Sendable {
        let claims: AccessClaims
        let keyID: String

        init(claims: AccessClaims, keyID: String) {
            self.claims = claims
            self.keyID = keyID
        }
    }

    /// How many tokens each of the two generations holds.
    static let generationLimit = 2048

    private let state = Locked(RecentValues<SHA256Digest, Entry>(generation: VerifiedTokens.generationLimit))

    static func digest(of token: Secret) -> SHA256Digest {
        token.withUnsafeBytes { SHA256.hash(data: $0) }
    }

    /// A digest as proofs name it.
    static func text(of digest: SHA256Digest) -> String { digest.withUnsafeBytes { Base64URL.encode($0) } }

    /// How many tokens are kept.
    var count: Int { state.withLock { $0.count } }

    /// What is known of a token; `nil` also when its time is over, and then it is forgotten.
    func find(_ digest: SHA256Digest, now: Int64) -> Entry? {
        state.withLock { state in
            guard let entry = state.find(digest) else { return nil }
            if entry.claims.expiresAt > now { return entry }
            state.forget(digest)
            return nil
        }
    }

    /// Keeps what a token says, unless its time is over.
    func keep(_ entry: Entry, for digest: SHA256Digest, now: Int64) {
        guard entry.claims.expiresAt > now else { return }
        state.withLock { $0.keep(entry, for: digest) }
    }
}
