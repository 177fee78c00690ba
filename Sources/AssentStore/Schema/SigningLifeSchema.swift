extension Migration {
    /// What happens to signing devices over time: keys for one-time codes, renewals, and what earlier identity keys
    /// have certified.
    static let signingLife = Migration(
        "signing life",
        [
            """
            CREATE TABLE signing_otp_keys (
                did TEXT NOT NULL REFERENCES signing_containers (did),
                label TEXT NOT NULL,
                position INTEGER NOT NULL,
                policy TEXT NOT NULL,
                sealed_uri BLOB NOT NULL,
                counter BIGINT NOT NULL,
                created_at BIGINT NOT NULL,
                PRIMARY KEY (did, label))
            """,
            "ALTER TABLE signing_invites ADD COLUMN did TEXT",
            """
            CREATE TABLE signing_renewals (
                pid TEXT PRIMARY KEY,
                iss TEXT NOT NULL,
                did TEXT NOT NULL REFERENCES signing_containers (did),
                state TEXT NOT NULL,
                invite TEXT,
                commit_mode TEXT NOT NULL,
                offer TEXT NOT NULL,
                commitment TEXT,
                nonce_s TEXT,
                enrol TEXT,
                transcript TEXT,
                endorsements TEXT,
                name TEXT,
                device_kid TEXT,
                device_jwk TEXT,
                transport_jwk TEXT,
                sealed_echo BLOB,
                echo_hash TEXT,
                renew_at BIGINT,
                keys_expire_at BIGINT,
                echo_at BIGINT,
                digits_at BIGINT,
                created_at BIGINT NOT NULL,
                expires_at BIGINT NOT NULL)
            """,
            "CREATE INDEX signing_renewals_container ON signing_renewals (did)",
            """
            CREATE TABLE signing_certificates (
                kid TEXT NOT NULL,
                iss TEXT NOT NULL,
                identity TEXT NOT NULL,
                cert TEXT NOT NULL,
                PRIMARY KEY (kid, identity))
            """,
        ])

    /// Since then containers belong to the installation of an app that made their invite, and sessions to the container
    /// that has signed their user in, and end with it.
    static let logins = Migration(
        "logins",
        [
            "ALTER TABLE signing_invites ADD COLUMN instance_id TEXT",
            "CREATE INDEX signing_invites_instance ON signing_invites (instance_id) WHERE instance_id IS NOT NULL",
            "ALTER TABLE signing_containers ADD COLUMN instance_id TEXT",
            "CREATE INDEX signing_containers_instance ON signing_containers (instance_id) WHERE instance_id IS NOT NULL",
            "ALTER TABLE sessions ADD COLUMN did TEXT",
            "CREATE INDEX sessions_container ON sessions (did) WHERE did IS NOT NULL",
            "CREATE INDEX client_instances_key ON client_instances (realm, key_thumbprint)",
        ])

    /// Since then a container that is blocked knows what it was before. Of those that were blocked then nothing is
    /// known.
    static let blockedContainers = Migration(
        "blocked containers", ["ALTER TABLE signing_containers ADD COLUMN blocked_from TEXT"])
}
