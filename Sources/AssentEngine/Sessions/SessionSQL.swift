import AssentStore

/// What is true of sessions in SQL, written once: revocation rests on it.
enum SessionSQL {
    /// That session `s` is alive: it has not expired, it was used recently enough, its user `u` is active, and what
    /// they had was not ended since. So a session that begins at the very moment of a lock does not live when the user
    /// is let in again.
    static func isAlive(at now: Int64) -> SQL {
        "s.expires_at > \(now) AND s.latest_access + s.max_idle > \(now) AND u.active = 1 AND s.epoch = u.epoch"
    }

    /// A session together with its user, as `s` and `u`.
    static let withUser: SQL = "sessions s JOIN users u ON u.id = s.user_id"
}
