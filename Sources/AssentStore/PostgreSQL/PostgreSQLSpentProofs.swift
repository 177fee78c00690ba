#if PostgreSQL && os(Linux)
/// The table of spent proofs, which the nodes of a database share. It is not in the schema, since SQLite has none: its
/// one process remembers them.
///
/// The table is unlogged, so no commit to it waits for a disk, and a crash or a fail-over empties it. The row `since`
/// says from when on it is complete; where that row is missing, a crash has taken it with the others, or the table is
/// new: the engine then writes it.
enum PostgreSQLSpentProofs {
    /// Makes the table, without a row: the data may be a copy of a database that has seen proofs.
    static let definition = [
        PostgreSQLCommand(
            """
            DO $$ BEGIN
                IF to_regclass(quote_ident(current_schema()) || '.spent_proofs') IS NULL THEN
                    CREATE UNLOGGED TABLE spent_proofs (id TEXT COLLATE "C" PRIMARY KEY, expires_at BIGINT NOT NULL);
                    CREATE INDEX spent_proofs_expiry ON spent_proofs (expires_at);
                END IF;
            END $$
            """, isKept: false)
    ]
}
#endif
