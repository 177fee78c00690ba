#if PostgreSQL && os(Linux)
/// The table of sessions of payload encryption, which the nodes of a database share. It is not in the schema, since
/// SQLite has none: its one process has them in memory.
///
/// `spent_highest` and `spent` are the window of numbers that were spent for all nodes: its last bit stands for the
/// highest one. They are in the session's row, so that no session makes the database remember more than that, and that
/// a table which was emptied has forgotten the session as well. `client` is the installation that a session belongs to,
/// by which the session ends together with it, and `client_key` the thumbprint of its key that has made the session,
/// which ends when the installation gets another one.
///
/// The table is unlogged, so that a handshake waits for no disk, and no backup has the keys of sessions. A crash or a
/// fail-over empties it; clients then make new sessions.
enum PostgreSQLPayloadSessions {
    static let definition = [
        PostgreSQLCommand(
            """
            DO $$ BEGIN
                IF EXISTS (
                    SELECT 1 FROM pg_class c
                    WHERE c.oid = to_regclass(quote_ident(current_schema()) || '.payload_sessions') AND NOT EXISTS (
                        SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'client_key'))
                THEN
                    DROP TABLE payload_sessions;
                END IF;
                IF to_regclass(quote_ident(current_schema()) || '.payload_sessions') IS NULL THEN
                    CREATE UNLOGGED TABLE payload_sessions (
                        id TEXT COLLATE "C" PRIMARY KEY, kid TEXT COLLATE "C" NOT NULL, client TEXT COLLATE "C",
                        client_key TEXT COLLATE "C", sealed BYTEA NOT NULL,
                        begun_at BIGINT NOT NULL, used_at BIGINT NOT NULL,
                        spent_highest NUMERIC NOT NULL DEFAULT 0,
                        spent BIT(1024) NOT NULL DEFAULT CAST(repeat('0', 1024) AS BIT(1024)));
                    CREATE INDEX payload_sessions_use ON payload_sessions (used_at);
                    CREATE INDEX payload_sessions_key ON payload_sessions (kid);
                    CREATE INDEX payload_sessions_client ON payload_sessions (client) WHERE client IS NOT NULL;
                END IF;
            END $$
            """, isKept: false)
    ]
}
#endif
