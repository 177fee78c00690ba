/// One step of the schema. Steps are numbered from 1 without gaps and never change once released.
package struct Migration: Sendable {
    /// What it brings, for the log.
    package let name: String

    /// The statements, in SQL that both databases understand; `BLOB` is written as such and translated for PostgreSQL.
    package let statements: [String]

    /// A step.
    package init(_ name: String, _ statements: [String]) {
        self.name = name
        self.statements = statements
    }
}

extension Migration {
    static let users = Migration(
        "users",
        [
            """
            CREATE TABLE users (
                id TEXT PRIMARY KEY,
                realm TEXT NOT NULL,
                username TEXT NOT NULL,
                password_hash TEXT,
                active INTEGER NOT NULL,
                roles TEXT NOT NULL,
                attributes TEXT NOT NULL,
                created_at BIGINT NOT NULL,
                UNIQUE (realm, username))
            """,
            """
            CREATE TABLE totp_credentials (
                user_id TEXT PRIMARY KEY REFERENCES users (id),
                sealed_secret BLOB NOT NULL,
                algorithm TEXT NOT NULL,
                digits INTEGER NOT NULL,
                period INTEGER NOT NULL,
                last_step BIGINT)
            """,
            """
            CREATE TABLE attempts (
                counter TEXT NOT NULL,
                window_start BIGINT NOT NULL,
                count BIGINT NOT NULL,
                PRIMARY KEY (counter, window_start))
            """,
        ])

    static let sessions = Migration(
        "sessions",
        [
            """
            CREATE TABLE sessions (
                id TEXT PRIMARY KEY,
                audit_id TEXT NOT NULL UNIQUE,
                user_id TEXT NOT NULL REFERENCES users (id),
                realm TEXT NOT NULL,
                auth_level INTEGER NOT NULL,
                created_at BIGINT NOT NULL,
                latest_access BIGINT NOT NULL,
                max_idle BIGINT NOT NULL,
                expires_at BIGINT NOT NULL,
                properties TEXT NOT NULL)
            """,
            "CREATE INDEX sessions_user ON sessions (user_id)",
            "CREATE INDEX sessions_expiry ON sessions (expires_at)",
        ])

    static let audit = Migration(
        "audit",
        [
            """
            CREATE TABLE audit (
                id TEXT PRIMARY KEY,
                at BIGINT NOT NULL,
                event TEXT NOT NULL,
                outcome TEXT NOT NULL,
                reason TEXT,
                realm TEXT,
                user_id TEXT,
                session_audit_id TEXT,
                transaction_id TEXT,
                detail TEXT NOT NULL)
            """,
            "CREATE INDEX audit_time ON audit (at)",
            "CREATE INDEX audit_transaction ON audit (transaction_id)",
        ])

    static let serverKeys = Migration(
        "server keys",
        [
            """
            CREATE TABLE server_keys (
                kid TEXT PRIMARY KEY,
                purpose TEXT NOT NULL,
                algorithm TEXT NOT NULL,
                sealed_key BLOB NOT NULL,
                public_jwk TEXT,
                created_at BIGINT NOT NULL,
                retired_at BIGINT)
            """,
            "CREATE INDEX server_keys_purpose ON server_keys (purpose)",
        ])
}
