extension Migration {
    static let administration = Migration(
        "administration",
        [
            """
            CREATE TABLE bootstrap_tokens (
                hash TEXT PRIMARY KEY,
                created_at BIGINT NOT NULL,
                used_at BIGINT,
                used_by TEXT)
            """
        ])
}
