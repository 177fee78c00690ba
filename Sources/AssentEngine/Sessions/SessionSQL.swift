import AssentStore

/// What is true of sessions in SQL, written once: revocation rests on it.
enum SessionSQL {
    /// That session `s` is alive: it has not expired, it was used recently enough, and its user `u` is active.
    static func isAlive(at now: Int64) -> SQL {
        "s.expires_at > \(now) AND s.latest_access + s.max_idle > \(now) AND u.active = 1"
    }

    /// A session together with its user, as `s` and `u`.
    static let withUser: SQL = "sessions s JOIN users u ON u.id = s.user_id"
}
