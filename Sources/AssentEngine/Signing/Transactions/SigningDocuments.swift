import AssentCore
import AssentSigningProtocol
import AssentStore

/// Transactions as devices see them: which are open, the documents that they are shown, and records that they begin
/// themselves.
struct SigningDocuments: SigningPart {
    /// The asker of what a device begins itself. No OAuth client sees it, whatever its name.
    static let deviceParty = "device"

    /// How many transactions a list names.
    private static let listed = 20

    /// Seconds for which a record can be signed.
    private static let recordLifetime: Int64 = 180

    let realm: SigningRealm

    func list(_ request: DeviceRequest) async throws -> String {
        let body: ListBody = try request.body()
        let container = try request.active()
        if !body.seen.isEmpty { try await notices.forget(body.seen, for: container.did) }
        var open = try await listable(container)
        var waiting = try await notices.waiting(for: container.did)
        if open.answerable.isEmpty, waiting.isEmpty, body.wait > 0 {
            // What this container cannot answer must not wake it again and again.
            await realm.bell.wait(for: .container(container.did), besides: open.others, seconds: body.wait)
            open = try await listable(container)
            waiting = try await notices.waiting(for: container.did)
        }
        let key = try opened(container.sealedHandle, "handle", of: container.did)
        var tickets: [String] = []
        for transaction in open.answerable.prefix(Self.listed) {
            tickets.append(
                try await keys.sign(
                    Ticket(
                        issuer: iss, txn: transaction.txn, expiresAt: Int(transaction.expiresAt),
                        handle: .handle(key: key, issuer: iss, txn: transaction.txn))))
        }
        let reply = try await keys.sign(
            TransactionList(
                head: head(request), tickets: tickets, more: open.answerable.count > Self.listed, notices: waiting))
        return try sealed(reply, for: container)
    }

    /// The open transactions for each status of which a container has a key, and the others.
    private func listable(_ container: SigningContainerRecord) async throws
        -> (answerable: [SigningTransactionRecord], others: [SigningID])
    {
        let open = try await open(container, limit: Self.listed + 1, at: now)
        guard !open.isEmpty else { return ([], []) }
        let keys = try await devices.keys(of: container.did)
        let answerable = try open.filter { transaction in
            let draft = try DocumentDraft(plaintext: Array(transaction.content.utf8))
            return draft.statuses(of: transaction, for: container, keys: keys) != nil
        }
        return (answerable, open.map(\.txn).filter { txn in !answerable.contains { $0.txn == txn } })
    }

    func fetch(_ request: DeviceRequest) async throws -> String {
        let body: FetchBody = try request.body()
        let container = try request.active()
        guard let transaction = try await find(body.txn), transaction.isFor(container) else {
            throw SigningRefusal(.transactionUnknown)
        }
        return try await fetched(transaction, container, request)
    }

    /// The document of a container, made now or before.
    private func fetched(
        _ transaction: SigningTransactionRecord, _ container: SigningContainerRecord, _ request: DeviceRequest
    ) async throws -> String {
        if let refusal = transaction.refusal(at: request.now) { throw refusal }
        var document = try await document(of: transaction.txn, did: container.did)
        if document == nil {
            document = try await deliver(
                try await made(transaction, for: container, at: request.now), of: transaction, to: container,
                at: request.now)
        }
        guard let document else { throw SigningRefusal(.transactionUnknown) }
        let reply = try await keys.sign(Fetched(head: head(request), document: document.txd))
        return try sealed(reply, for: container)
    }

    private func made(
        _ transaction: SigningTransactionRecord, for container: SigningContainerRecord, at now: Int64
    ) async throws -> SigningDocument {
        let draft = try DocumentDraft(plaintext: Array(transaction.content.utf8))
        let document = draft.document(
            of: transaction, for: container, keys: try await devices.keys(of: container.did), issuer: iss,
            nonce: SigningID(random: context.random), at: now)
        // It has no key for one of the statuses; it may still refuse blindly.
        guard let document else { throw SigningRefusal(.transactionUnknown) }
        let txd = try await keys.sign(document)
        return SigningDocument(txd: txd, txh: .document(txd))
    }

    /// Makes a document of a message that the device has: its decision is kept as evidence, and completes nothing. The
    /// same request gets the same document.
    func create(_ request: DeviceRequest) async throws -> String {
        let body: CreateBody = try request.body()
        let container = try request.active()
        let keys = try await devices.keys(of: container.did)
        guard keys.contains(where: { $0.approves(.sign, labels: [body.label]) }) else {
            throw SigningRefusal(.statusNotAllowed, "The container has no key of usage sign with this label.")
        }
        let template = SigningTemplate(
            kind: .record, title: LocalizedText("Sign a record"), text: nil, lifetime: Self.recordLifetime,
            statuses: [
                SigningTemplate.Status(
                    name: "accept", label: LocalizedText("Sign"), effect: .approve, keys: [body.label]),
                SigningTemplate.Status(name: "deny", label: LocalizedText("Decline"), effect: .deny),
            ])
        let draft = try DocumentDraft(
            template, relyingParty: RelyingParty(id: Self.deviceParty, name: settings.name), message: body.message)
        var new = transaction(
            template, draft, for: SigningHash.detailsFrame(body.message), user: container.userID, at: request.now)
        new.did = container.did
        new.idempotency = SigningTransactionRecord.Idempotency(
            key: "\(container.did) \(body.rid)", request: "\(new.req) \(body.label)")
        let made = try await create(new, limits: settings.limits, proof: request.proof)
        return try await fetched(made, container, request)
    }

    /// A new transaction that asks what a draft shows; `asked` is what its `req` is the hash of.
    func transaction(
        _ template: SigningTemplate, _ draft: DocumentDraft, for asked: Frame, user: String, lifetime: Int64? = nil,
        at now: Int64
    ) -> SigningTransactionRecord {
        SigningTransactionRecord(
            txn: SigningID(random: context.random), clientID: draft.body.relyingParty.id, userID: user,
            kind: template.kind, content: String(decoding: draft.encoded(), as: UTF8.self), req: asked.hash,
            request: Base64URL.encode(asked.bytes), matchNumber: template.matchesNumber ? number() : nil,
            createdAt: now, expiresAt: now + (lifetime ?? template.lifetime))
    }

    /// Two random digits.
    private func number() -> String {
        while true {
            // 200 values are twice each number; the others would make some numbers more likely.
            guard let byte = context.random.bytes(1).first, byte < 200 else { continue }
            let value = Int(byte % 100)
            return value < 10 ? "0\(value)" : "\(value)"
        }
    }

    /// Gives the caller the transaction of an id that it has scanned. The first container wins.
    func claim(_ request: DeviceRequest) async throws -> String {
        let body: ClaimBody = try request.body()
        let container = try request.active()
        let keys = try await keys.current()
        let trust = try IssuerTrust(
            issuer: iss, identity: try keys.requiredIdentity, minimum: 1,
            certificates: keys.certificates(at: request.now))
        guard let ticket = try? trust.verified(body.ticket, as: Ticket.self).content, ticket.isClaim else {
            throw SigningRefusal(.transactionUnknown)
        }
        try await claim(ticket.txn, for: container, proof: request.proof, at: request.now)
        return try await devices.status(request)
    }
}
