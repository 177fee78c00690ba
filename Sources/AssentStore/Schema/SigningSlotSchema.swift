extension Migration {
    /// Password slots whose guesses the server counts: those that an offer has, those of containers, and the
    /// evaluations that were confirmed.
    ///
    /// Confirmed evaluations are kept as long as their slot: a confirmation that comes again must find that it came.
    static let signingSlots = Migration(
        "signing slots",
        [
            """
            CREATE TABLE signing_offered_slots (
                did TEXT NOT NULL,
                pid TEXT NOT NULL,
                slot TEXT NOT NULL,
                generation BIGINT NOT NULL,
                public_key BLOB NOT NULL,
                sealed_k BLOB NOT NULL,
                evaluations INTEGER NOT NULL,
                request TEXT,
                blinded TEXT,
                expires_at BIGINT NOT NULL,
                PRIMARY KEY (did, pid, slot))
            """,
            """
            CREATE TABLE signing_slots (
                did TEXT NOT NULL REFERENCES signing_containers (did),
                slot TEXT NOT NULL,
                generation BIGINT NOT NULL,
                public_key BLOB NOT NULL,
                sealed_k BLOB,
                pending_generation BIGINT,
                pending_public_key BLOB,
                pending_k BLOB,
                n BIGINT NOT NULL,
                floor BIGINT NOT NULL,
                unconfirmed BIGINT NOT NULL,
                cleared BIGINT NOT NULL,
                forgive_after BIGINT,
                next_at BIGINT NOT NULL,
                at BIGINT NOT NULL,
                counted INTEGER NOT NULL,
                request TEXT,
                blinded TEXT,
                cur TEXT,
                next TEXT,
                ahead BIGINT,
                held INTEGER NOT NULL,
                changed_at BIGINT NOT NULL,
                PRIMARY KEY (did, slot))
            """,
            """
            CREATE TABLE signing_confirms (
                did TEXT NOT NULL,
                slot TEXT NOT NULL,
                n BIGINT NOT NULL,
                unl TEXT NOT NULL,
                generation BIGINT NOT NULL,
                evaluated_at BIGINT NOT NULL,
                confirmed_at BIGINT NOT NULL,
                taken_by TEXT,
                eval TEXT,
                confirm TEXT,
                PRIMARY KEY (did, slot, n))
            """,
            "CREATE INDEX signing_confirms_texts ON signing_confirms (evaluated_at) WHERE eval IS NOT NULL",
        ])

    /// Since then a slot knows up to when evaluations were made that a restored backup may not have counted.
    static let restoredSlots = Migration(
        "restored slots", ["ALTER TABLE signing_slots ADD COLUMN restored_at BIGINT"])
}
