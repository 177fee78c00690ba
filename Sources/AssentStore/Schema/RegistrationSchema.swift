extension Migration {
    /// Installations of apps that have registered as clients (RFC 7591), and what they register with. A grant of an
    /// instance is deleted with its row: a grant that is made at that moment waits for the one or the other.
    static let registrations = Migration(
        "registrations",
        [
            """
            CREATE TABLE client_instances (
                id TEXT PRIMARY KEY,
                realm TEXT NOT NULL,
                app TEXT NOT NULL,
                key_thumbprint TEXT NOT NULL,
                metadata TEXT NOT NULL,
                token_hash TEXT NOT NULL,
                created_at BIGINT NOT NULL,
                used_at BIGINT NOT NULL,
                expires_at BIGINT NOT NULL)
            """,
            "CREATE INDEX client_instances_app ON client_instances (realm, app, id)",
            "CREATE INDEX client_instances_expiry ON client_instances (expires_at)",
            """
            CREATE TABLE registration_tokens (
                hash TEXT PRIMARY KEY,
                realm TEXT NOT NULL,
                app TEXT NOT NULL,
                uses_left BIGINT NOT NULL,
                created_at BIGINT NOT NULL,
                expires_at BIGINT NOT NULL)
            """,
            "CREATE INDEX registration_tokens_expiry ON registration_tokens (expires_at)",
            // To count a million rows at each registration would take too long.
            """
            CREATE TABLE registered_apps (
                realm TEXT NOT NULL,
                app TEXT NOT NULL,
                instances BIGINT NOT NULL,
                PRIMARY KEY (realm, app))
            """,
            "ALTER TABLE grants ADD COLUMN instance_id TEXT REFERENCES client_instances (id) ON DELETE CASCADE",
            "CREATE INDEX grants_instance ON grants (instance_id) WHERE instance_id IS NOT NULL",
            "CREATE INDEX consents_client ON consents (client_id)",
        ])

    /// Since then the version and the platform of an instance can be read without its metadata: they are looked up with
    /// each of its tokens.
    static let instanceVersions = Migration(
        "versions of instances",
        [
            "ALTER TABLE client_instances ADD COLUMN app_version TEXT",
            "ALTER TABLE client_instances ADD COLUMN app_platform TEXT",
        ])

    /// Since then the sessions of the kind `stateless` of one key are found among all sessions: they are looked for
    /// whenever a key is registered.
    static let statelessKeys = Migration(
        "keys of stateless sessions",
        ["CREATE INDEX sessions_stateless ON sessions (sender) WHERE kind = 'stateless'"])
}
