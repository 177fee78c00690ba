#if PostgreSQL && os(Linux)
/// The table of sessions of payload encryption, which the nodes of a database share. It is not in the schema, since
/// SQLite has none: its one process has them in memory.
///
/// The table is unlogged, so that a handshake waits for no disk, and no backup has the keys of sessions. A crash or a
/// fail-over empties it; clients then make new sessions.
enum PostgreSQLPayloadSessions {
    static let definition = [
        PostgreSQLCommand(
            """
            DO $$ BEGIN
                IF to_regclass(quote_ident(current_schema()) || '.payload_sessions') IS NULL THEN
                    CREATE UNLOGGED TABLE payload_sessions (
                        id TEXT COLLATE "C" PRIMARY KEY, kid TEXT COLLATE "C" NOT NULL, sealed BYTEA NOT NULL,
                        begun_at BIGINT NOT NULL, used_at BIGINT NOT NULL);
                    CREATE INDEX payload_sessions_use ON payload_sessions (used_at);
                    CREATE INDEX payload_sessions_key ON payload_sessions (kid);
                END IF;
            END $$
            """, isKept: false)
    ]
}
#endif
