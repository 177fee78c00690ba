import AssentCore
import AssentSigningProtocol

/// Decisions of devices: each is judged by what its container was shown, and made in one transaction of the database.
struct SigningDecisions: SigningPart {
    let realm: SigningRealm

    func decide(_ request: DeviceRequest) async throws -> String {
        let body: DecideBody = try request.body()
        let message = try UnverifiedMessage<Decision>(body.decision)
        guard let container = request.container else { throw SigningRefusal(.transactionUnknown) }
        let dh = SigningHash.decision(body.decision)
        switch try await turn(message.content.txn, dh: dh, container: container, at: request.now) {
        case .repeated(let receipt): return receipt
        case .open(let transaction):
            do {
                return try await decide(
                    JudgedDecision(
                        message: message, possession: body.possession, dh: dh, transaction: transaction,
                        container: container), request)
            } catch let repeated as RepeatedDecision {
                return repeated.receipt
            }
        }
    }

    /// A decision on an open transaction, with what it is judged by.
    private struct JudgedDecision {
        let message: UnverifiedMessage<Decision>
        let possession: String?
        let dh: SigningHash
        let transaction: SigningTransactionRecord
        let container: SigningContainerRecord

        var content: Decision { message.content }
        var txn: SigningID { transaction.txn }
        var approves: Bool { content.effect == .approve }
        var needsNumber: Bool { transaction.matchNumber != nil && approves }
    }

    private func decide(_ judged: JudgedDecision, _ request: DeviceRequest) async throws -> String {
        let (container, now) = (judged.container, request.now)
        var refusal = container.refusal(approving: judged.approves, at: now)
        var document: SigningDocument?
        if refusal == nil, !judged.content.isBlind {
            document = try await documents.document(of: judged.txn, did: container.did)
            if document == nil { refusal = SigningRefusal(.transactionNotFetched) }
        }
        if let refusal {
            try await refuse(refusal.code, txn: judged.txn, container: container)
            throw refusal
        }
        let key = try await signer(judged)
        try await check(judged, document: document)
        let used = try await evaluation(judged, key: key, at: now)
        if judged.needsNumber {
            // The number can be tried once: a decision that cannot succeed must not try it.
            guard try await !store.isSpent(request.proof) else { throw try await refused(.replay, judged) }
            guard try await Users(context).find(id: container.userID)?.isActive == true else {
                throw try await refused(.containerBlocked, judged)
            }
            try await compareNumber(
                judged.content.match ?? "", txn: judged.txn, dh: judged.dh, container: container, at: now)
        }
        let effects = DecisionEffects(
            kid: key.kid, state: SigningTransactionRecord.State(judged.content.effect),
            status: judged.content.status, needsNumber: judged.needsNumber, auditID: context.random.uuid(),
            unlock: used?.spent)
        let receipt = try await receipt(judged, key: key, document: document, used, audit: effects.auditID, at: now)
        return try await decide(
            SigningDecision(
                txn: judged.txn, did: container.did, dh: judged.dh, decision: judged.message.compact,
                possession: judged.possession, txd: document?.txd, evaluation: used?.confirmed.evaluation,
                confirmation: used?.confirmed.confirmation, receipt: receipt),
            effects, container: container, proof: request.proof, at: now)
    }

    /// The key that has signed, after its signature and that of the device key. A signature that is not good ends the
    /// transaction: the caller has the device, and says something that no key of it has signed.
    private func signer(_ judged: JudgedDecision) async throws -> SigningKeyRow {
        let (container, kid) = (judged.container, judged.message.kid)
        guard let key = try await devices.keys(of: container.did).first(where: { $0.kid == kid }) else {
            throw try await refused(.statusNotAllowed, judged)
        }
        guard key.isActive else { throw try await refused(.keyRetired, judged) }
        guard (judged.possession == nil) == (kid == container.deviceKeyID) else {
            throw SigningRefusal(.invalidRequest, "A decision by another key than the device key needs possession.")
        }
        let possession = try judged.possession.map { try UnverifiedMessage<Possession>($0) }
        do {
            _ = try judged.message.verified(with: realm.deviceKeys.key(key.publicJWK))
            _ = try possession?.verified(with: realm.deviceKeys.key(container.deviceJWK))
        } catch {
            try await fail(txn: judged.txn, because: .badSignature, container: container)
            throw SigningRefusal(.badSignature)
        }
        if let content = possession?.content {
            guard StrictJSON.same(content.issuer, iss), content.did == container.did, content.txn == judged.txn,
                content.decision == judged.dh
            else { throw try await refused(.hashMismatch, judged) }
        }
        return key
    }

    /// Whether the decision is about what the container was shown.
    private func check(_ judged: JudgedDecision, document: SigningDocument?) async throws {
        let content = judged.content
        guard let document else {
            guard StrictJSON.same(content.issuer, iss), content.did == judged.container.did,
                StrictJSON.same(content.sub, judged.container.userID)
            else { throw try await refused(.hashMismatch, judged) }
            guard content.effect == .deny || content.effect == .report, content.status == content.effect.rawValue,
                judged.message.kid == judged.container.deviceKeyID
            else { throw try await refused(.statusNotAllowed, judged) }
            return
        }
        let stored = try UnverifiedMessage<TransactionDocument>(document.txd).content
        guard let member = stored.mismatch(with: content, compact: document.txd, signer: judged.message.kid) else {
            return
        }
        let isStatus = ["status", "effect", "kid", "reason"].contains(member)
        throw try await refused(isStatus ? .statusNotAllowed : .hashMismatch, judged)
    }

    private func evaluation(_ judged: JudgedDecision, key: SigningKeyRow, at now: Int64) async throws
        -> UsedEvaluation?
    {
        do {
            return try await evaluation(for: judged.content, key: key, of: judged.container, at: now)
        } catch let refusal as SigningRefusal {
            // Another decision may have used the evaluation up: then it is not a password that is missing.
            let ended = try await documents.find(judged.txn)?.refusal(at: now)
            throw try await refused((ended ?? refusal).code, judged)
        }
    }

    /// The evaluation that a decision spends, and what its receipt says of it.
    private struct UsedEvaluation: Sendable {
        let confirmed: ConfirmedTry
        let spent: SpentEvaluation
        let method: ReceiptMethod

        var unlock: ReceiptUnlock {
            ReceiptUnlock(
                slot: confirmed.slot, generation: Int(confirmed.generation), n: Int(confirmed.n),
                evaluatedAt: Int(confirmed.evaluatedAt), confirmedAt: Int(confirmed.confirmedAt))
        }
    }

    /// The evaluation that a decision spends; `nil` when its key needs none.
    ///
    /// - Throws: ``SigningRefusal``: `unlock_required`, `password_expired`, `invalid_request` for one too many.
    private func evaluation(
        for decision: Decision, key: SigningKeyRow, of container: SigningContainerRecord, at now: Int64
    ) async throws -> UsedEvaluation? {
        guard let slot = key.slot, let assisted = try assisted(slot, of: container) else {
            guard decision.unl == nil else {
                throw SigningRefusal(.invalidRequest, "The key that signed needs no evaluation.")
            }
            return nil
        }
        guard let unl = decision.unl,
            let found = try await confirmed(unl, slot: slot, of: container.did, at: now)
        else { throw SigningRefusal(.unlockRequired) }
        let spent = SpentEvaluation(found.evaluation, passwordSetAfter: assisted.passwordSetAfter(at: now))
        guard let changedAt = found.changedAt, changedAt > spent.passwordSetAfter else {
            throw SigningRefusal(.passwordExpired)
        }
        return UsedEvaluation(confirmed: found.evaluation, spent: spent, method: assisted.method)
    }

    private func refused(_ code: SigningErrorCode, _ judged: JudgedDecision) async throws -> SigningRefusal {
        try await checkForRepetition(judged.txn, dh: judged.dh, container: judged.container)
        try await refuse(code, txn: judged.txn, container: judged.container)
        return SigningRefusal(code)
    }

    private func receipt(
        _ judged: JudgedDecision, key: SigningKeyRow, document: SigningDocument?, _ used: UsedEvaluation?,
        audit: String, at now: Int64
    ) async throws -> String {
        let (content, container) = (judged.content, judged.container)
        guard let record = container.record else { throw SigningRefusal(.unavailable) }
        return try await keys.sign(
            Receipt(
                issuer: iss, did: content.did, decidedAt: Int(now), txn: content.txn, sub: container.userID,
                relyingParty: judged.transaction.clientID, request: judged.transaction.req, document: document?.txh,
                decision: judged.dh, status: content.status, effect: content.effect, state: content.effect.state,
                kid: key.kid, device: container.deviceKeyID, keyState: .active, since: Int(key.since), record: record,
                methods: [.possession] + (used.map { [$0.method] } ?? []), matched: judged.needsNumber,
                unlock: used?.unlock, audit: audit))
    }
}
