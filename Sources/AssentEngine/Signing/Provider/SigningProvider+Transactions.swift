import AssentCore
import AssentSigningProtocol

extension SigningProvider {
    /// How many transactions a list names.
    private static let listed = 20

    func list(_ request: DeviceRequest) async throws -> String {
        let body = try ListBody(plaintext: request.plaintext)
        let container = try request.active()
        if !body.seen.isEmpty { try await store.forget(notices: body.seen, for: container.did) }
        var open = try await listable(container)
        var notices = try await store.notices(for: container.did)
        if open.answerable.isEmpty, notices.isEmpty, body.wait > 0 {
            // What this container cannot answer must not wake it again and again.
            await bell.wait(for: .container(container.did), besides: open.others, seconds: body.wait)
            open = try await listable(container)
            notices = try await store.notices(for: container.did)
        }
        let key = try handleKey(container)
        var tickets: [String] = []
        for transaction in open.answerable.prefix(Self.listed) {
            guard let txn = SigningID(text: transaction.txn) else { continue }
            tickets.append(
                try await keys.sign(
                    Ticket(
                        issuer: iss, txn: txn, expiresAt: Int(transaction.expiresAt),
                        handle: .handle(key: key, issuer: iss, txn: txn))))
        }
        let reply = try await keys.sign(
            TransactionList(
                head: head(request), tickets: tickets, more: open.answerable.count > Self.listed, notices: notices))
        return try sealed(reply, for: container)
    }

    /// The open transactions for each status of which a container has a key, and the others.
    private func listable(_ container: SigningContainerRecord) async throws
        -> (answerable: [SigningTransactionRecord], others: [String])
    {
        let open = try await store.open(container, limit: Self.listed + 1, at: store.now)
        guard !open.isEmpty else { return ([], []) }
        let keys = try await store.keys(did: container.did)
        let answerable = try open.filter { transaction in
            let draft = try DocumentDraft(plaintext: Array(transaction.content.utf8))
            return draft.statuses(of: transaction, for: container, keys: keys) != nil
        }
        return (answerable, open.map(\.txn).filter { txn in !answerable.contains { $0.txn == txn } })
    }

    func fetch(_ request: DeviceRequest) async throws -> String {
        let txn = try FetchBody(plaintext: request.plaintext).txn.text
        let container = try request.active()
        guard let transaction = try await store.transaction(txn), transaction.userID == container.userID,
            transaction.did == nil || transaction.did == container.did
        else { throw SigningRefusal(.transactionUnknown) }
        return try await fetched(transaction, container, request)
    }

    /// The document of a container, made now or before.
    func fetched(
        _ transaction: SigningTransactionRecord, _ container: SigningContainerRecord, _ request: DeviceRequest
    ) async throws -> String {
        let txn = transaction.txn
        if let refusal = transaction.refusal(at: request.now) { throw refusal }
        var document = try await store.document(of: txn, did: container.did)
        if document == nil {
            document = try await store.deliver(
                try await made(transaction, for: container, at: request.now), of: transaction, to: container,
                at: request.now)
        }
        guard let document else { throw SigningRefusal(.transactionUnknown) }
        let reply = try await keys.sign(Fetched(head: head(request), document: document.txd))
        return try sealed(reply, for: container)
    }

    private func made(
        _ transaction: SigningTransactionRecord, for container: SigningContainerRecord, at now: Int64
    ) async throws
        -> SigningDocument
    {
        let draft = try DocumentDraft(plaintext: Array(transaction.content.utf8))
        let document = draft.document(
            of: transaction, for: container, keys: try await store.keys(did: container.did), issuer: iss,
            nonce: SigningID(random: context.random), at: now)
        // It has no key for one of the statuses; it may still refuse blindly.
        guard let document else { throw SigningRefusal(.transactionUnknown) }
        let txd = try await keys.sign(document)
        return SigningDocument(txd: txd, txh: SigningHash.document(txd).text)
    }

    func decide(_ request: DeviceRequest) async throws -> String {
        let body = try DecideBody(plaintext: request.plaintext)
        let message = try UnverifiedMessage<Decision>(body.decision)
        let decision = message.content
        guard let container = request.container else { throw SigningRefusal(.transactionUnknown) }
        let dh = SigningHash.decision(body.decision)
        let transaction: SigningTransactionRecord
        switch try await store.turn(decision.txn.text, dh: dh.text, container: container, at: request.now) {
        case .repeated(let receipt): return receipt
        case .open(let found): transaction = found
        }
        do {
            return try await decide(
                JudgedDecision(
                    message: message, possession: body.possession, dh: dh, transaction: transaction,
                    container: container), request)
        } catch let repeated as SigningStore.RepeatedDecision {
            return repeated.receipt
        } catch let error as SigningProtocolError {
            throw SigningRefusal(error)
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
        var txn: String { transaction.txn }
        var approves: Bool { content.effect == .approve }
    }

    private func decide(_ judged: JudgedDecision, _ request: DeviceRequest) async throws -> String {
        let container = judged.container
        var refusal = container.refusal(approving: judged.approves, at: request.now)
        var document: SigningDocument?
        if refusal == nil, !judged.content.isBlind {
            document = try await store.document(of: judged.txn, did: container.did)
            if document == nil { refusal = SigningRefusal(.transactionNotFetched) }
        }
        if let refusal {
            try await store.refuse(refusal.code, txn: judged.txn, container: container)
            throw refusal
        }
        let key = try await signer(judged)
        try await check(judged, document: document)
        let evaluation = try await evaluation(judged, key: key, at: request.now)
        let needsNumber = judged.transaction.matchNumber != nil && judged.approves
        if needsNumber {
            // The number can be tried once: a decision that cannot succeed must not try it.
            guard try await !store.isSpent(request.proof) else { throw try await refused(.replay, judged) }
            try await store.compareNumber(
                judged.content.match ?? "", txn: judged.txn, dh: judged.dh.text, container: container, at: request.now)
        }
        let auditID = context.random.uuid()
        let receipt = try await receipt(
            judged, key: key, document: document, matched: needsNumber, evaluation: evaluation, auditID: auditID,
            at: request.now)
        let state = SigningTransactionRecord.State(judged.content.effect)
        let decided = try await store.decide(
            SigningDecision(
                txn: judged.txn, did: container.did, kid: key.kid, dh: judged.dh.text, state: state,
                status: judged.content.status, needsNumber: needsNumber, decision: judged.message.compact,
                possession: judged.possession, txd: document?.txd, receipt: receipt, auditID: auditID,
                unlock: evaluation?.spent),
            container: container, proof: request.proof, at: request.now)
        return decided
    }

    /// The key that has signed, after its signature and that of the device key. A signature that is not good ends the
    /// transaction: the caller has the device, and says something that no key of it has signed.
    private func signer(_ judged: JudgedDecision) async throws -> SigningKeyRow {
        let (container, txn) = (judged.container, judged.txn)
        let kid = judged.message.kid.text
        guard let key = try await store.keys(did: container.did).first(where: { $0.kid == kid }) else {
            throw try await refused(.statusNotAllowed, judged)
        }
        guard key.isActive else { throw try await refused(.keyRetired, judged) }
        let isDeviceKey = kid == container.deviceKeyID
        guard (judged.possession == nil) == isDeviceKey else {
            throw SigningRefusal(.invalidRequest, "A decision by another key than the device key needs possession.")
        }
        let possession = try judged.possession.map { try UnverifiedMessage<Possession>($0) }
        do {
            _ = try judged.message.verified(with: ProtocolKey(JSONValue.parse(key.publicJWK)))
            _ = try possession?.verified(with: ProtocolKey(JSONValue.parse(container.deviceJWK)))
        } catch {
            try await store.fail(txn: txn, because: .badSignature, container: container)
            throw SigningRefusal(.badSignature)
        }
        if let content = possession?.content {
            guard StrictJSON.same(content.issuer, iss), content.did.text == container.did, content.txn.text == txn,
                content.decision == judged.dh
            else { throw try await refused(.hashMismatch, judged) }
        }
        return key
    }

    /// Whether the decision is about what the container was shown.
    private func check(_ judged: JudgedDecision, document: SigningDocument?) async throws {
        let content = judged.content
        guard let document else {
            guard StrictJSON.same(content.issuer, iss), content.did.text == judged.container.did,
                StrictJSON.same(content.sub, judged.container.userID)
            else { throw try await refused(.hashMismatch, judged) }
            guard content.effect == .deny || content.effect == .report, content.status == content.effect.rawValue,
                judged.message.kid.text == judged.container.deviceKeyID
            else { throw try await refused(.statusNotAllowed, judged) }
            return
        }
        let stored = try UnverifiedMessage<TransactionDocument>(document.txd).content
        guard
            let member = stored.mismatch(with: content, compact: document.txd, signer: judged.message.kid)
        else { return }
        let isStatus = ["status", "effect", "kid", "reason"].contains(member)
        throw try await refused(isStatus ? .statusNotAllowed : .hashMismatch, judged)
    }

    private func evaluation(_ judged: JudgedDecision, key: SigningKeyRow, at now: Int64) async throws
        -> UsedEvaluation?
    {
        do {
            return try await evaluation(for: judged.content, key: key, of: judged.container, at: now)
        } catch let refusal as SigningRefusal {
            // Another decision may have used the evaluation up: then it is no password that is missing.
            let ended = try await store.transaction(judged.txn)?.refusal(at: now)
            throw try await refused((ended ?? refusal).code, judged)
        }
    }

    private func refused(_ code: RefusalCode, _ judged: JudgedDecision) async throws -> SigningRefusal {
        try await store.checkForRepetition(judged.txn, dh: judged.dh.text, container: judged.container)
        try await store.refuse(code, txn: judged.txn, container: judged.container)
        return SigningRefusal(code)
    }

    private func receipt(
        _ judged: JudgedDecision, key: SigningKeyRow, document: SigningDocument?, matched: Bool,
        evaluation: UsedEvaluation?, auditID: String, at now: Int64
    ) async throws -> String {
        let container = judged.container
        guard let kid = KeyThumbprint(text: key.kid), let device = KeyThumbprint(text: container.deviceKeyID),
            let record = container.record.flatMap({ SigningHash(text: $0) }),
            let request = SigningHash(text: judged.transaction.req)
        else { throw SigningRefusal(.unavailable) }
        return try await keys.sign(
            Receipt(
                issuer: iss, did: judged.content.did, decidedAt: Int(now), txn: judged.content.txn,
                sub: container.userID, relyingParty: judged.transaction.clientID, request: request,
                document: document.flatMap { SigningHash(text: $0.txh) }, decision: judged.dh,
                status: judged.content.status, effect: judged.content.effect, state: judged.content.effect.state,
                kid: kid, device: device, keyState: .active, since: Int(key.since), record: record,
                methods: [.possession] + (evaluation.map { [$0.method] } ?? []), matched: matched,
                unlock: evaluation?.unlock, audit: auditID))
    }
}

extension SigningTransactionRecord.State {
    /// What a decision makes of a transaction.
    init(_ effect: DecisionEffect) {
        self =
            switch effect {
            case .approve: .approved
            case .deny: .denied
            case .report: .reported
            case .cancel: .canceled
            }
    }
}
