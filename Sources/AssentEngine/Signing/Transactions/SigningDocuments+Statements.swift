import AssentSigningProtocol
import AssentStore

/// What a device gets of a transaction.
struct SigningDocument: Sendable, Hashable {
    /// The document, as it was signed.
    let txd: String
    let txh: SigningHash
}

extension SigningDocuments {
    /// Makes a transaction; for a request that has come before, gives the one of the first time.
    ///
    /// - Throws: ``SigningRefusal``: `rate_limited`; `not_found` when the user is not active; `invalid_request` when
    ///   the same `Idempotency-Key` came with another request.
    func create(_ new: SigningTransactionRecord, limits: SigningLimits, proof: SpentProof? = nil) async throws
        -> SigningTransactionRecord
    {
        if let known = try await repeated(new) { return known }
        let user = new.userID.isEmpty ? nil : new.userID
        var statements: [GuardedStatement<Obstacle>] = []
        if let user {
            statements = [
                .one(ContainerSQL.hold(user: user), else: .refused(.notFound)),
                .one(SigningTransactionSQL.create(new, issuer: iss, limits: limits), else: .changed),
            ]
        } else {
            statements = [
                .one(SigningTransactionSQL.createUnclaimed(new, issuer: iss, limits: limits), else: .changed)
            ]
        }
        statements += store.spending(proof, at: new.createdAt)
        let step = user == nil ? "claim" : nil
        statements.append(
            store.note(
                .signingCreate, user: user, did: new.did, txn: new.txn, ["client": new.clientID, "step": step]))
        if try await store.changes(statements) { return new }
        if let known = try await repeated(new) { return known }
        try await store.writeRefusal(.signingCreate, .rateLimited, user: user, ["client": new.clientID])
        throw SigningRefusal(.rateLimited)
    }

    private func repeated(_ new: SigningTransactionRecord) async throws -> SigningTransactionRecord? {
        guard let idempotency = new.idempotency else { return nil }
        let row = try await store.first(
            """
            SELECT * FROM signing_transactions
            WHERE iss = \(iss) AND client_id = \(new.clientID) AND idempotency_key = \(idempotency.key)
            """)
        guard let known = try row.map(SigningTransactionRecord.init) else { return nil }
        guard known.idempotency == idempotency else {
            throw SigningRefusal(.invalidRequest, "The Idempotency-Key was used for another request.")
        }
        return known
    }

    /// A transaction in any state. One that nobody has claimed is found only with `evenUnclaimed`: devices must not see
    /// it.
    func find(_ txn: SigningID, evenUnclaimed: Bool = false) async throws -> SigningTransactionRecord? {
        let found = try await store.first(
            "SELECT * FROM signing_transactions WHERE txn = \(txn) AND iss = \(iss)"
        ).map(SigningTransactionRecord.init)
        return evenUnclaimed || found?.userID.isEmpty == false ? found : nil
    }

    /// The open transactions of a container, oldest first, at most `limit`.
    func open(_ container: SigningContainerRecord, limit: Int, at now: Int64) async throws
        -> [SigningTransactionRecord]
    {
        try await store.all(
            """
            SELECT * FROM signing_transactions WHERE \(SigningTransactionSQL.isOpen(for: container, at: now))
            ORDER BY created_at, txn LIMIT \(limit)
            """
        ).map(SigningTransactionRecord.init)
    }

    /// The document that a container has of a transaction: `made` at the first time, that one at each later time.
    ///
    /// - Throws: ``SigningRefusal``: `tx_unknown` or why it is not open; `key_retired` when a renewal has replaced the
    ///   keys that `made` names.
    func deliver(
        _ made: SigningDocument, of transaction: SigningTransactionRecord, to container: SigningContainerRecord,
        at now: Int64
    ) async throws -> SigningDocument {
        let txn = transaction.txn
        let done = try await store.changes([
            // The end of a renewal deletes the documents that name the old keys. One that came after it would stay.
            .one(ContainerSQL.hold(container), else: .refused(.keyRetired)),
            .one(SigningTransactionSQL.deliver(made, txn: txn, to: container, at: now), else: .changed),
            store.note(.signingFetch, user: container.userID, did: container.did, txn: txn),
        ])
        if done { return made }
        guard let known = try await find(txn) else { throw SigningRefusal(.transactionUnknown) }
        if let refusal = known.refusal(at: now) { throw refusal }
        guard let document = try await document(of: txn, did: container.did) else {
            throw SigningRefusal(.transactionUnknown)
        }
        return document
    }

    /// The document that a container has of a transaction.
    func document(of txn: SigningID, did: SigningID) async throws -> SigningDocument? {
        try await store.first("SELECT txd, txh FROM signing_documents WHERE txn = \(txn) AND did = \(did)")
            .map { SigningDocument(txd: try $0.text("txd"), txh: try $0.value("txh")) }
    }

    /// PENDING → CANCELED, by the asker.
    ///
    /// - Throws: ``SigningRefusal``: `tx_unknown`; `already_decided` when it is not open any more.
    func cancel(_ txn: SigningID, client: String, at now: Int64) async throws {
        let known = try await find(txn, evenUnclaimed: true)
        guard let known, known.isOf(client) else { throw SigningRefusal(.transactionUnknown) }
        let cancel: SQL = """
            UPDATE signing_transactions SET state = \(SigningTransactionRecord.State.canceled), reason = 'client'
            WHERE txn = \(txn) AND client_id = \(client) AND iss = \(iss)
                AND \(SigningTransactionSQL.isPending(at: now))
            """
        let done = try await store.changes([
            .one(cancel, else: .changed),
            store.note(.signingCancel, user: known.userID, txn: txn, ["client": client]),
        ])
        if done { return }
        let latest = try await find(txn, evenUnclaimed: true)
        // What was canceled before stays canceled: the same answer to a repeated request.
        if let latest, latest.state == .canceled, latest.decidedBy == nil { return }
        throw SigningRefusal(.alreadyDecided)
    }

    /// Gives a transaction to the first container that asks for it.
    ///
    /// - Throws: ``SigningRefusal``: `tx_unknown` for every other container, and what its state says to its own;
    ///   `replay`.
    func claim(
        _ txn: SigningID, for container: SigningContainerRecord, proof: SpentProof?, at now: Int64
    ) async throws {
        let done = try await store.changes(
            [.one(SigningTransactionSQL.claim(txn, for: container, issuer: iss, at: now), else: .changed)]
                + store.spending(proof, at: now) + [
                    store.note(
                        .signingFetch, user: container.userID, did: container.did, txn: txn, ["step": "claimed"])
                ])
        if done { return }
        let known = try await store.first(
            """
            SELECT * FROM signing_transactions
            WHERE txn = \(txn) AND iss = \(iss) AND (claimed_by = \(container.did) OR user_id IS NULL)
            """)
        guard let record = try known.map(SigningTransactionRecord.init) else {
            throw SigningRefusal(.transactionUnknown)
        }
        if let refusal = record.refusal(at: now) { throw refusal }
        // Its own already: the same answer to a repeated call. Otherwise it has no key that could approve.
        guard record.userID == container.userID else { throw SigningRefusal(.transactionUnknown) }
    }
}
