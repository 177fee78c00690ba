/// The proofs that one process has accepted, each for as long as it would be accepted again.
///
/// It is complete from some moment on, for all keys or for one. Where it is full, the key with the most proofs loses
/// its own, and no other does: its next proofs need a newer nonce. So somebody who uses one key cannot make others ask
/// for nonces.
struct ReplayMemory: Sendable {
    /// How many proofs a process remembers.
    static let usualLimit = 1 << 17

    /// A key with a smaller share of the whole than this is not worth to be emptied by itself.
    private static let leastShare = 256

    private struct Proofs {
        /// When a proof expires, in milliseconds since 1970, by its name.
        var spent: [String: Int64] = [:]
        /// From when on they are complete.
        var since: Int64 = 0
        /// When the newest of them could have been accepted first.
        var newest: Int64 = 0

        mutating func remember(_ name: String, earliest: Int64, expiresAt: Int64) {
            spent[name] = expiresAt
            newest = max(newest, earliest)
        }
    }

    private let limit: Int
    private var keys: [String: Proofs] = [:]
    private var count = 0
    /// From when on it is complete for all keys.
    private var since: Int64
    /// When it is worth to look for expired proofs again.
    private var nextSweep: Int64
    /// The latest time at which expired proofs were forgotten.
    private var swept: Int64 = 0

    /// For how long after its nonce was made a proof is remembered.
    private static let span = DPoPNonces.lifetime + DPoPNonces.difference

    /// An empty one, which is complete from `now` on: a time in milliseconds since 1970, as all of its times.
    init(at now: Int64, limit: Int = usualLimit) {
        since = now
        nextSweep = now
        self.limit = max(1, limit)
    }

    /// Remembers a proof. The parameters are those of ``ProofInsertion`` and ``DPoPReplays/claim(_:of:)``.
    mutating func claim(
        _ name: String, of key: String, earliest: Int64, expiresAt: Int64, now: Int64
    ) -> DPoPReplays.Claim {
        // A clock that was set back must not make clients wait until it has caught up. They wait for as long as nonces
        // may lie ahead: a forgotten proof with such a nonce could be used again if they did not.
        let limit = now + DPoPNonces.difference
        since = min(since, limit)
        if let own = keys[key]?.since, own > limit { keys[key]?.since = limit }
        // A proof that is in time though such proofs were forgotten may be one of them: the clock was set back.
        swept = min(swept, limit + Self.span - 1)
        let complete = start(for: key)
        guard complete <= earliest else { return .unknown(since: complete) }
        guard expiresAt > swept else { return .unknown(since: swept + 1 - Self.span) }
        guard keys[key]?.spent[name] == nil else { return .repeated }
        if count >= self.limit, now >= nextSweep || nextSweep - now > 1_000 {
            sweep(now: now)
            nextSweep = now + 1_000
        }
        if count >= self.limit {
            makeRoom(now: now)
            let complete = start(for: key)
            guard complete <= earliest else { return .unknown(since: complete) }
        }
        keys[key, default: Proofs()].remember(name, earliest: earliest, expiresAt: expiresAt)
        count += 1
        return .first
    }

    private func start(for key: String) -> Int64 { max(since, keys[key]?.since ?? 0) }

    /// Forgets what nobody accepts any more.
    mutating func sweep(now: Int64) {
        // A proof from before `since` is refused for its age by then.
        let past = now - Self.span
        swept = max(swept, now)
        keys = keys.compactMapValues { proofs in
            var left = proofs
            left.spent = proofs.spent.filter { $0.value > now }
            return left.spent.isEmpty && left.since <= past ? nil : left
        }
        count = keys.values.reduce(0) { $0 + $1.spent.count }
    }

    /// Forgetting one proof would let it be used again, so all of a key need a newer nonce then; all of all keys where
    /// no key has many.
    private mutating func makeRoom(now: Int64) {
        if let (key, proofs) = keys.max(by: { $0.value.spent.count < $1.value.spent.count }),
            proofs.spent.count >= max(1, limit / Self.leastShare)
        {
            count -= proofs.spent.count
            keys[key] = Proofs(since: max(now, proofs.newest) + 1)
        } else {
            since = keys.values.reduce(max(since, now)) { max($0, $1.newest) } + 1
            keys = [:]
            count = 0
        }
    }
}
