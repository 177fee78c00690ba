import AssentStore

/// How something is looked up that a proof was sent for: an access token's grant, or a session.
///
/// On a database that nodes share, the statement that finds it also spends the proof, so that a proof costs no round
/// trip of its own. The proof is then spent only if what was found is valid in that very statement: whatever the caller
/// could not check beforehand is in its condition. So an unknown, a revoked or another key's token makes nobody
/// remember a proof, as if the proof were spent afterwards.
protocol ProofFinding: Sendable {
    /// The look-up without a proof.
    var reading: SQLStatement { get }

    /// The look-up that spends a proof by `insertion`: what is inserted, and from which condition on.
    func spending(_ insertion: ProofInsertion) -> SQLStatement
}

/// A look-up that is put together from its parts.
struct ProofLookUp: ProofFinding {
    /// What is read.
    let columns: SQL

    /// Where that comes from, with the condition that finds one row.
    let source: SQL

    /// That the row is valid, and belongs to the proof's key. It is made for those with a proof alone.
    let isValid: @Sendable () -> SQL

    var reading: SQLStatement { .read("SELECT \(columns) FROM \(source)") }

    /// All of a statement sees one state of the database, so no session can end between the two.
    func spending(_ insertion: ProofInsertion) -> SQLStatement {
        .unlogged(
            """
            WITH found AS (
                SELECT \(columns), CASE WHEN \(isValid()) THEN 1 ELSE 0 END AS takes_proof FROM \(source)
            ), spent AS (
                \(insertion.sql(where: "EXISTS (SELECT 1 FROM found WHERE takes_proof = 1)"))
            )
            SELECT found.*, (SELECT count(*) FROM spent) AS proofs_spent FROM found
            """)
    }
}

/// What a look-up has found, and whether it has spent the proof that came with it.
struct FoundWithProof: Sendable {
    /// The row; `nil` when there is none.
    let row: SQLRow?

    /// Whether the proof is spent, by this look-up and by nothing before.
    let isSpent: Bool
}

/// The row of a proof in the table of spent proofs. It is not inserted where the proof was used before, or may have
/// been.
struct ProofInsertion: Sendable {
    /// The row that says from when on the table is complete. No proof has this name: theirs have 43 characters.
    static let since = "since"

    /// The same as a constant in SQL: each statement that spends a proof has it, and needs no parameter for it.
    private static let sinceText = SQL(verbatim: "'\(since)'")

    /// What the proof is remembered by.
    let name: String

    /// When it could have been accepted first, in milliseconds since 1970.
    let earliest: Int64

    /// From when on no node accepts it any more, in milliseconds since 1970.
    let expiresAt: Int64

    /// The statement, which returns one row if the proof is spent by it.
    func sql(where condition: SQL = "1 = 1") -> SQL {
        """
        INSERT INTO spent_proofs (id, expires_at)
        SELECT \(name), \(expiresAt)
        WHERE \(condition)
            AND EXISTS (SELECT 1 FROM spent_proofs WHERE id = \(Self.sinceText) AND expires_at <= \(earliest))
        ON CONFLICT (id) DO NOTHING RETURNING id
        """
    }
}

/// A proof that is spent in the transaction of what its request does.
struct ProofSpending: Sendable {
    /// The statement, which affects no row where the proof was used before, or may have been.
    let statement: SQLStatement

    /// Why it has affected none.
    let refusal: @Sendable () async throws -> SenderProofRefusal
}
