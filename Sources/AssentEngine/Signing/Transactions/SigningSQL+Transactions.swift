import AssentStore

extension SigningSQL {
    /// Makes a transaction if the limits allow one more. To be run behind ``hold(user:)``, so that all see what others
    /// have made.
    static func create(_ new: SigningTransactionRecord, issuer: String, limits: SigningLimits) -> SQL {
        """
        INSERT INTO signing_transactions
            (txn, iss, client_id, user_id, did, kind, state, content, req, request, match_number, created_at,
            expires_at, own_session, policy_transaction, idempotency_key, request_key)
        SELECT \(new.txn), \(issuer), \(new.clientID), u.id, \(new.did), \(new.kind), 'PENDING', \(new.content),
            \(new.req), \(new.request), \(new.matchNumber), \(new.createdAt), \(new.expiresAt), \(new.isOwnSession),
            \(new.policyTransaction), \(new.idempotency?.key), \(new.idempotency?.request)
        FROM users u WHERE u.id = \(new.userID) AND (\(new.isOwnSession) = 1 OR (\(allows(new, issuer, limits))))
        ON CONFLICT DO NOTHING
        """
    }

    private static func allows(_ new: SigningTransactionRecord, _ issuer: String, _ limits: SigningLimits) -> SQL {
        let now = new.createdAt
        let ofUser: SQL = "SELECT count(*) FROM signing_transactions t WHERE t.user_id = \(new.userID)"
        let ofClient: SQL = "\(ofUser) AND t.iss = \(issuer) AND t.client_id = \(new.clientID)"
        let open: SQL = "t.state = 'PENDING' AND t.expires_at > \(now)"
        let answered: SQL = """
            SELECT coalesce(max(a.decided_at), 0) FROM signing_transactions a
            WHERE a.user_id = \(new.userID) AND a.iss = \(issuer) AND a.client_id = \(new.clientID)
            """
        return """
            (\(ofUser) AND \(open)) < \(limits.openOfUser)
            AND (\(ofClient) AND \(open)) < \(limits.openOfClient)
            AND (\(ofClient) AND t.created_at > \(now - 60)) < \(limits.perMinute)
            AND (\(ofClient) AND t.created_at > \(now - 3600) AND t.decided_at IS NULL
                AND t.created_at > (\(answered))) < \(limits.unanswered)
            """
    }

    /// That a container may fetch it.
    static func isOpen(for container: SigningContainerRecord, at now: Int64) -> SQL {
        """
        state = 'PENDING' AND expires_at > \(now) AND user_id = \(container.userID)
            AND (did IS NULL OR did = \(container.did)) AND (claimed_by IS NULL OR claimed_by = \(container.did))
            AND iss = (SELECT c.iss FROM signing_containers c WHERE c.did = \(container.did) AND c.state = 'ACTIVE')
            AND \(hasKey(for: "kind", did: "\(container.did)"))
        """
    }

    /// That a container has a key for approving what is of a kind: without one it is not asked.
    static func hasKey(for kind: SQL, did: SQL) -> SQL {
        """
        EXISTS (SELECT 1 FROM signing_keys k WHERE k.did = \(did) AND k.state = 'ACTIVE'
            AND k.usage = CASE \(kind) WHEN 'authentication' THEN 'auth' ELSE 'sign' END)
        """
    }

    /// Keeps the document of a container unless it has one.
    static func deliver(_ document: SigningDocument, txn: String, to container: SigningContainerRecord, at now: Int64)
        -> SQL
    {
        """
        INSERT INTO signing_documents (txn, did, txd, txh, delivered_at)
        SELECT txn, \(container.did), \(document.txd), \(document.txh), \(now) FROM signing_transactions
        WHERE txn = \(txn) AND \(isOpen(for: container, at: now))
        ON CONFLICT (txn, did) DO NOTHING
        """
    }

    /// Lets one decision try the number, and gives the number: committed before it is compared.
    static func claimNumber(txn: String, dh: String, at now: Int64) -> SQL {
        """
        UPDATE signing_transactions SET match_by = \(dh)
        WHERE txn = \(txn) AND state = 'PENDING' AND expires_at > \(now)
            AND (match_by IS NULL OR match_by = \(dh))
        RETURNING match_number
        """
    }

    static func fail(txn: String, reason: String) -> SQL {
        """
        UPDATE signing_transactions SET state = 'FAILED', reason = \(reason)
        WHERE txn = \(txn) AND state = 'PENDING'
        """
    }

    static func cancel(txn: String, client: String, issuer: String, at now: Int64) -> SQL {
        """
        UPDATE signing_transactions SET state = 'CANCELED', reason = 'client'
        WHERE txn = \(txn) AND client_id = \(client) AND iss = \(issuer) AND state = 'PENDING'
            AND expires_at > \(now)
        """
    }

    static func expire(at now: Int64) -> SQL {
        "UPDATE signing_transactions SET state = 'EXPIRED' WHERE state = 'PENDING' AND expires_at <= \(now)"
    }

    /// Uses an approval for the policy's transaction that it was asked for.
    static func take(policyTransaction: String, req: String) -> SQL {
        """
        UPDATE signing_transactions SET taken_by = \(policyTransaction)
        WHERE policy_transaction = \(policyTransaction) AND state = 'APPROVED' AND taken_by IS NULL
            AND req = \(req)
        RETURNING txn
        """
    }
}
