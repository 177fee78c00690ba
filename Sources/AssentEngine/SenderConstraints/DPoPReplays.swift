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
        /// The proof may have been used before what is remembered is complete: from this time on, in milliseconds since
        /// 1970. A nonce of that time or a later one helps.
        case unknown(since: Int64)
    }

    /// How many rows are deleted at once.
    static let batch = 5_000

    private let database: any SQLDatabase
    private let clock: any WallClock
    private let known: Locked<Int64>
    private let isDatabaseTimed: Bool
    private let memory: Locked<ReplayMemory>

    /// - Parameters:
    ///   - context: the database and the clock.
    ///   - isDatabaseTimed: whether a shared table says from when on it is complete by the clock of the database's
    ///     server, which no node's wrong clock changes. Without it all nodes must have one clock.
    ///   - limit: how many proofs one process remembers.
    init(_ context: EngineContext, isDatabaseTimed: Bool, limit: Int = ReplayMemory.usualLimit) {
        database = context.database
        clock = context.clock
        known = context.proofsSince
        self.isDatabaseTimed = isDatabaseTimed
        memory = Locked(ReplayMemory(at: context.clock.epochMilliseconds, limit: limit))
    }

    /// What a proof is remembered by: its key and its `jti`, which only that key's owner has chosen.
    static func name(thumbprint: String, jti: String) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(thumbprint.utf8.count + 1 + jti.utf8.count)
        bytes += thumbprint.utf8
        bytes.append(UInt8(ascii: "."))
        bytes += jti.utf8
        return SHA256.hash(data: bytes).withUnsafeBytes { Base64URL.encode($0) }
    }

    /// Lets a table that all nodes share be complete from now on, or shortly after, unless it is from an earlier moment
    /// on.
    ///
    /// - Throws: ``StoreError``.
    func begin() async throws {
        guard database.isShared else { return }
        _ = try await database.run(
            .unlogged(
                """
                INSERT INTO spent_proofs (id, expires_at) VALUES (\(ProofInsertion.since), \(beginning))
                ON CONFLICT (id) DO NOTHING
                """))
    }

    /// Learns from when on a table that all nodes share is complete, so that no nonce is given that is too old for it.
    ///
    /// - Throws: ``StoreError``.
    func learn() async throws {
        guard database.isShared else { return }
        _ = try await storedSince()
    }

    /// Whether proofs are remembered in a table, so that a statement of something else can spend one.
    var isShared: Bool { database.isShared }

    /// Spends a proof.
    ///
    /// - Parameters:
    ///   - proof: what it is remembered by, and when it could be accepted.
    ///   - key: the thumbprint of its key.
    /// - Returns: whether this is its first use.
    /// - Throws: ``StoreError``.
    func claim(_ proof: ProofInsertion, of key: String) async throws -> Claim {
        guard database.isShared else {
            let now = clock.epochMilliseconds
            return memory.withLock {
                $0.claim(
                    proof.name, of: key, earliest: proof.earliest, expiresAt: proof.expiresAt, now: now)
            }
        }
        let rows = try await database.run(.unlogged(proof.sql()))
        return rows.isEmpty ? try await reason(earliest: proof.earliest) : .first
    }

    /// Looks something up and, where proofs are remembered in a table, spends a proof by the same statement.
    ///
    /// - Throws: ``StoreError``.
    func find(_ lookUp: some ProofFinding, spending proof: ProofInsertion?) async throws -> FoundWithProof {
        guard let proof, database.isShared else {
            return FoundWithProof(row: try await database.run(lookUp.reading).first, isSpent: false)
        }
        let row = try await database.run(lookUp.spending(proof)).first
        return FoundWithProof(row: row, isSpent: try row?.bool("proofs_spent") ?? false)
    }

    /// Why no row was inserted. Where a crash has emptied the table, it is complete from now on.
    ///
    /// - Throws: ``StoreError``.
    func reason(earliest: Int64) async throws -> Claim {
        if let since = try await storedSince() {
            if since <= earliest { return .repeated }
            // The clock by which it was written was set back: clients must not wait until it has caught up.
            if since - clock.epochMilliseconds > DPoPNonces.difference { try await bringBack() }
        } else {
            try await begin()
        }
        return .unknown(since: try await storedSince() ?? clock.epochMilliseconds)
    }

    private func storedSince() async throws -> Int64? {
        let reading = SQLStatement.read("SELECT expires_at FROM spent_proofs WHERE id = \(ProofInsertion.since)")
        let since = try await database.run(reading).first?.integer("expires_at")
        if let since { known.withLock { $0 = since } }
        return since
    }

    /// Lets the table be complete from now on where it says that it will be later.
    private func bringBack() async throws {
        _ = try await database.run(
            .unlogged(
                """
                UPDATE spent_proofs SET expires_at = \(beginning)
                WHERE id = \(ProofInsertion.since) AND expires_at > \(beginning) + \(DPoPNonces.tolerance)
                """))
    }

    /// From when on a table is complete that is empty now, in milliseconds since 1970. A proof that was spent before
    /// may have a nonce of a node whose clock is ahead.
    private var beginning: SQL {
        isDatabaseTimed
            ? "(CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) + \(DPoPNonces.tolerance))"
            : "CAST(\(clock.epochMilliseconds) AS BIGINT)"
    }

    /// Forgets what nobody accepts any more, a limited number of rows at a time.
    ///
    /// - Throws: ``StoreError``.
    func purge() async throws {
        let now = clock.epochMilliseconds
        guard database.isShared else {
            return memory.withLock { $0.sweep(now: now) }
        }
        while true {
            // The database counts them: only their number is needed here, and each row that it returns costs time.
            let deleted = try await database.run(
                .unlogged(
                    """
                    WITH deleted AS (
                        DELETE FROM spent_proofs WHERE id IN (
                            SELECT id FROM spent_proofs WHERE expires_at <= \(now) AND id <> \(ProofInsertion.since)
                            LIMIT \(Self.batch))
                        RETURNING 1)
                    SELECT count(*) AS rows FROM deleted
                    """))
            guard try deleted.first?.integer("rows") == Int64(Self.batch) else { return }
        }
    }
}
