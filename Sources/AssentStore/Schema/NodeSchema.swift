extension Migration {
    /// What several servers of a database tell each other. The token that makes the first administrator is one for all
    /// of them, so each must be able to read it.
    static let nodes = Migration(
        "nodes",
        [
            "CREATE TABLE nodes (id TEXT PRIMARY KEY, seen_at BIGINT NOT NULL, policies TEXT NOT NULL)",
            "CREATE TABLE leases (name TEXT PRIMARY KEY, holder TEXT NOT NULL, expires_at BIGINT NOT NULL)",
            "DELETE FROM bootstrap_tokens WHERE used_at IS NULL",
            "ALTER TABLE bootstrap_tokens ADD COLUMN sealed_token BLOB",
            "CREATE UNIQUE INDEX bootstrap_tokens_unused ON bootstrap_tokens ((used_at IS NULL)) WHERE used_at IS NULL",
        ])
}
