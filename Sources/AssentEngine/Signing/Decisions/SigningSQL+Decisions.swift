import AssentStore

extension SigningSQL {
    /// Locks the container, if it may decide so: approving needs more than refusing does.
    static func use(container did: String, approving: Bool, at now: Int64) -> SQL {
        if approving {
            return """
                UPDATE signing_containers SET seen_at = \(now)
                WHERE did = \(did) AND state = 'ACTIVE' AND expires_at > \(now) AND approvals_from <= \(now)
                """
        }
        return """
            UPDATE signing_containers SET seen_at = \(now)
            WHERE did = \(did) AND state IN ('ACTIVE', 'SUSPECT') AND expires_at > \(now)
            """
    }

    static func use(key kid: String, of did: String, at now: Int64) -> SQL {
        """
        UPDATE signing_keys SET used_at = \(now)
        WHERE kid = \(kid) AND did = \(did) AND state = 'ACTIVE'
        """
    }

    static func decide(_ decision: SigningDecision, user: String, at now: Int64) -> SQL {
        let number: SQL = decision.needsNumber ? "match_by = \(decision.dh)" : "1 = 1"
        return """
            UPDATE signing_transactions SET state = \(decision.state.rawValue), status = \(decision.status),
                decided_by = \(decision.did), decided_at = \(now)
            WHERE txn = \(decision.txn) AND state = 'PENDING' AND expires_at > \(now) AND user_id = \(user)
                AND (did IS NULL OR did = \(decision.did)) AND (claimed_by IS NULL OR claimed_by = \(decision.did))
                AND \(number)
            """
    }

    static func keep(_ decision: SigningDecision, at now: Int64) -> SQL {
        """
        INSERT INTO signing_decisions (txn, did, dh, decision, possession, txd, eval, confirm, receipt,
            decided_at)
        VALUES (\(decision.txn), \(decision.did), \(decision.dh), \(decision.decision), \(decision.possession),
            \(decision.txd), \(decision.unlock?.evaluation), \(decision.unlock?.confirmation), \(decision.receipt),
            \(now))
        ON CONFLICT DO NOTHING
        """
    }
}
