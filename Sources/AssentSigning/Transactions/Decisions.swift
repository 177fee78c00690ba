import AssentCore
import AssentJOSE
import AssentSigningProtocol

/// What a user answered, to tell a repetition from another answer.
struct Answer: Sendable {
    /// What is answered.
    enum Subject: Sendable {
        /// What was fetched and shown.
        case shown(SigningTransaction, DocumentStatus, password: Secret?)
        /// A transaction of which the user has seen nothing; when it expires.
        case unseen(expires: Int)
    }

    let subject: Subject
    let txn: SigningID
    let status: String
    let effect: DecisionEffect
    var number: String?
    var reason: String?

    /// Whether a signed decision says the same.
    func isThat(of decision: String) throws(SigningError) -> Bool {
        let said = try SigningError.mapped(try UnverifiedMessage<Decision>(decision).content)
        func same(_ one: String?, _ other: String?) -> Bool { StrictJSON.same(one ?? "", other ?? "") }
        return StrictJSON.same(said.status, status) && said.effect == effect && same(said.match, number)
            && same(said.reason, reason)
    }
}

/// Signs answers to transactions, stores them and sends them (``DecisionCeremony``).
struct Decisions: Sendable {
    let parts: DeviceParts

    /// Has one decision about a transaction signed, stored and sent; nobody else does at the same time. The same answer
    /// again sends the same bytes, or gets the receipt that came for them.
    func decide(_ answer: Answer, in container: SigningID) async throws -> SigningReceipt {
        var record = try await parts.records.load(container)
        var retry = CallRetry(sends: 0)
        while true {
            let held = try await parts.hold(.decision(container, answer.txn))
            do {
                let receipt = try await decideAlone(answer, record)
                await held.release()
                return receipt
            } catch {
                await held.release()
                try await parts.calls.recover(&record, &retry, from: error)
            }
        }
    }

    private func decideAlone(_ answer: Answer, _ record: ContainerRecord) async throws -> SigningReceipt {
        var record = record
        let done = try await parts.memory.decided(record.knownDid, answer.txn)
        var stored = done == nil ? try await parts.records.decision(record.knownDid, answer.txn) : nil
        var ceremony = DecisionCeremony(at: try phase(answer, done?.decision, stored, record))
        var (receipt, failure) = (done?.receipt, (any Error)?.none)
        while true {
            switch ceremony.next {
            case .sign(let replacing):
                let signed = try await sign(answer, record)
                try await parts.records.keep(signed, replacing: replacing)
                stored = signed
                _ = ceremony.take(.signed)
            case .send:
                guard let kept = stored else { throw SigningError(.internal) }
                do {
                    receipt = try await send(kept, record, by: .given)
                    _ = ceremony.take(.receipt)
                } catch let error as SigningError {
                    failure = error
                    record = try await parts.records.load(record.id)
                    _ = ceremony.take(
                        .failed(CallRunner.failure(error), isByReplacedKey: try record.hasReplacedKey(of: kept)))
                }
            case .done:
                guard let receipt else { throw SigningError(.internal) }
                return receipt
            case .failPending: throw SigningError(.decisionPending)
            case .failDecided: throw SigningError(.alreadyDecided)
            case .fail: throw failure ?? SigningError(.internal)
            }
        }
    }

    /// How far the answer is, by what is known here.
    private func phase(
        _ answer: Answer, _ decided: String?, _ stored: DecisionRecord?, _ record: ContainerRecord
    ) throws -> DecisionCeremony.Phase {
        if let decided { return .receipted(isSame: try answer.isThat(of: decided)) }
        guard let stored else { return .open }
        return .stored(
            isSame: try answer.isThat(of: stored.decision), isByReplacedKey: try record.hasReplacedKey(of: stored))
    }

    // MARK: Signing

    private func sign(_ answer: Answer, _ record: ContainerRecord) async throws -> DecisionRecord {
        guard let sub = record.sub, let enrolment = try record.enrolment() else { throw SigningError(.internal) }
        let (transaction, status, password): (SigningTransaction, DocumentStatus, Secret?)
        switch answer.subject {
        case .unseen(let expires):
            return try await signUnseen(answer, expires: expires, sub, enrolment.device, record)
        case .shown(let shown, let chosen, let typed): (transaction, status, password) = (shown, chosen, typed)
        }
        let (document, content) = (transaction.document, transaction.document.content)
        // When it was fetched it was for keys of this container: they were replaced since.
        guard let key = enrolment.keys.first(where: { status.keys.contains($0.kid) }) else {
            throw SigningError(.transactionNotFetched)
        }
        var opened: OpenedKeys?
        if let slot = key.slot {
            opened = try await parts.passwords.opened(record.id, slot, password, for: .use, by: .given)
            guard try await parts.records.load(record.id).keyID == record.keyID else {
                throw SigningError(.transactionNotFetched)
            }
        }
        let decision = Decision(
            issuer: record.issuer, did: content.did, sub: content.sub, txn: content.txn, nonce: content.nonce,
            document: .document(document.compact),
            displayed: .displayed(transaction.displayed.texts(status: status, match: answer.number)),
            status: status.name, effect: status.effect, reason: answer.reason, match: answer.number, unl: opened?.unl,
            jti: SigningID(random: parts.random))
        // What the server would refuse is not signed.
        if let member = content.mismatch(with: decision, compact: document.compact, signer: key.kid) {
            throw SigningError(.invalidArgument, "The decision does not fit the document: \(member).")
        }
        let signer: any SigningKey
        if let opened {
            signer = try opened.signingKey(key.label)
        } else {
            signer = try await parts.provider.signing(record, key.usage, key.label)
        }
        return try await sign(decision, key, with: signer, record, expires: content.expiresAt)
    }

    private func signUnseen(
        _ answer: Answer, expires: Int, _ sub: String, _ device: EnrolledKey, _ record: ContainerRecord
    ) async throws -> DecisionRecord {
        let decision = Decision(
            issuer: record.issuer, did: try record.knownDid, sub: sub, txn: answer.txn, isBlind: true,
            status: answer.status, effect: answer.effect, reason: answer.reason, jti: SigningID(random: parts.random))
        let signer = try await parts.provider.device(record)
        return try await sign(decision, device, with: signer, record, expires: expires)
    }

    private func sign(
        _ decision: Decision, _ key: EnrolledKey, with signer: any SigningKey, _ record: ContainerRecord, expires: Int
    ) async throws -> DecisionRecord {
        let signed = try await SignedMessage.sign(decision, with: signer)
        guard signed.kid == key.kid else { throw SigningError(.credentialsLost) }
        var possession: String?
        if key.usage != .device {
            let content = Possession(
                issuer: record.issuer, did: decision.did, txn: decision.txn, decision: .decision(signed.compact))
            possession = try await SignedMessage.sign(content, with: parts.provider.device(record)).compact
        }
        return DecisionRecord(
            format: 1, did: decision.did, txn: decision.txn, expires: expires, status: decision.status,
            effect: decision.effect, decision: signed.compact, possession: possession)
    }

    // MARK: Sending

    /// Sends a stored decision, and forgets it when there is a receipt for it.
    func send(_ kept: DecisionRecord, _ record: ContainerRecord, by prover: Prover) async throws -> SigningReceipt {
        let body = DecideBody(decision: kept.decision, possession: kept.possession)
        let receipt = try await parts.calls.ask(Request(.decide, body), of: record, by: prover) { received in
            let receipt = try received.trust.verified(received.text, as: Receipt.self)
            let content = receipt.content
            guard content.did == kept.did, content.txn == kept.txn, content.decision == .decision(kept.decision),
                content.effect == kept.effect, StrictJSON.same(content.status, kept.status),
                StrictJSON.same(content.sub, received.record.sub ?? "")
            else {
                throw SigningProtocolError(.wrongRequest, "The receipt is for another decision.", member: "dh")
            }
            return receipt
        }
        let value = SigningReceipt(receipt)
        await parts.memory.keep(value, for: kept)
        try await parts.records.remove(kept)
        return value
    }
}

extension ContainerRecord {
    /// Whether a renewal has replaced the key that signed a decision: the server has not taken it, or has long ago.
    fileprivate func hasReplacedKey(of kept: DecisionRecord) throws -> Bool {
        let kid = try SigningError.mapped(try UnverifiedMessage<Decision>(kept.decision).kid)
        guard let enrolment = try enrolment() else { return false }
        return kid != enrolment.device.kid && !enrolment.keys.contains { $0.kid == kid }
    }
}
