extension Migration {
    /// What housekeeping looks for every few minutes in tables that grow with each refresh and with each device. It
    /// would read all of them without an index, which takes longer than a statement may.
    static let housekeeping = Migration(
        "housekeeping",
        [
            "CREATE INDEX refresh_tokens_sealed ON refresh_tokens (used_at) WHERE sealed_successor IS NOT NULL",
            "CREATE INDEX signing_containers_invite ON signing_containers (pid)",
        ])

    /// The same for the keys of renewals that have not ended, among those of all devices.
    static let pendingKeys = Migration(
        "pending keys", ["CREATE INDEX signing_keys_pending ON signing_keys (did) WHERE state = 'PENDING'"])

    /// The same for what was counted a day ago, among all that was counted since: nodes that share a database write a
    /// row for each minute in which a device calls.
    static let attemptAges = Migration(
        "attempt ages", ["CREATE INDEX attempts_age ON attempts (window_start)"])
}
