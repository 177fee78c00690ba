import AssentStore

/// What is true of sessions in SQL, written once: revocation rests on it.
enum SessionSQL {
    /// That session `s` is alive: it has not expired, it was used recently enough, its user `u` is active, and what
    /// they had was not ended since. So a session that begins at the very moment of a lock does not live when the user
    /// is let in again. One that belongs to a grant lives no longer than that, and one of the kind `stateless` no
    /// longer than the installation by whose key it was begun: no grant may hang on it yet that would end it.
    static func isAlive(at now: Int64) -> SQL {
        """
        s.expires_at > \(now) AND s.latest_access + s.max_idle > \(now) AND u.active = 1 AND s.epoch = u.epoch
            AND (s.grant_id IS NULL OR \(hasItsGrant(at: now)))
            AND (s.kind <> 'stateless' OR EXISTS (SELECT 1 \(itsInstance)))
        """
    }

    /// That session `s` is not of the kind `stateless`, or belongs to the key of an installation of an app that allows
    /// such sessions by the file. A session does not say in which app it was begun.
    static func isLetIn(by apps: [String: [OAuthApp]]) -> SQL {
        let allowing: [(realm: String, app: String)] = apps.sorted { $0.key < $1.key }.flatMap { realm, apps in
            apps.filter(\.allowsStateless).map { (realm: realm, app: $0.id) }
        }
        let isOfOne = allowing.reduce("1 = 0" as SQL) {
            "\($0) OR (i.realm = \($1.realm) AND i.app = \($1.app))"
        }
        return "(s.kind <> 'stateless' OR EXISTS (SELECT 1 \(itsInstance) AND (\(isOfOne))))"
    }

    /// The installations as `i` that the key of session `s` is registered for (``SenderBinding/stored``), if they are
    /// all of one app.
    private static let itsInstance: SQL = """
        FROM client_instances i
            WHERE i.realm = s.realm AND i.key_thumbprint = substr(s.sender, 5)
                AND substr(s.sender, 1, 4) = 'jkt:' AND \(ClientInstance.isOfOneApp)
        """

    /// That the grant of session `s` is valid, and the session that the grant was given in is alive. That session
    /// belongs to no grant itself: ``WebLinks`` sees to it.
    private static func hasItsGrant(at now: Int64) -> SQL {
        """
        EXISTS (SELECT 1 FROM grants og LEFT JOIN sessions os ON os.id = og.session_id AND os.user_id = og.user_id
                AND os.expires_at > \(now) AND os.latest_access + os.max_idle > \(now) AND os.epoch = u.epoch
            WHERE og.id = s.grant_id AND og.user_id = s.user_id AND og.revoked_at IS NULL AND og.expires_at > \(now)
                AND og.epoch = u.epoch AND (og.is_offline = 1 OR os.id IS NOT NULL))
        """
    }

    /// A session together with its user, as `s` and `u`.
    static let withUser: SQL = "sessions s JOIN users u ON u.id = s.user_id"
}
