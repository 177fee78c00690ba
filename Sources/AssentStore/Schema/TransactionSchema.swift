extension Migration {
    /// No foreign keys: what is left of a taken transaction outlives the session that it was made in.
    static let transactions = Migration(
        "transactions",
        [
            """
            CREATE TABLE transactions (
                id TEXT PRIMARY KEY,
                kind TEXT NOT NULL,
                state TEXT NOT NULL,
                realm TEXT NOT NULL,
                policy_set TEXT NOT NULL,
                policy TEXT NOT NULL,
                policy_revision TEXT NOT NULL,
                strategy TEXT NOT NULL,
                specifier TEXT NOT NULL,
                url TEXT NOT NULL,
                resource TEXT NOT NULL,
                query TEXT,
                method TEXT,
                media_type TEXT,
                body_sha256 TEXT,
                user_id TEXT NOT NULL,
                session_id TEXT NOT NULL,
                session_audit_id TEXT NOT NULL,
                grant_id TEXT,
                key_thumbprint TEXT,
                display TEXT NOT NULL,
                created_at BIGINT NOT NULL,
                expires_at BIGINT NOT NULL,
                started_at BIGINT,
                completed_at BIGINT,
                taken_at BIGINT,
                forwarded_at BIGINT,
                outcome TEXT,
                upstream_status INTEGER,
                outcome_at BIGINT)
            """,
            "CREATE INDEX transactions_expiry ON transactions (expires_at)",
        ])

    /// Since then a request that is refused again within seconds gets the transaction of the first time: what both have
    /// in common, while the transaction waits to be looked at.
    static let repeatedRequests = Migration(
        "repeated requests",
        [
            "ALTER TABLE transactions ADD COLUMN request_key TEXT",
            "CREATE UNIQUE INDEX transactions_request ON transactions (request_key) WHERE state = 'CREATED'",
        ])

    /// Since then a record also holds what its policy does not bind. In older ones that is missing, and nothing is
    /// compared.
    static let boundFields = Migration(
        "bound fields",
        ["ALTER TABLE transactions ADD COLUMN bound TEXT NOT NULL DEFAULT 'body method query'"])

    /// Since then a record holds who has asked for it. Older ones can no longer be taken.
    static let transactionMakers = Migration(
        "transaction makers", ["ALTER TABLE transactions ADD COLUMN maker TEXT NOT NULL DEFAULT ''"])

    /// Since then a record holds what its user was first shown, in one language.
    static let shownLines = Migration("shown lines", ["ALTER TABLE transactions ADD COLUMN shown TEXT"])

    /// Since then a record holds the request of a gateway elsewhere that it was taken for: SHA-256 values of the
    /// client with its attempt, and of the whole question.
    static let transactionAttempts = Migration(
        "transaction attempts",
        [
            "ALTER TABLE transactions ADD COLUMN attempt TEXT",
            "ALTER TABLE transactions ADD COLUMN question TEXT",
        ])
}
