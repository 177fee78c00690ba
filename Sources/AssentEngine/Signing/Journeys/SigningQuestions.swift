import AssentCore
import AssentSigningProtocol
import AssentStore

/// A question that a journey has put to the user's devices.
struct SigningQuestion: Sendable, Hashable {
    let txn: String
    /// The number that the user must type on the device.
    let number: String?
    let expiresAt: Int64
}

/// What journeys ask users to sign.
struct SigningQuestions: SigningPart {
    /// Who asks in a journey: the server itself. No OAuth client sees such a transaction, whatever its name.
    static let journeyParty = "journey"

    let realm: SigningRealm

    /// Asks the user's devices to sign what a policy's transaction binds, and shows from which network address the
    /// journey runs.
    ///
    /// - Returns: `nil` when the user has no device that may approve it.
    /// - Throws: ``EngineError``, also for a template that there is not, or that cannot show what is asked.
    func ask(
        _ approval: PendingApproval, template name: String, from address: String?
    ) async throws -> SigningQuestion? {
        do {
            return try await question(approval, template: name, from: address)
        } catch let error as SigningRefusal {
            throw error.isTransient ? EngineError.unavailable : EngineError.invalidRequest(error.detail)
        }
    }

    /// Where a journey runs. An address of a private network tells its user nothing: mostly it is that of a proxy.
    static func origin(_ address: String) -> DocumentOrigin? {
        let groups = address.split(separator: ".").compactMap { UInt8($0) }
        let isPrivate =
            if groups.count == 4 {
                switch (groups[0], groups[1]) {
                case (10, _), (127, _), (169, 254), (172, 16...31), (192, 168), (100, 64...127): true
                default: false
                }
            } else {
                ["fc", "fd", "fe8", "fe9", "fea", "feb", "0000:0000:0000:0000"].contains { address.hasPrefix($0) }
            }
        return isPrivate ? nil : DocumentOrigin(place: nil, address: address)
    }

    private func question(
        _ approval: PendingApproval, template name: String, from address: String?
    ) async throws -> SigningQuestion? {
        guard let template = settings.templates[name], template.fields.isEmpty else {
            throw EngineError.internalFailure("there is no template \(name) without fields for journeys")
        }
        let now = now
        guard let record = try await Transactions(context).find(approval.id, at: now)?.record else {
            throw EngineError.transactionUnreadable
        }
        let user = record.binding.userID
        guard try await hasDevice(user: user, for: template, at: now) else { return nil }
        let fields = approval.lines.enumerated().map { index, line in
            DocumentField(id: "line-\(index + 1)", label: line.label, value: .text(line.value))
        }
        let draft = try DocumentDraft(
            template, fields: fields, relyingParty: RelyingParty(id: Self.journeyParty, name: settings.name),
            locale: approval.language, origin: address.flatMap(Self.origin))
        let frame = record.binding.signingFrame(id: approval.id)
        let lifetime = min(template.lifetime, approval.expiresAt - now)
        guard lifetime >= 10 else { throw EngineError.transactionUnreadable }
        var new = documents.transaction(template, draft, for: frame, user: user, lifetime: lifetime, at: now)
        new.isOwnSession = true
        new.policyTransaction = approval.id
        let made = try await documents.create(new, limits: settings.limits)
        await notices.tell(of: made)
        return SigningQuestion(txn: made.txn.text, number: made.matchNumber, expiresAt: made.expiresAt)
    }

    /// Whether the user has a device that is told of it: one with a key for each way to approve.
    private func hasDevice(user: String, for template: SigningTemplate, at now: Int64) async throws -> Bool {
        let approving = template.statuses.filter { $0.effect == .approve }
        for container in try await devices.of(user: user)
        where container.refusal(approving: true, at: now) == nil {
            let keys = try await devices.keys(of: container.did)
            let canAnswer = approving.allSatisfy { status in
                keys.contains { $0.approves(template.kind.approvingUsage, labels: status.keys) }
            }
            if canAnswer { return true }
        }
        return false
    }

    /// How a question of a journey stands; waits a while for an answer.
    func answer(to txn: String, wait: Int) async throws -> SigningTransactionRecord.State {
        guard let txn = SigningID(text: txn), let found = try await documents.find(txn) else {
            throw EngineError.transactionUnreadable
        }
        let state = found.state(at: now)
        guard state == .pending, wait > 0 else { return state }
        await realm.bell.wait(for: .transaction(txn), seconds: wait)
        return try await documents.find(txn)?.state(at: now) ?? .failed
    }

    /// The statements that use the signed approval for the policy's transaction, to run in the database transaction
    /// that completes that. They fail as a whole unless it is there, for exactly this, and was used for nothing yet. A
    /// step that could not be stored asks twice: who has approved both has approved this.
    func taking(_ approval: PendingApproval) async throws -> [SQLStatement] {
        guard let record = try await Transactions(context).find(approval.id, at: now)?.record else {
            throw EngineError.transactionUnreadable
        }
        let req = record.binding.signingFrame(id: approval.id).hash
        return [
            SQLStatement(
                SigningTransactionSQL.take(policyTransaction: approval.id, req: req), expecting: .atLeast(1)),
            store.audit.statement(store.record(.signingTake, user: record.binding.userID, txn: approval.id)),
        ]
    }
}

extension TransactionBinding {
    /// What `req` of the gateway's transaction is the hash of (`docs/transaction-signing.md`, "What `req` binds").
    func signingFrame(id: String) -> Frame {
        PolicyTransactionBinding(
            id: id, realm: realm, policySet: policySet, policy: policy, revision: policyRevision, strategy: strategy,
            specifier: specifier, resource: resource, query: bound.contains(.query) ? query : nil,
            method: bound.contains(.method) ? method : nil, mediaType: bound.contains(.body) ? mediaType : nil,
            bodyHash: bound.contains(.body) ? bodyDigest : nil, user: userID, session: sessionAuditID, grant: grantID,
            keyThumbprint: sender.map { $0.keyThumbprint ?? $0.stored }
        ).frame
    }
}
