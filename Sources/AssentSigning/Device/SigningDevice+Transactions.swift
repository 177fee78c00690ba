import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Foundation

extension SigningDevice {
    /// Reads a transaction's id: of a push message, of ``SigningContainer/transactionIDs(wait:password:)``, or of a QR
    /// code.
    /// Nothing is sent.
    ///
    /// - Parameters:
    ///   - id: the compact text.
    ///   - user: which user's container is meant, when several fit: the id or the name.
    /// - Returns: whose transaction it is, and how to get it.
    /// - Throws: ``SigningError`` with code `invalidArgument` when it is no such id, `invalidContainer` when it is for
    ///   none of the containers, `inexplicitContainer` when several fit, `serverAuthentication` when it is forged.
    public func retrieveTransactionInfo(_ id: String, user: String? = nil) async throws -> SigningTransactionInfo {
        let ticket: UnverifiedMessage<Ticket>
        do {
            ticket = try UnverifiedMessage(id)
        } catch {
            throw SigningError(.invalidArgument, "This is not a transaction's id. \(error.detail)")
        }
        let content = ticket.content
        var fitting: [(container: SigningContainer, isVerified: Bool)] = []
        for record in try await records.all() where StrictJSON.same(record.issuer, content.issuer) {
            guard let container = try SigningContainer(record, on: self), let handle = record.handle else { continue }
            if let expected = content.handle {
                let own = SigningID.handle(key: handle, issuer: record.issuer, txn: content.txn)
                guard ConstantTime.equal(own.bytes, expected.bytes) else { continue }
            }
            fitting.append((container, try Self.isVerified(ticket, by: record)))
        }
        if let user {
            fitting = fitting.filter { ContainerFilter(user: user).matches($0.container) }
        }
        guard let first = fitting.first else { throw SigningError(.invalidContainer) }
        guard fitting.count == 1 else {
            var error = SigningError(.inexplicitContainer)
            error.users = fitting.map(\.container.userID)
            throw error
        }
        return SigningTransactionInfo(
            container: first.container, transactionID: content.txn.text,
            expiresAt: Date(timeIntervalSince1970: TimeInterval(content.expiresAt)), isClaim: content.isClaim,
            isVerified: first.isVerified, ticket: id, txn: content.txn, expires: content.expiresAt)
    }

    /// Whether the id's signer is known here; when it is not, the configuration is read at the next call. A bad
    /// signature of a known key is an error.
    private static func isVerified(
        _ ticket: UnverifiedMessage<Ticket>, by record: ContainerRecord
    ) throws(SigningError) -> Bool {
        do {
            _ = try record.trust().verified(ticket.compact, as: Ticket.self)
            return true
        } catch  where error.code == .unknownKey {
            return false
        } catch {
            throw SigningError(error)
        }
    }

    func transactionIDs(of id: SigningID, wait: Int, password: Secret?) async throws -> [String] {
        try await list(of: id, wait: wait, password: password).tickets
    }

    /// Whether the server lists a transaction as open, or does not list all that are.
    func mayBeListed(_ txn: SigningID, _ id: SigningID) async throws -> Bool {
        let list = try await list(of: id, wait: 0, password: nil)
        return try list.more
            || list.tickets.contains { ticket in
                try Self.mapped { () throws(SigningProtocolError) in
                    try UnverifiedMessage<Ticket>(ticket).content.txn == txn
                }
            }
    }

    private func list(of id: SigningID, wait: Int, password: Secret?) async throws -> TransactionList {
        guard (0...25).contains(wait) else {
            throw SigningError(.invalidArgument, "The server waits at most 25 seconds.")
        }
        let list = try await withCurrentKeys(id) {
            let record = try await self.records.load(id)
            let transport = try await self.transportKey(record, password)
            let body = ListBody(wait: wait, seen: self.heardNotices[id]?.received ?? [])
            return try await self.call(id, .list, body, wait: wait) {
                let key = try await self.current(transport, of: record, $0, password)
                return try await self.verified(self.opened($0, with: key), $0, as: TransactionList.self).content
            }
        }
        hear(list.notices, id)
        return list
    }

    /// A transport key that was there before a call, or the one that a renewal has put in its place meanwhile.
    func current(
        _ transport: any KeyAgreementKey, of record: ContainerRecord, _ received: Received, _ password: Secret?
    ) async throws -> any KeyAgreementKey {
        received.record.keyID == record.keyID ? transport : try await transportKey(received.record, password)
    }

    /// Fetches the document of a transaction, and checks what every device checks.
    func fetch(_ info: SigningTransactionInfo, password: Secret?) async throws -> SigningTransaction {
        let id = info.container.record
        if !info.isVerified {
            try await answered { try await refresh(id) }
            let trust = try await records.load(id).trust()
            try Self.mapped { () throws(SigningProtocolError) in
                _ = try trust.verified(info.ticket, as: Ticket.self)
            }
        }
        if info.isClaim {
            // The first container wins; from then on it is this user's, as any other.
            _ = try await call(id, .claim, ClaimBody(ticket: info.ticket)) {
                try await self.status($0)
            }
        }
        return try await withCurrentKeys(id) { try await self.document(info, password) }
    }

    private func document(_ info: SigningTransactionInfo, _ password: Secret?) async throws -> SigningTransaction {
        let id = info.container.record
        let record = try await records.load(id)
        let transport = try await transportKey(record, password)
        return try await call(id, .fetch, FetchBody(txn: info.txn)) { received in
            let key = try await self.current(transport, of: record, received, password)
            let fetched = try await self.verified(self.opened(received, with: key), received, as: Fetched.self)
            let document = try received.trust.verified(fetched.content.document, as: TransactionDocument.self)
            guard let audience = try received.record.audience() else { throw SigningError(.internal) }
            try document.content.check(for: audience, txn: info.txn)
            return SigningTransaction(
                document: document, container: info.container, serverTime: fetched.content.head.issuedAt,
                fetchedAt: self.uptime())
        }
    }

    // MARK: Decisions

    /// What a user answered, to tell a repetition from another answer.
    private struct Answer {
        let status: String
        let effect: DecisionEffect
        var number: String?
        var reason: String?

        /// Whether a signed decision says the same.
        func isThat(of decision: String) throws(SigningError) -> Bool {
            let said = try SigningDevice.mapped { () throws(SigningProtocolError) in
                try UnverifiedMessage<Decision>(decision).content
            }
            func same(_ one: String?, _ other: String?) -> Bool { StrictJSON.same(one ?? "", other ?? "") }
            return StrictJSON.same(said.status, status) && said.effect == effect && same(said.match, number)
                && same(said.reason, reason)
        }
    }

    /// Signs a decision and sends it. A repetition with the same answer sends the same bytes.
    func decide(
        _ transaction: SigningTransaction, _ status: DocumentStatus, password: Secret?, number: String?,
        reason: String?
    ) async throws -> SigningReceipt {
        let document = transaction.document
        let content = document.content
        let answer = Answer(status: status.name, effect: status.effect, number: number, reason: reason)
        return try await once(answer, transaction.container.record, content.txn) { record in
            // When it was fetched it was for keys of this container: they were replaced since.
            guard let enrolment = try record.enrolment(),
                let key = enrolment.keys.first(where: { status.keys.contains($0.kid) })
            else { throw SigningError(.transactionNotFetched) }
            let opened: OpenedKeys?
            if let slot = key.slot {
                opened = try await self.opened(record.id, slot, password, for: .use)
                guard try await self.records.load(record.id).keyID == record.keyID else {
                    throw SigningError(.transactionNotFetched)
                }
            } else {
                opened = nil
            }
            let decision = Decision(
                issuer: record.issuer, did: content.did, sub: content.sub, txn: content.txn, nonce: content.nonce,
                document: .document(document.compact),
                displayed: .displayed(transaction.displayed.texts(status: status, match: number)),
                status: status.name, effect: status.effect, reason: reason, match: number, unl: opened?.unl,
                jti: SigningID(random: self.random))
            // What the server would refuse is not signed.
            if let member = content.mismatch(with: decision, compact: document.compact, signer: key.kid) {
                throw SigningError(.invalidArgument, "The decision does not fit the document: \(member).")
            }
            return try await self.sign(decision, key, opened, record, expires: content.expiresAt)
        }
    }

    /// Refuses or reports a transaction without its document.
    func refuse(
        _ info: SigningTransactionInfo, _ effect: DecisionEffect, reason: String?
    ) async throws -> SigningReceipt {
        let answer = Answer(status: effect.rawValue, effect: effect, reason: reason)
        return try await once(answer, info.container.record, info.txn) { record in
            guard let did = record.did, let sub = record.sub, let enrolment = try record.enrolment() else {
                throw SigningError(.internal)
            }
            let decision = Decision(
                issuer: record.issuer, did: did, sub: sub, txn: info.txn, isBlind: true, status: effect.rawValue,
                effect: effect, reason: reason, jti: SigningID(random: self.random))
            return try await self.sign(decision, enrolment.device, nil, record, expires: info.expires)
        }
    }

    /// Has one decision about a transaction signed, stored and sent; nobody else does at the same time. The same answer
    /// again sends the same bytes, or gets the receipt that came for them.
    private func once(
        _ answer: Answer, _ id: SigningID, _ txn: SigningID, sign: (ContainerRecord) async throws -> DecisionRecord
    ) async throws -> SigningReceipt {
        let name = "signing.decide.\(id.text).\(txn.text)"
        let deadline = clock.now.addingTimeInterval(120)
        return try await withCurrentKeys(id) {
            try await records.store.withExclusiveAccess(name, deadline: deadline) {
                try await self.decideAlone(answer, id, txn, sign)
            }
        }
    }

    private func decideAlone(
        _ answer: Answer, _ id: SigningID, _ txn: SigningID, _ sign: (ContainerRecord) async throws -> DecisionRecord
    ) async throws -> SigningReceipt {
        let record = try await self.records.load(id)
        guard let did = record.did else { throw SigningError(.internal) }
        if let done = self.decided[[did, txn]] {
            guard try answer.isThat(of: done.decision) else { throw SigningError(.alreadyDecided) }
            return done.receipt
        }
        if let earlier = try await self.records.decision(did, txn) {
            guard try answer.isThat(of: earlier.decision) else {
                guard try record.hasReplacedKey(of: earlier) else { throw SigningError(.decisionPending) }
                return try await self.send(self.records.replace(earlier, by: sign(record)), id)
            }
            do {
                return try await self.send(earlier, id)
            } catch let error as SigningError {
                // Its evaluation was too old, or not confirmed; or the keys were replaced. The server takes one
                // decision, so nothing is lost if somebody forged this error.
                let now = try await self.records.load(id)
                guard try now.isSignedAgain(earlier, after: error.code) else { throw error }
                return try await self.send(self.records.replace(earlier, by: sign(now)), id)
            }
        }
        let kept = try await self.records.keep(sign(record))
        return try await self.send(kept, id)
    }

    private func sign(
        _ decision: Decision, _ key: EnrolledKey, _ opened: OpenedKeys?, _ record: ContainerRecord, expires: Int
    ) async throws -> DecisionRecord {
        let signer: any SigningKey
        if let opened {
            signer = try opened.signingKey(key.label)
        } else {
            signer = try await signingKey(record, key.usage, key.label)
        }
        let signed = try await SignedMessage.sign(decision, with: signer)
        guard signed.kid == key.kid else { throw SigningError(.credentialsLost) }
        var possession: String?
        if key.usage != .device {
            let content = Possession(
                issuer: record.issuer, did: decision.did, txn: decision.txn, decision: .decision(signed.compact))
            possession = try await SignedMessage.sign(content, with: deviceKey(record)).compact
        }
        return DecisionRecord(
            format: 1, did: decision.did, txn: decision.txn, expires: expires, status: decision.status,
            effect: decision.effect, decision: signed.compact, possession: possession)
    }

    /// Sends a stored decision, and forgets it when there is a receipt for it.
    func send(_ kept: DecisionRecord, _ id: SigningID) async throws -> SigningReceipt {
        let body = DecideBody(decision: kept.decision, possession: kept.possession)
        let receipt = try await call(id, .decide, body) { received in
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
        // For whoever asks again. The server would find it, too.
        if decided.count >= 256 { decided = [:] }
        decided[[kept.did, kept.txn]] = (kept.decision, value)
        try await records.remove(kept)
        return value
    }
}

extension ContainerRecord {
    /// Whether a renewal has replaced the key that signed a decision: the server has not taken it, or has long ago.
    fileprivate func hasReplacedKey(of kept: DecisionRecord) throws -> Bool {
        let kid = try SigningDevice.mapped { () throws(SigningProtocolError) in
            try UnverifiedMessage<Decision>(kept.decision).kid
        }
        guard let enrolment = try enrolment() else { return false }
        return kid != enrolment.device.kid && !enrolment.keys.contains { $0.kid == kid }
    }

    /// Whether the same answer is signed again when the server refuses a signed one like this.
    fileprivate func isSignedAgain(_ kept: DecisionRecord, after code: SigningError.Code) throws -> Bool {
        switch code {
        case .unlockRequired: true
        case .keyRetired, .transactionNotFetched: try hasReplacedKey(of: kept)
        default: false
        }
    }
}
