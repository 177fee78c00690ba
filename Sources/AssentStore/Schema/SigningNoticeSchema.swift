extension Migration {
    /// What a user's devices are told of the user's other ones, until they have got it.
    static let signingNotices = Migration(
        "signing notices",
        [
            """
            CREATE TABLE signing_notices (
                id TEXT NOT NULL,
                did TEXT NOT NULL REFERENCES signing_containers (did),
                event TEXT NOT NULL,
                about TEXT NOT NULL,
                name TEXT NOT NULL,
                at BIGINT NOT NULL,
                expires_at BIGINT NOT NULL,
                PRIMARY KEY (did, id))
            """,
            "CREATE INDEX signing_notices_expiry ON signing_notices (expires_at)",
        ])

    /// Since then a notice holds its place among those of its second.
    static let signingNoticePositions = Migration(
        "signing notice positions", ["ALTER TABLE signing_notices ADD COLUMN position BIGINT NOT NULL DEFAULT 0"])
}
