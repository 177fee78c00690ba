extension Migration {
    /// Since then a grant knows the class of the sign-in that it was given after.
    static let grantContexts = Migration("grant contexts", ["ALTER TABLE grants ADD COLUMN acr TEXT"])

    /// Since then a code may belong to a key (RFC 9449 §10).
    static let codeKeys = Migration("code keys", ["ALTER TABLE oauth_codes ADD COLUMN key_thumbprint TEXT"])

    /// The assertions by which clients have proved who they are, until they expire, so that each is accepted once.
    static let clientAssertions = Migration(
        "client assertions",
        [
            """
            CREATE TABLE client_assertions (
                id TEXT PRIMARY KEY,
                realm TEXT NOT NULL,
                client_id TEXT NOT NULL,
                expires_at BIGINT NOT NULL)
            """,
            "CREATE INDEX client_assertions_expiry ON client_assertions (expires_at)",
        ])

    /// Since then a session may belong to a key (RFC 9449).
    static let sessionKeys = Migration("session keys", ["ALTER TABLE sessions ADD COLUMN key_thumbprint TEXT"])

    /// Since then what something belongs to says what it is: a key is `jkt:` and its thumbprint.
    static let senders = Migration(
        "senders",
        ["oauth_codes", "grants", "sessions", "transactions"].flatMap { table in
            [
                "ALTER TABLE \(table) RENAME COLUMN key_thumbprint TO sender",
                "UPDATE \(table) SET sender = 'jkt:' || sender WHERE sender IS NOT NULL",
            ]
        })

    /// Since then a session may have no token. What its user has proved is on record, and how in its grant, too.
    static let tokenlessSessions = Migration(
        "sessions without a token",
        [
            "ALTER TABLE sessions ADD COLUMN acr TEXT", "ALTER TABLE sessions ADD COLUMN amr TEXT",
            "ALTER TABLE grants ADD COLUMN amr TEXT",
        ])

    /// Since then a session says for what it was made, and whether a journey has made it. Of those that were there,
    /// journeys have made the ones with a token.
    static let sessionKinds = Migration(
        "kinds of sessions",
        [
            "ALTER TABLE sessions ADD COLUMN kind TEXT NOT NULL DEFAULT 'user'",
            "ALTER TABLE sessions ADD COLUMN is_of_journey INTEGER NOT NULL DEFAULT 0",
            "UPDATE sessions SET is_of_journey = 1 WHERE substr(id, 1, 9) <> 'no-token:'",
        ])

    /// Since then a session says how strongly its journey itself has proved who the user is. Of those that were there
    /// nothing is known, so they are not fresh authentication where one needs a level.
    static let journeyLevels = Migration(
        "levels of journeys", ["ALTER TABLE sessions ADD COLUMN journey_level INTEGER NOT NULL DEFAULT 0"])

    /// Since then a session knows those before it, each of which a step-up has replaced by the next one.
    static let earlierSessions = Migration("earlier sessions", ["ALTER TABLE sessions ADD COLUMN earlier TEXT"])

    /// Grants and what hangs on them. A grant's row outlives its tokens, so that a token that comes back late is known
    /// for what it is. A grant of a client to itself has no user and no session.
    /// `expires_at` is when nothing of the grant can be used any more.
    static let grants = Migration(
        "grants",
        [
            // Two nodes that start together on an empty database must end up with one key.
            "CREATE UNIQUE INDEX server_keys_active ON server_keys (purpose, algorithm) WHERE retired_at IS NULL",
            """
            CREATE TABLE grants (
                id TEXT PRIMARY KEY,
                realm TEXT NOT NULL,
                client_id TEXT NOT NULL,
                user_id TEXT REFERENCES users (id),
                session_id TEXT,
                session_audit_id TEXT,
                scope TEXT NOT NULL,
                auth_time BIGINT,
                auth_level INTEGER,
                key_thumbprint TEXT,
                is_offline INTEGER NOT NULL,
                created_at BIGINT NOT NULL,
                expires_at BIGINT NOT NULL,
                revoked_at BIGINT,
                revoked_because TEXT)
            """,
            "CREATE INDEX grants_user ON grants (user_id)",
            "CREATE INDEX grants_session ON grants (session_id)",
            "CREATE INDEX grants_expiry ON grants (expires_at)",
            """
            CREATE TABLE oauth_codes (
                id TEXT PRIMARY KEY,
                grant_id TEXT NOT NULL REFERENCES grants (id) ON DELETE CASCADE,
                client_id TEXT NOT NULL,
                redirect_uri TEXT NOT NULL,
                code_challenge TEXT NOT NULL,
                nonce TEXT,
                expires_at BIGINT NOT NULL,
                used_at BIGINT)
            """,
            "CREATE INDEX oauth_codes_grant ON oauth_codes (grant_id)",
            """
            CREATE TABLE refresh_tokens (
                id TEXT PRIMARY KEY,
                grant_id TEXT NOT NULL REFERENCES grants (id) ON DELETE CASCADE,
                client_id TEXT NOT NULL,
                issued_at BIGINT NOT NULL,
                expires_at BIGINT NOT NULL,
                used_at BIGINT,
                attempt_hash TEXT,
                successor_id TEXT,
                sealed_successor BLOB)
            """,
            "CREATE INDEX refresh_tokens_grant ON refresh_tokens (grant_id)",
            "CREATE INDEX refresh_tokens_successor ON refresh_tokens (successor_id)",
            """
            CREATE TABLE revoked_access_tokens (
                id TEXT PRIMARY KEY,
                grant_id TEXT NOT NULL,
                expires_at BIGINT NOT NULL)
            """,
            "CREATE INDEX revoked_access_tokens_expiry ON revoked_access_tokens (expires_at)",
        ])
}
