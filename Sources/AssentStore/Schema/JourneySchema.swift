extension Migration {
    static let journeySteps = Migration(
        "journey steps",
        [
            """
            CREATE TABLE journey_steps (
                id TEXT PRIMARY KEY,
                created_at BIGINT NOT NULL,
                expires_at BIGINT NOT NULL,
                sealed_state BLOB NOT NULL,
                claim TEXT,
                claimed_at BIGINT,
                answer TEXT,
                answered_at BIGINT,
                sealed_reply BLOB)
            """,
            "CREATE INDEX journey_steps_expiry ON journey_steps (expires_at)",
        ])
}
