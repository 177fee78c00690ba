import AssentSigningProtocol
import AssentStore

/// What a device gets of a transaction.
package struct SigningDocument: Sendable, Hashable {
    /// The document, as it was signed.
    package let txd: String

    /// Its hash.
    package let txh: String

    /// A document.
    package init(txd: String, txh: String) {
        self.txd = txd
        self.txh = txh
    }
}

extension SigningStore {
    /// Makes a transaction; for a request that has come before, gives the one of the first time.
    ///
    /// - Throws: ``SigningRefusal``: `rate_limited`; `not_found` when the user is not active; `invalid_request` when
    ///   the same `Idempotency-Key` came with another request.
    package func create(_ new: SigningTransactionRecord, limits: SigningLimits, proof: SpentProof? = nil) async throws
        -> SigningTransactionRecord
    {
        if let known = try await repeated(new) { return known }
        if new.userID.isEmpty { return try await createUnclaimed(new, limits: limits) }
        let first: [SQLStatement] = [
            SQLStatement(SigningSQL.hold(user: new.userID), expecting: .exactly(1)),
            SQLStatement(SigningSQL.create(new, issuer: issuer.name, limits: limits), expecting: .exactly(1)),
        ]
        let note = audit.statement(
            record(.signingCreate, user: new.userID, did: new.did, txn: new.txn, ["client": new.clientID]))
        switch try await attempt(first + spending(proof, at: new.createdAt) + [note]) {
        case .done: return new
        case .refused(by: 0): throw SigningRefusal(.notFound)
        case .refused(by: 2): throw SigningRefusal(.replay)
        case .refused:
            if let known = try await repeated(new) { return known }
            try await audit.write(
                record(
                    .signingCreate, .refused, reason: .rateLimited, user: new.userID, ["client": new.clientID]))
            throw SigningRefusal(.rateLimited)
        }
    }

    func repeated(_ new: SigningTransactionRecord) async throws -> SigningTransactionRecord? {
        guard let idempotency = new.idempotency else { return nil }
        let row = try await first(
            """
            SELECT * FROM signing_transactions
            WHERE iss = \(issuer.name) AND client_id = \(new.clientID) AND idempotency_key = \(idempotency.key)
            """)
        guard let known = try row.map(SigningTransactionRecord.init) else { return nil }
        guard known.idempotency == idempotency else {
            throw SigningRefusal(.invalidRequest, "The Idempotency-Key was used for another request.")
        }
        return known
    }

    /// A transaction, whatever its state.
    ///
    /// - Parameters:
    ///   - txn: its id.
    ///   - evenUnclaimed: also one that nobody has claimed; devices do not see these.
    /// - Returns: the transaction, or `nil`.
    /// - Throws: `StoreError`.
    package func transaction(_ txn: String, evenUnclaimed: Bool = false) async throws -> SigningTransactionRecord? {
        guard txn.utf8.count <= 64 else { return nil }
        let found = try await first(
            "SELECT * FROM signing_transactions WHERE txn = \(txn) AND iss = \(issuer.name)"
        ).map(SigningTransactionRecord.init)
        return evenUnclaimed || found?.userID.isEmpty == false ? found : nil
    }

    /// The open transactions of a container, oldest first, at most `limit`.
    package func open(_ container: SigningContainerRecord, limit: Int, at now: Int64) async throws
        -> [SigningTransactionRecord]
    {
        try await context.database.run(
            .read(
                """
                SELECT * FROM signing_transactions WHERE \(SigningSQL.isOpen(for: container, at: now))
                ORDER BY created_at, txn LIMIT \(limit)
                """)
        ).map(SigningTransactionRecord.init)
    }

    /// The document that a container has of a transaction: `made` at the first time, that one at each later time.
    ///
    /// - Throws: ``SigningRefusal``: `tx_unknown` or why it is not open.
    package func deliver(
        _ made: SigningDocument, of transaction: SigningTransactionRecord, to container: SigningContainerRecord,
        at now: Int64
    ) async throws -> SigningDocument {
        let done = try await succeeds([
            SQLStatement(
                SigningSQL.deliver(made, txn: transaction.txn, to: container, at: now), expecting: .exactly(1)),
            audit.statement(
                record(.signingFetch, user: container.userID, did: container.did, txn: transaction.txn)),
        ])
        if done { return made }
        guard let known = try await self.transaction(transaction.txn) else { throw SigningRefusal(.transactionUnknown) }
        if let refusal = known.refusal(at: now) { throw refusal }
        guard let document = try await document(of: transaction.txn, did: container.did) else {
            throw SigningRefusal(.transactionUnknown)
        }
        return document
    }

    /// The document that a container has of a transaction.
    package func document(of txn: String, did: String) async throws -> SigningDocument? {
        try await first("SELECT txd, txh FROM signing_documents WHERE txn = \(txn) AND did = \(did)")
            .map { SigningDocument(txd: try $0.text("txd"), txh: try $0.text("txh")) }
    }

    /// PENDING → CANCELED, by who asked.
    ///
    /// - Throws: ``SigningRefusal``: `tx_unknown`; `already_decided` when it is not open any more.
    package func cancel(_ txn: String, client: String, at now: Int64) async throws {
        let known = try await transaction(txn, evenUnclaimed: true)
        guard let known, known.isOf(client) else { throw SigningRefusal(.transactionUnknown) }
        let done = try await succeeds([
            SQLStatement(
                SigningSQL.cancel(txn: txn, client: client, issuer: issuer.name, at: now), expecting: .exactly(1)),
            audit.statement(record(.signingCancel, user: known.userID, txn: txn, ["client": client])),
        ])
        if done { return }
        let latest = try await transaction(txn, evenUnclaimed: true)
        // What was canceled before stays canceled: the same answer to a repeated request.
        if let latest, latest.state == .canceled, latest.decidedBy == nil { return }
        throw SigningRefusal(.alreadyDecided)
    }
}
