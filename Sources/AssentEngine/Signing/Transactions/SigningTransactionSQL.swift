import AssentSigningProtocol
import AssentStore

enum SigningTransactionSQL {
    private typealias State = SigningTransactionRecord.State

    /// That a transaction waits for an answer.
    static func isPending(at now: Int64) -> SQL { "state = \(State.pending) AND expires_at > \(now)" }

    /// Makes a transaction if the limits allow one more. To be run behind ``ContainerSQL/hold(user:)``, so that all see
    /// what others have made.
    static func create(_ new: SigningTransactionRecord, issuer: String, limits: SigningLimits) -> SQL {
        insert(
            new, issuer: issuer, user: "u.id",
            from: """
                users u WHERE u.id = \(new.userID)
                    AND (\(new.isOwnSession) = 1 OR (\(allows(new, issuer, limits))))
                """)
    }

    /// Makes a transaction without a user if the client may have one more. Calls at the same moment may go over the
    /// limit by their number.
    static func createUnclaimed(_ new: SigningTransactionRecord, issuer: String, limits: SigningLimits) -> SQL {
        insert(
            new, issuer: issuer, user: "NULL",
            from: """
                (SELECT count(*) AS waiting FROM signing_transactions t
                    WHERE t.iss = \(issuer) AND t.client_id = \(new.clientID) AND t.user_id IS NULL
                        AND t.state = \(State.pending) AND t.expires_at > \(new.createdAt)) counted
                WHERE counted.waiting < \(limits.claimsOfClient)
                """)
    }

    private static func insert(_ new: SigningTransactionRecord, issuer: String, user: SQL, from source: SQL) -> SQL {
        """
        INSERT INTO signing_transactions
            (txn, iss, client_id, user_id, did, kind, state, content, req, request, match_number, created_at,
            expires_at, own_session, policy_transaction, idempotency_key, request_key)
        SELECT \(new.txn), \(issuer), \(new.clientID), \(user), \(new.did), \(new.kind), \(State.pending),
            \(new.content), \(new.req), \(new.request), \(new.matchNumber), \(new.createdAt), \(new.expiresAt),
            \(new.isOwnSession), \(new.policyTransaction), \(new.idempotency?.key), \(new.idempotency?.request)
        FROM \(source)
        ON CONFLICT DO NOTHING
        """
    }

    private static func allows(_ new: SigningTransactionRecord, _ issuer: String, _ limits: SigningLimits) -> SQL {
        let now = new.createdAt
        let ofUser: SQL = "SELECT count(*) FROM signing_transactions t WHERE t.user_id = \(new.userID)"
        let ofClient: SQL = "\(ofUser) AND t.iss = \(issuer) AND t.client_id = \(new.clientID)"
        let open: SQL = "t.state = \(State.pending) AND t.expires_at > \(now)"
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

    /// Gives a transaction without a user to a container that may approve it.
    static func claim(_ txn: SigningID, for container: SigningContainerRecord, issuer: String, at now: Int64) -> SQL {
        """
        UPDATE signing_transactions SET user_id = \(container.userID), claimed_by = \(container.did)
        WHERE txn = \(txn) AND iss = \(issuer) AND \(isPending(at: now)) AND user_id IS NULL
            AND EXISTS (SELECT 1 FROM signing_containers c JOIN users u ON u.id = c.user_id
                WHERE c.did = \(container.did) AND c.state = \(ContainerState.active) AND c.expires_at > \(now)
                    AND u.active = 1)
            AND \(hasKey(for: "kind", did: "\(container.did)"))
        """
    }

    /// That a container may fetch it.
    static func isOpen(for container: SigningContainerRecord, at now: Int64) -> SQL {
        """
        \(isPending(at: now)) AND user_id = \(container.userID)
            AND (did IS NULL OR did = \(container.did)) AND (claimed_by IS NULL OR claimed_by = \(container.did))
            AND iss = (SELECT c.iss FROM signing_containers c
                WHERE c.did = \(container.did) AND c.state = \(ContainerState.active))
            AND \(hasKey(for: "kind", did: "\(container.did)"))
        """
    }

    /// How many transactions a container may fetch, for ``count(_:)``.
    static func pending(for container: SigningContainerRecord, at now: Int64) -> SQL {
        "SELECT count(*) AS pending FROM signing_transactions WHERE \(isOpen(for: container, at: now))"
    }

    /// The number in the row of ``pending(for:at:)``; at most 1000.
    static func count(_ rows: [SQLRow]) throws -> Int { Int(min(1000, try rows.first?.integer("pending") ?? 0)) }

    /// That a container has a key for approving what is of a kind: without one it is not asked.
    static func hasKey(for kind: SQL, did: SQL) -> SQL {
        """
        EXISTS (SELECT 1 FROM signing_keys k WHERE k.did = \(did) AND k.state = \(SigningKeyState.active)
            AND k.usage = CASE \(kind) WHEN \(DocumentKind.authentication) THEN \(SigningKeyUsage.auth)
                ELSE \(SigningKeyUsage.sign) END)
        """
    }

    /// Keeps the document of a container unless it has one.
    static func deliver(
        _ document: SigningDocument, txn: SigningID, to container: SigningContainerRecord, at now: Int64
    ) -> SQL {
        """
        INSERT INTO signing_documents (txn, did, txd, txh, delivered_at)
        SELECT txn, \(container.did), \(document.txd), \(document.txh), \(now) FROM signing_transactions
        WHERE txn = \(txn) AND \(isOpen(for: container, at: now))
        ON CONFLICT (txn, did) DO NOTHING
        """
    }

    /// Uses the approvals for the policy's transaction that they were asked for: mostly one.
    static func take(policyTransaction: String, req: SigningHash) -> SQL {
        """
        UPDATE signing_transactions SET taken_by = \(policyTransaction)
        WHERE policy_transaction = \(policyTransaction) AND state = \(State.approved) AND taken_by IS NULL
            AND req = \(req)
        RETURNING txn
        """
    }
}
