extension Migration {
    /// Transaction signing: keys of the server, invites, devices and their keys, transactions and what was decided.
    ///
    /// `iss` is the issuer's name: another URL is another issuer. There are few foreign keys: evidence outlives what it
    /// is about.
    static let signing = Migration(
        "signing", signingServer + signingEnrolment + signingContainers + signingTransactions + signingEvidence)

    /// Since then what a call looks for is found among all transactions and devices that there have ever been: they are
    /// evidence, and stay. Each signed approval of a payment would read every transaction of every user, each new
    /// transaction all of its user or of its client, and each new device all devices.
    static let signingLookUps = Migration(
        "look-ups of signing",
        [
            """
            CREATE INDEX signing_transactions_policy ON signing_transactions (policy_transaction)
            WHERE policy_transaction IS NOT NULL
            """,
            """
            CREATE INDEX signing_transactions_waiting ON signing_transactions (user_id, iss, client_id, expires_at)
            WHERE state = 'PENDING'
            """,
            "CREATE INDEX signing_containers_voided ON signing_containers (user_id) WHERE state = 'VOID'",
        ])

    private static let signingServer = [
        """
        CREATE TABLE signing_identities (
            iss TEXT NOT NULL,
            seq INTEGER NOT NULL,
            kid TEXT NOT NULL UNIQUE,
            public_jwk TEXT NOT NULL,
            sealed_key BLOB NOT NULL,
            next TEXT,
            previous TEXT,
            created_at BIGINT NOT NULL,
            PRIMARY KEY (iss, seq))
        """,
        """
        CREATE TABLE signing_online_keys (
            kid TEXT PRIMARY KEY,
            iss TEXT NOT NULL,
            generation BIGINT NOT NULL,
            key_use TEXT NOT NULL,
            public_jwk TEXT NOT NULL,
            sealed_key BLOB NOT NULL,
            cert TEXT NOT NULL,
            created_at BIGINT NOT NULL,
            expires_at BIGINT NOT NULL,
            retired_at BIGINT,
            UNIQUE (iss, generation))
        """,
    ]

    private static let signingEnrolment = [
        """
        CREATE TABLE signing_invites (
            pid TEXT PRIMARY KEY,
            iss TEXT NOT NULL,
            user_id TEXT NOT NULL REFERENCES users (id),
            username TEXT NOT NULL,
            made_by TEXT NOT NULL,
            code_hash TEXT NOT NULL UNIQUE,
            state TEXT NOT NULL,
            created_at BIGINT NOT NULL,
            expires_at BIGINT NOT NULL,
            starts INTEGER NOT NULL,
            committed TEXT,
            digits TEXT,
            tries INTEGER NOT NULL)
        """,
        "CREATE INDEX signing_invites_user ON signing_invites (user_id)",
        "CREATE INDEX signing_invites_expiry ON signing_invites (expires_at)",
        """
        CREATE TABLE signing_enrolments (
            did TEXT PRIMARY KEY,
            iss TEXT NOT NULL,
            pid TEXT NOT NULL REFERENCES signing_invites (pid) ON DELETE CASCADE,
            device_kid TEXT NOT NULL,
            device_jwk TEXT NOT NULL,
            state TEXT NOT NULL,
            request_hash TEXT NOT NULL,
            offer TEXT NOT NULL,
            info TEXT NOT NULL,
            commitment TEXT,
            nonce_s TEXT,
            created_at BIGINT NOT NULL,
            expires_at BIGINT NOT NULL,
            UNIQUE (pid, device_kid))
        """,
    ]

    private static let signingContainers = [
        """
        CREATE TABLE signing_containers (
            did TEXT PRIMARY KEY,
            iss TEXT NOT NULL,
            user_id TEXT NOT NULL,
            username TEXT NOT NULL,
            number INTEGER,
            pid TEXT NOT NULL,
            state TEXT NOT NULL,
            serial TEXT NOT NULL UNIQUE,
            name TEXT NOT NULL,
            push_id TEXT,
            properties TEXT NOT NULL,
            commit_mode TEXT NOT NULL,
            device_kid TEXT NOT NULL,
            device_jwk TEXT NOT NULL,
            transport_jwk TEXT NOT NULL,
            sealed_echo BLOB NOT NULL,
            echo_hash TEXT NOT NULL,
            sealed_handle BLOB NOT NULL,
            offer TEXT NOT NULL,
            enrol TEXT NOT NULL,
            transcript TEXT NOT NULL,
            record TEXT,
            approvals_from BIGINT NOT NULL,
            renew_at BIGINT NOT NULL,
            expires_at BIGINT NOT NULL,
            void_at BIGINT NOT NULL,
            echo_at BIGINT,
            digits_at BIGINT,
            created_at BIGINT NOT NULL,
            seen_at BIGINT NOT NULL,
            ended_at BIGINT)
        """,
        "CREATE UNIQUE INDEX signing_containers_number ON signing_containers (iss, user_id, number)",
        "CREATE INDEX signing_containers_void ON signing_containers (void_at) WHERE state = 'UNCONFIRMED'",
        """
        CREATE TABLE signing_keys (
            kid TEXT PRIMARY KEY,
            did TEXT NOT NULL REFERENCES signing_containers (did),
            position INTEGER NOT NULL,
            usage TEXT NOT NULL,
            label TEXT NOT NULL,
            policy TEXT NOT NULL,
            slot TEXT,
            keystore TEXT NOT NULL,
            public_jwk TEXT NOT NULL,
            state TEXT NOT NULL,
            since BIGINT NOT NULL,
            used_at BIGINT)
        """,
        "CREATE INDEX signing_keys_container ON signing_keys (did)",
        """
        CREATE TABLE signing_records (
            did TEXT NOT NULL,
            seq INTEGER NOT NULL,
            record TEXT NOT NULL,
            enrol TEXT NOT NULL,
            offer TEXT NOT NULL,
            endorsements TEXT NOT NULL,
            created_at BIGINT NOT NULL,
            PRIMARY KEY (did, seq))
        """,
    ]

    private static let signingTransactions = [
        """
        CREATE TABLE signing_transactions (
            txn TEXT PRIMARY KEY,
            iss TEXT NOT NULL,
            client_id TEXT NOT NULL,
            user_id TEXT,
            did TEXT,
            claimed_by TEXT,
            kind TEXT NOT NULL,
            state TEXT NOT NULL,
            reason TEXT,
            status TEXT,
            content TEXT NOT NULL,
            req TEXT NOT NULL,
            request TEXT NOT NULL,
            match_number TEXT,
            match_by TEXT,
            created_at BIGINT NOT NULL,
            expires_at BIGINT NOT NULL,
            decided_by TEXT,
            decided_at BIGINT,
            own_session INTEGER NOT NULL,
            policy_transaction TEXT,
            taken_by TEXT,
            idempotency_key TEXT,
            request_key TEXT)
        """,
        "CREATE UNIQUE INDEX signing_transactions_request ON signing_transactions (iss, client_id, idempotency_key)",
        "CREATE INDEX signing_transactions_user ON signing_transactions (user_id, created_at)",
        "CREATE INDEX signing_transactions_open ON signing_transactions (expires_at) WHERE state = 'PENDING'",
        """
        CREATE TABLE signing_documents (
            txn TEXT NOT NULL,
            did TEXT NOT NULL,
            txd TEXT NOT NULL,
            txh TEXT NOT NULL,
            delivered_at BIGINT NOT NULL,
            PRIMARY KEY (txn, did))
        """,
    ]

    private static let signingEvidence = [
        """
        CREATE TABLE signing_decisions (
            txn TEXT PRIMARY KEY,
            did TEXT NOT NULL,
            dh TEXT NOT NULL,
            decision TEXT NOT NULL,
            possession TEXT,
            txd TEXT,
            eval TEXT,
            confirm TEXT,
            receipt TEXT NOT NULL,
            decided_at BIGINT NOT NULL)
        """,
        "CREATE TABLE signing_proofs (jti TEXT PRIMARY KEY, did TEXT NOT NULL, expires_at BIGINT NOT NULL)",
        "CREATE INDEX signing_proofs_expiry ON signing_proofs (expires_at)",
    ]
}
