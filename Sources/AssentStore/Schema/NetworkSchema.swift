extension Migration {
    /// From which networks a user has signed in or approved, as keyed hashes. A user has few rows, in numbered places.
    static let usualNetworks = Migration(
        "usual networks",
        [
            """
            CREATE TABLE usual_networks (
                user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
                slot INTEGER NOT NULL,
                network TEXT NOT NULL,
                auth_level INTEGER NOT NULL,
                epoch BIGINT NOT NULL,
                seen_at BIGINT NOT NULL,
                PRIMARY KEY (user_id, slot))
            """,
            "CREATE INDEX usual_networks_age ON usual_networks (seen_at)",
        ])
}
