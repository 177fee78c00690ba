import AssentStore

/// The statements on transactions. Whatever decides a change stands in the statement that makes it, so that nothing can
/// happen between the look and the leap. In all of them ?1 is the id and ?2 the time.
package enum TransactionSQL {
    /// How far the clocks of two nodes may differ, in seconds.
    static let clockTolerance: Int64 = 30

    /// That the session is alive, its user active, and the one the session of the other.
    private static let live = """
        EXISTS (SELECT 1 FROM sessions s JOIN users u ON u.id = s.user_id
            WHERE s.id = transactions.session_id AND s.user_id = transactions.user_id
            AND s.expires_at > ?2 AND s.latest_access + s.max_idle > ?2 AND u.active = 1)
        """

    private static let inTime = "expires_at > ?2 AND created_at <= ?2 + \(clockTolerance)"

    /// Makes a transaction of a session that is alive: 1 id, 2 time, 3…18 the binding, 19 kind, 20 URL, 21 display,
    /// 22 expiry, 23 what is bound.
    static let create = """
        INSERT INTO transactions
            (id, state, created_at, realm, policy_set, policy, policy_revision, strategy, specifier, resource, query,
            method, media_type, body_sha256, user_id, session_id, session_audit_id, grant_id, key_thumbprint, kind, url,
            display, expires_at, bound)
        SELECT ?1, 'CREATED', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
            ?21, ?22, ?23
        WHERE EXISTS (SELECT 1 FROM sessions s JOIN users u ON u.id = s.user_id
            WHERE s.id = ?15 AND s.audit_id = ?16 AND s.user_id = ?14 AND s.expires_at > ?2
            AND s.latest_access + s.max_idle > ?2 AND u.active = 1)
        """

    /// Whether it and its session are as they must be for a step of its journey: 3 session, 4 user.
    private static let own = "session_id = ?3 AND user_id = ?4 AND \(inTime) AND \(live)"

    /// CREATED → IN_PROGRESS: 3 session, 4 user.
    static let start = """
        UPDATE transactions SET state = 'IN_PROGRESS', started_at = ?2
        WHERE id = ?1 AND state = 'CREATED' AND \(own) RETURNING *
        """

    /// The record while its journey runs: 3 session, 4 user.
    static let check = "SELECT * FROM transactions WHERE id = ?1 AND state = 'IN_PROGRESS' AND \(own)"

    /// IN_PROGRESS → COMPLETED: 3 session, 4 user.
    static let complete = """
        UPDATE transactions SET state = 'COMPLETED', completed_at = ?2
        WHERE id = ?1 AND state = 'IN_PROGRESS' AND \(own) RETURNING id
        """

    /// CREATED or IN_PROGRESS → DECLINED: 3 session, 4 user.
    static let decline = """
        UPDATE transactions SET state = 'DECLINED'
        WHERE id = ?1 AND state IN ('CREATED', 'IN_PROGRESS') AND session_id = ?3 AND user_id = ?4 RETURNING id
        """

    /// COMPLETED → TAKEN: 3…18 the binding, 19…21 whether query, method and body are compared. This one statement is
    /// what makes an approval good for one access.
    package static let take = """
        UPDATE transactions SET state = 'TAKEN', taken_at = ?2
        WHERE id = ?1 AND state = 'COMPLETED' AND \(inTime) AND completed_at <= ?2 + \(clockTolerance)
        AND realm = ?3 AND policy_set = ?4 AND policy = ?5 AND policy_revision = ?6 AND strategy = ?7
        AND specifier = ?8 AND resource = ?9 AND (?19 = 0 OR query IS NOT DISTINCT FROM ?10)
        AND (?20 = 0 OR method IS NOT DISTINCT FROM ?11)
        AND (?21 = 0 OR media_type IS NOT DISTINCT FROM ?12 AND body_sha256 IS NOT DISTINCT FROM ?13) AND user_id = ?14
        AND session_id = ?15 AND session_audit_id = ?16 AND grant_id IS NOT DISTINCT FROM ?17
        AND key_thumbprint IS NOT DISTINCT FROM ?18 AND \(live) RETURNING *
        """

    /// The record, with whether its session is alive as `live`.
    static let find = "SELECT *, CASE WHEN \(live) THEN 1 ELSE 0 END AS live FROM transactions WHERE id = ?1"

    /// Its time is over, for good.
    static let expire = """
        UPDATE transactions SET state = 'EXPIRED'
        WHERE id = ?1 AND state IN ('CREATED', 'IN_PROGRESS', 'COMPLETED') AND expires_at <= ?2
        """

    /// Notes that the request is about to be sent.
    static let forward = """
        UPDATE transactions SET forwarded_at = ?2
        WHERE id = ?1 AND state = 'TAKEN' AND forwarded_at IS NULL AND outcome IS NULL RETURNING id
        """

    /// Notes what became of the request: 3 outcome, 4 status. What is known is not overwritten.
    static let conclude = """
        UPDATE transactions SET outcome = ?3, upstream_status = ?4, outcome_at = ?2
        WHERE id = ?1 AND state = 'TAKEN' AND (outcome IS NULL OR outcome = 'unknown') RETURNING *
        """

    /// Deletes what is past: 1 the time before which unused ones must have expired, 2 the same for what taken ones
    /// left.
    static let purge = """
        DELETE FROM transactions WHERE (state <> 'TAKEN' AND expires_at <= ?1) OR (state = 'TAKEN' AND expires_at <= ?2)
        RETURNING id
        """
}
