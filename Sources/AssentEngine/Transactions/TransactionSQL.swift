package import AssentStore

/// The statements on transactions. The condition that decides a change stands in the statement that makes it, so that
/// nothing can happen between a look and the change.
package enum TransactionSQL {
    /// How far the clocks of two nodes may differ, in seconds.
    static let clockTolerance = NodeClocks.difference

    /// That the session is alive, its user active, and the session that user's; and, where the request came with an
    /// access token, that the token's grant has not ended: a grant may end alone, while a request is read that was let
    /// in before. So may the token of the request that wants to use the transaction, which `tokenID` is the id of.
    private static func live(at now: Int64, token tokenID: String? = nil) -> SQL {
        let isInForce: SQL = tokenID.map { " AND \(AccessClaims.revoked($0)) = 0" as SQL } ?? ""
        return """
            EXISTS (SELECT 1 FROM \(SessionSQL.withUser)
                WHERE s.id = transactions.session_id AND s.user_id = transactions.user_id
                    AND \(SessionSQL.isAlive(at: now))
                    AND (transactions.grant_id IS NULL OR EXISTS (SELECT 1 FROM grants tg
                        WHERE tg.id = transactions.grant_id AND tg.user_id = u.id AND tg.revoked_at IS NULL
                            AND tg.epoch = u.epoch))\(isInForce))
            """
    }

    private static func isCurrent(at now: Int64) -> SQL {
        "expires_at > \(now) AND created_at <= \(now + clockTolerance)"
    }

    /// Makes a transaction of a session that is alive, unless another one has the request's key.
    static func create(
        _ new: TransactionRecord, display: String, requestKey: String?
    ) -> SQL {
        let binding = new.binding
        return """
            INSERT INTO transactions
                (id, state, created_at, expires_at, kind, maker, url, display, bound, realm, policy_set, policy,
                policy_revision, strategy, specifier, resource, query, method, media_type, body_sha256, user_id, session_id,
                session_audit_id, grant_id, sender, request_key)
            SELECT \(new.id), 'CREATED', \(new.createdAt), \(new.expiresAt), \(binding.maker.kind),
                \(binding.maker.text), \(new.url), \(display),
                \(binding.boundText), \(binding.realm), \(binding.policySet), \(binding.policy),
                \(binding.policyRevision), \(binding.strategy), \(binding.specifier), \(binding.resource),
                \(binding.query), \(binding.method), \(binding.mediaType), \(binding.bodyDigest), s.user_id, s.id,
                s.audit_id, \(binding.grantID), \(binding.sender?.stored), \(requestKey)
            FROM \(SessionSQL.withUser)
            WHERE s.id = \(binding.sessionID) AND s.audit_id = \(binding.sessionAuditID)
                AND s.user_id = \(binding.userID) AND \(SessionSQL.isAlive(at: new.createdAt))
            ON CONFLICT DO NOTHING
            """
    }

    /// The transaction that has a request's key, if it is not older than `oldest` and waits to be looked at.
    static func find(requestKey: String, since oldest: Int64, at now: Int64) -> SQL {
        """
        SELECT * FROM transactions
        WHERE request_key = \(requestKey) AND state = 'CREATED' AND created_at >= \(oldest) AND \(isCurrent(at: now))
            AND \(live(at: now))
        """
    }

    /// Takes a request's key from a transaction that is older than `oldest`, or was made later than now.
    static func release(requestKey: String?, before oldest: Int64, at now: Int64) -> SQL {
        """
        UPDATE transactions SET request_key = NULL
        WHERE request_key = \(requestKey) AND state = 'CREATED'
            AND (created_at < \(oldest) OR NOT (\(isCurrent(at: now))))
        """
    }

    /// Whether it and its session are as they must be for a step of its journey.
    private static func isOwn(_ session: LiveSession, at now: Int64) -> SQL {
        """
        session_id = \(session.id) AND user_id = \(session.user.id) AND \(isCurrent(at: now)) AND \(live(at: now))
        """
    }

    /// The client whose grant came with the request, as `client`.
    private static let client: SQL = """
        (SELECT client_id FROM grants WHERE grants.id = transactions.grant_id) AS client
        """

    /// CREATED → IN_PROGRESS, with what is shown. Gives the record, with ``client``.
    static func start(_ id: String, session: LiveSession, shown: String?, at now: Int64) -> SQL {
        """
        UPDATE transactions SET state = 'IN_PROGRESS', started_at = \(now), shown = \(shown)
        WHERE id = \(id) AND state = 'CREATED' AND \(isOwn(session, at: now)) RETURNING *, \(client)
        """
    }

    /// The record while its journey runs, with ``client``.
    static func check(_ id: String, session: LiveSession, at now: Int64) -> SQL {
        """
        SELECT *, \(client) FROM transactions
        WHERE id = \(id) AND state = 'IN_PROGRESS' AND \(isOwn(session, at: now))
        """
    }

    /// IN_PROGRESS → COMPLETED.
    static func complete(_ id: String, session: LiveSession, at now: Int64) -> SQL {
        """
        UPDATE transactions SET state = 'COMPLETED', completed_at = \(now)
        WHERE id = \(id) AND state = 'IN_PROGRESS' AND \(isOwn(session, at: now)) RETURNING id
        """
    }

    /// CREATED or IN_PROGRESS → DECLINED.
    static func decline(_ id: String, session: LiveSession) -> SQL {
        """
        UPDATE transactions SET state = 'DECLINED'
        WHERE id = \(id) AND state IN ('CREATED', 'IN_PROGRESS') AND session_id = \(session.id)
            AND user_id = \(session.user.id) RETURNING id
        """
    }

    /// COMPLETED → TAKEN. This one statement is what makes an approval good for one access. With an attempt it is also
    /// noted as forwarded: who asked may send at once.
    package static func take(
        _ id: String, binding: TransactionBinding, by attempt: TransactionAttempt? = nil, token tokenID: String? = nil,
        at now: Int64
    ) -> SQL {
        var set: SQL = "state = 'TAKEN', taken_at = \(now)"
        if let attempt {
            set = "\(set), forwarded_at = \(now), attempt = \(attempt.id), question = \(attempt.question)"
        }
        var compared: SQL = ""
        if binding.bound.contains(.query) { compared = "\(compared) AND query IS NOT DISTINCT FROM \(binding.query)" }
        if binding.bound.contains(.method) {
            compared = "\(compared) AND method IS NOT DISTINCT FROM \(binding.method)"
        }
        if binding.bound.contains(.body) {
            compared = """
                \(compared) AND media_type IS NOT DISTINCT FROM \(binding.mediaType)
                    AND body_sha256 IS NOT DISTINCT FROM \(binding.bodyDigest)
                """
        }
        return """
            UPDATE transactions SET \(set)
            WHERE id = \(id) AND state = 'COMPLETED' AND \(isCurrent(at: now))
                AND completed_at <= \(now + clockTolerance)
                AND maker = \(binding.maker.text) AND realm = \(binding.realm) AND policy_set = \(binding.policySet) AND policy = \(binding.policy)
                AND policy_revision = \(binding.policyRevision) AND strategy = \(binding.strategy)
                AND specifier = \(binding.specifier) AND resource = \(binding.resource)\(compared)
                AND user_id = \(binding.userID) AND session_id = \(binding.sessionID)
                AND session_audit_id = \(binding.sessionAuditID)
                AND grant_id IS NOT DISTINCT FROM \(binding.grantID)
                AND sender IS NOT DISTINCT FROM \(binding.sender?.stored) AND \(live(at: now, token: tokenID))
            """
    }

    /// The record, with whether its session is alive, and its grant and the access token `tokenID`, as `live`.
    static func find(_ id: String, token tokenID: String? = nil, at now: Int64) -> SQL {
        """
        SELECT *, CASE WHEN \(live(at: now, token: tokenID)) THEN 1 ELSE 0 END AS live
        FROM transactions WHERE id = \(id)
        """
    }

    /// Its time is over, for good.
    static func expire(_ id: String, at now: Int64) -> SQL {
        """
        UPDATE transactions SET state = 'EXPIRED'
        WHERE id = \(id) AND state IN ('CREATED', 'IN_PROGRESS', 'COMPLETED') AND expires_at <= \(now)
        """
    }

    /// Notes that the request is about to be sent.
    static func forward(_ id: String, at now: Int64) -> SQL {
        """
        UPDATE transactions SET forwarded_at = \(now)
        WHERE id = \(id) AND state = 'TAKEN' AND forwarded_at IS NULL AND outcome IS NULL RETURNING id
        """
    }

    /// Whether an outcome says more than what is on record: what is known is not overwritten, and that nothing is known
    /// is written once.
    private static func saysMore(_ outcome: String) -> SQL {
        outcome == "unknown" ? "outcome IS NULL" : "(outcome IS NULL OR outcome = 'unknown')"
    }

    /// Notes what became of the request, if that says more than what is known.
    static func conclude(_ id: String, outcome: String, status: Int?, at now: Int64) -> SQL {
        """
        UPDATE transactions SET outcome = \(outcome), upstream_status = \(status), outcome_at = \(now)
        WHERE id = \(id) AND state = 'TAKEN' AND \(saysMore(outcome)) RETURNING *
        """
    }

    /// Notes what became of the request of an attempt, if that says more than what is known.
    static func conclude(
        _ id: String, by attempt: String, outcome: String, status: Int?, at now: Int64
    ) -> SQL {
        """
        UPDATE transactions SET outcome = \(outcome), upstream_status = \(status), outcome_at = \(now)
        WHERE id = \(id) AND state = 'TAKEN' AND attempt = \(attempt) AND \(saysMore(outcome))
        """
    }

    /// The records of which nobody has noted what became of them: forwarded at `oldest` or before, or taken by the
    /// gateway then and not forwarded. What an enforcement point over REST does with a transaction is not noted here.
    static func lost(before oldest: Int64, limit: Int) -> SQL {
        """
        SELECT * FROM transactions WHERE state = 'TAKEN' AND outcome IS NULL
            AND (forwarded_at <= \(oldest)
                OR (forwarded_at IS NULL AND taken_at <= \(oldest) AND kind = \(TransactionMaker.gateway.kind)))
        ORDER BY taken_at, id LIMIT \(limit)
        """
    }

    /// Notes that nobody knows what became of a request that was forwarded.
    static func concludeForwarded(_ id: String, before oldest: Int64, at now: Int64) -> SQL {
        """
        UPDATE transactions SET outcome = 'unknown', outcome_at = \(now)
        WHERE id = \(id) AND state = 'TAKEN' AND outcome IS NULL AND forwarded_at <= \(oldest)
        """
    }

    /// Notes that a request was not forwarded. Nobody can forward it after that.
    static func concludeTaken(_ id: String, at now: Int64) -> SQL {
        """
        UPDATE transactions SET outcome = 'notForwarded', outcome_at = \(now)
        WHERE id = \(id) AND state = 'TAKEN' AND outcome IS NULL AND forwarded_at IS NULL
        """
    }

    /// That an unused transaction expired before `unusedBefore`, or a taken one before `takenBefore`.
    static func isPast(unusedBefore: Int64, takenBefore: Int64) -> SQL {
        """
        (state <> 'TAKEN' AND expires_at <= \(unusedBefore)) OR (state = 'TAKEN' AND expires_at <= \(takenBefore))
        """
    }
}
