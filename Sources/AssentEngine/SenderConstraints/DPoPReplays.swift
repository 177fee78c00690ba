import AssentCore
import AssentStore
import Crypto

/// Sees to it that a proof is accepted once (RFC 9449 §11.1), at every endpoint and by every node, for as long as it or
/// its nonce would be accepted.
///
/// One process remembers in memory. Nodes that share a database share a table whose rows a crash may take. Either way
/// what is remembered is complete from some moment on, and a proof that could have been accepted before that moment is
/// not accepted: the client is asked for another nonce.
final class DPoPReplays: Sendable {
    enum Claim: Sendable, Hashable {
        /// Nobody has used the proof before.
        case first
        /// Somebody has.
        case repeated
        /// Nobody knows. A nonce that is made now, or later, helps.
        case unknown
    }

    /// How many proofs one process remembers.
    static let mostRemembered = 1 << 17

    /// The row that says from when on the table is complete. No proof has this name: theirs have 43 characters.
    private static let since = "since"

    /// How many rows are deleted at once.
    static let batch = 5_000

    private struct Memory {
        /// When a proof expires, in milliseconds since 1970, by its name.
        var spent: [String: Int64] = [:]
        /// From when on the memory is complete.
        var since: Int64
        /// When it is worth to look for expired ones again.
        var nextSweep: Int64
    }

    private let database: any SQLDatabase
    private let clock: any WallClock
    private let memory: Locked<Memory>

    init(_ context: EngineContext) {
        database = context.database
        clock = context.clock
        let now = context.clock.epochMilliseconds
        memory = Locked(Memory(since: now, nextSweep: now))
    }

    /// What a proof is remembered by: its key and its `jti`, which only that key's owner has chosen.
    static func name(thumbprint: String, jti: String) -> String {
        Base64URL.encode(Array(SHA256.hash(data: Array("\(thumbprint).\(jti)".utf8))))
    }

    /// Spends a proof.
    ///
    /// - Parameters:
    ///   - name: what it is remembered by.
    ///   - earliest: when it could have been accepted first, in milliseconds since 1970.
    ///   - expiresAt: from when on no node accepts it any more.
    /// - Returns: whether this is its first use.
    /// - Throws: ``StoreError``.
    func claim(_ name: String, earliest: Int64, expiresAt: Int64) async throws -> Claim {
        guard database.isShared else { return remember(name, earliest: earliest, expiresAt: expiresAt) }
        let rows = try await database.run(
            .unlogged(
                """
                INSERT INTO spent_proofs (id, expires_at)
                SELECT \(name), \(expiresAt)
                WHERE EXISTS (SELECT 1 FROM spent_proofs WHERE id = \(Self.since) AND expires_at <= \(earliest))
                ON CONFLICT (id) DO NOTHING RETURNING id
                """))
        return rows.isEmpty ? try await reason(earliest: earliest) : .first
    }

    /// Why no row was inserted. Where a crash has emptied the table, it is complete from now on.
    private func reason(earliest: Int64) async throws -> Claim {
        let reading = SQLStatement.read("SELECT expires_at FROM spent_proofs WHERE id = \(Self.since)")
        if let row = try await database.run(reading).first {
            return try row.integer("expires_at") <= earliest ? .repeated : .unknown
        }
        _ = try await database.run(
            .unlogged(
                """
                INSERT INTO spent_proofs (id, expires_at) VALUES (\(Self.since), \(clock.epochMilliseconds))
                ON CONFLICT (id) DO NOTHING
                """))
        return .unknown
    }

    private func remember(_ name: String, earliest: Int64, expiresAt: Int64) -> Claim {
        let now = clock.epochMilliseconds
        return memory.withLock { memory in
            guard memory.since <= earliest else { return .unknown }
            guard memory.spent[name] == nil else { return .repeated }
            if memory.spent.count >= Self.mostRemembered {
                if now >= memory.nextSweep {
                    memory.spent = memory.spent.filter { $0.value > now }
                    memory.nextSweep = now + 1_000
                }
                guard memory.spent.count < Self.mostRemembered else {
                    // Forgetting one of them would let it be used again, so all proofs need a newer nonce.
                    memory.spent = [:]
                    memory.since = now + 1
                    return .unknown
                }
            }
            memory.spent[name] = expiresAt
            return .first
        }
    }

    /// Forgets what nobody accepts any more, a limited number of rows at a time.
    ///
    /// - Throws: ``StoreError``.
    func purge() async throws {
        let now = clock.epochMilliseconds
        guard database.isShared else {
            return memory.withLock { memory in memory.spent = memory.spent.filter { $0.value > now } }
        }
        while true {
            let deleted = try await database.run(
                .unlogged(
                    """
                    DELETE FROM spent_proofs WHERE id IN (
                        SELECT id FROM spent_proofs WHERE expires_at <= \(now) AND id <> \(Self.since)
                        LIMIT \(Self.batch))
                    RETURNING id
                    """))
            guard deleted.count == Self.batch else { return }
        }
    }
}
