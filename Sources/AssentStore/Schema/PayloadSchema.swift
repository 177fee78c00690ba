extension Migration {
    /// The static keys of payload encryption. The private half of one that was withdrawn is gone.
    static let payloadKeys = Migration(
        "payload keys",
        [
            """
            CREATE TABLE payload_keys (
                kid TEXT PRIMARY KEY,
                public_key TEXT NOT NULL,
                sealed_key BLOB,
                not_before BIGINT NOT NULL,
                not_after BIGINT NOT NULL,
                created_at BIGINT NOT NULL,
                withdrawn_at BIGINT)
            """
        ])
}
