import AssentCore
import AssentSigningProtocol
import AssentStore

extension SigningStore {
    /// Makes a transaction for whoever scans it first.
    ///
    /// - Throws: ``SigningRefusal`` `rate_limited` when too many of the client wait.
    func createUnclaimed(_ new: SigningTransactionRecord, limits: SigningLimits) async throws
        -> SigningTransactionRecord
    {
        let made = try await succeeds([
            SQLStatement(
                SigningSQL.createUnclaimed(new, issuer: issuer.name, limits: limits), expecting: .exactly(1)),
            audit.statement(
                record(.signingCreate, user: nil, txn: new.txn, ["client": new.clientID, "step": "claim"])),
        ])
        if made { return new }
        if let known = try await repeated(new) { return known }
        try await audit.write(
            record(.signingCreate, .refused, reason: .rateLimited, user: nil, ["client": new.clientID]))
        throw SigningRefusal(.rateLimited)
    }

    /// Gives a transaction to the first container that asks for it.
    ///
    /// - Throws: ``SigningRefusal``: `tx_unknown` for every other container, and what its state says to its own;
    ///   `replay`.
    func claim(_ txn: String, for container: SigningContainerRecord, proof: SpentProof?, at now: Int64) async throws {
        let outcome = try await attempt(
            [SQLStatement(SigningSQL.claim(txn, for: container, issuer: issuer.name, at: now), expecting: .exactly(1))]
                + spending(proof, at: now) + [
                    audit.statement(
                        record(
                            .signingFetch, user: container.userID, did: container.did, txn: txn, ["step": "claimed"]))
                ])
        switch outcome {
        case .done: return
        case .refused(by: 0):
            let known = try await first(
                """
                SELECT * FROM signing_transactions
                WHERE txn = \(txn) AND iss = \(issuer.name) AND (claimed_by = \(container.did) OR user_id IS NULL)
                """)
            guard let row = known else { throw SigningRefusal(.transactionUnknown) }
            let record = try SigningTransactionRecord(row)
            if let refusal = record.refusal(at: now) { throw refusal }
            // Its own already: the same answer to a repeated call. Otherwise it has no key that could approve.
            guard record.userID == container.userID else { throw SigningRefusal(.transactionUnknown) }
        case .refused: throw SigningRefusal(.replay)
        }
    }
}

extension SigningSQL {
    /// Makes a transaction without a user if the client may have one more. Calls at the same moment may go over the
    /// limit by their number.
    static func createUnclaimed(_ new: SigningTransactionRecord, issuer: String, limits: SigningLimits) -> SQL {
        """
        INSERT INTO signing_transactions
            (txn, iss, client_id, user_id, did, kind, state, content, req, request, match_number, created_at,
            expires_at, own_session, idempotency_key, request_key)
        SELECT \(new.txn), \(issuer), \(new.clientID), NULL, NULL, \(new.kind), 'PENDING', \(new.content),
            \(new.req), \(new.request), \(new.matchNumber), \(new.createdAt), \(new.expiresAt), 0,
            \(new.idempotency?.key), \(new.idempotency?.request)
        FROM (SELECT count(*) AS waiting FROM signing_transactions t
            WHERE t.iss = \(issuer) AND t.client_id = \(new.clientID) AND t.user_id IS NULL
                AND t.state = 'PENDING' AND t.expires_at > \(new.createdAt)) counted
        WHERE counted.waiting < \(limits.claimsOfClient)
        ON CONFLICT DO NOTHING
        """
    }

    static func claim(_ txn: String, for container: SigningContainerRecord, issuer: String, at now: Int64) -> SQL {
        """
        UPDATE signing_transactions SET user_id = \(container.userID), claimed_by = \(container.did)
        WHERE txn = \(txn) AND iss = \(issuer) AND state = 'PENDING' AND user_id IS NULL AND expires_at > \(now)
            AND EXISTS (SELECT 1 FROM signing_containers c JOIN users u ON u.id = c.user_id
                WHERE c.did = \(container.did) AND c.state = 'ACTIVE' AND c.expires_at > \(now) AND u.active = 1)
            AND \(hasKey(for: "kind", did: "\(container.did)"))
        """
    }
}
