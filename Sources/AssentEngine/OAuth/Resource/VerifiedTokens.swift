import AssentCore
import Crypto

/// Access tokens whose signature this node has verified lately, found again by the SHA-256 of all their bytes:
/// verifying costs as much as all the rest of a look-up.
///
/// It knows what a token says, never whether it is valid: its time, its grant, its session and the key that has signed
/// it are looked at every time. Only tokens of ours come in here, so a stranger cannot push others out.
final class VerifiedTokens: Sendable {
    struct Entry: Sendable {
        let claims: AccessClaims
        let keyID: String
    }

    /// Two generations: what is used in one is carried into the next, and a full one pushes the one before out.
    private struct State {
        var young: [SHA256Digest: Entry] = [:]
        var old: [SHA256Digest: Entry] = [:]
    }

    /// How many tokens each of the two generations holds.
    static let generationLimit = 2048

    private let state = Locked(State())

    static func digest(of token: Secret) -> SHA256Digest {
        token.withUnsafeBytes { SHA256.hash(data: $0) }
    }

    /// How many tokens are kept.
    var count: Int { state.withLock { $0.young.count + $0.old.count } }

    /// What is known of a token; `nil` also when its time is over, and then it is forgotten.
    func find(_ digest: SHA256Digest, now: Int64) -> Entry? {
        state.withLock { state in
            if let entry = state.young[digest] {
                if entry.claims.expiresAt > now { return entry }
                state.young[digest] = nil
                return nil
            }
            guard let entry = state.old.removeValue(forKey: digest), entry.claims.expiresAt > now else { return nil }
            Self.add(entry, for: digest, to: &state)
            return entry
        }
    }

    /// Keeps what a token says, unless its time is over.
    func keep(_ entry: Entry, for digest: SHA256Digest, now: Int64) {
        guard entry.claims.expiresAt > now else { return }
        state.withLock { Self.add(entry, for: digest, to: &$0) }
    }

    private static func add(_ entry: Entry, for digest: SHA256Digest, to state: inout State) {
        if state.young.count >= generationLimit {
            state.old = state.young
            state.young = [:]
        }
        state.young[digest] = entry
    }
}
