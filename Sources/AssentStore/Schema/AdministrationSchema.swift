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
}
