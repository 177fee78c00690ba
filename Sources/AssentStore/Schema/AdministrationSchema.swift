extension Migration {
    static let administration = Migration(
        "administration",
        [
            """
            CREATE TABLE bootstrap_tokens (
                hash TEXT PRIMARY KEY,
                created_at BIGINT NOT NULL,
                used_at BIGINT,
                used_by TEXT)
            """
        ])

    /// Since then what a user has, or has begun, says under which epoch of theirs: a lock, another password and another
    /// second factor begin a new one.
    static let userEpochs = Migration(
        "user epochs",
        [
            "ALTER TABLE users ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0",
            "ALTER TABLE sessions ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0",
            "ALTER TABLE grants ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0",
        ])

    /// What was first, also within a millisecond and when the clock was put back.
    static let auditSequence = Migration(
        "audit sequence",
        [
            "ALTER TABLE audit ADD COLUMN sequence BIGINT",
            """
            UPDATE audit SET sequence = numbered.number
            FROM (SELECT id, row_number() OVER (ORDER BY at, id) AS number FROM audit) AS numbered
            WHERE numbered.id = audit.id
            """,
            "CREATE UNIQUE INDEX audit_sequence ON audit (sequence)",
        ])

    /// Since then each node numbers its own records, some time after they were written: one number for all would let
    /// every write of every node wait for the one before. Older records keep their numbers and come first.
    static let auditNodes = Migration(
        "audit nodes",
        [
            "DROP INDEX audit_sequence",
            "ALTER TABLE audit ADD COLUMN node TEXT NOT NULL DEFAULT ''",
            "ALTER TABLE audit ADD COLUMN position BIGINT NOT NULL DEFAULT 0",
            "UPDATE audit SET position = sequence",
            "CREATE UNIQUE INDEX audit_sequence ON audit (node, sequence)",
            "CREATE INDEX audit_position ON audit (position, node)",
        ])

    /// Since then what a user did is found among what all others did, in its order.
    static let auditUsers = Migration(
        "audit users", ["CREATE INDEX audit_user ON audit (user_id, position) WHERE user_id IS NOT NULL"])
}
