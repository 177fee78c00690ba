extension Migration {
    /// What users have agreed to, for each client whose users are asked. A user belongs to one realm.
    static let consents = Migration(
        "consents",
        [
            """
            CREATE TABLE consents (
                user_id TEXT NOT NULL REFERENCES users (id),
                client_id TEXT NOT NULL,
                realm TEXT NOT NULL,
                scope TEXT NOT NULL,
                granted_at BIGINT NOT NULL,
                used_at BIGINT NOT NULL,
                expires_at BIGINT NOT NULL,
                PRIMARY KEY (user_id, client_id))
            """,
            "CREATE INDEX consents_expiry ON consents (expires_at)",
        ])
}
