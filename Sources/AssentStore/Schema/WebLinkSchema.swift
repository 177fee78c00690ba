extension Migration {
    /// Links by which apps sign browsers in. The id is the hash of what stands in the URL, and a link is deleted with
    /// its grant. Since then a session may belong to a grant, with which it ends.
    static let webLinks = Migration(
        "web links",
        [
            """
            CREATE TABLE web_links (
                id TEXT PRIMARY KEY,
                realm TEXT NOT NULL,
                grant_id TEXT NOT NULL REFERENCES grants (id) ON DELETE CASCADE,
                target TEXT NOT NULL,
                created_at BIGINT NOT NULL,
                expires_at BIGINT NOT NULL,
                used_at BIGINT)
            """,
            "CREATE INDEX web_links_grant ON web_links (grant_id)",
            "CREATE INDEX web_links_expiry ON web_links (expires_at)",
            "ALTER TABLE sessions ADD COLUMN grant_id TEXT",
            "CREATE INDEX sessions_grant ON sessions (grant_id) WHERE grant_id IS NOT NULL",
        ])
}
