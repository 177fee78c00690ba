import AssentCore
package import AssentSigningProtocol
import AssentStore

/// What a relying party asks a user to agree to.
package struct TransactionWish: Sendable {
    /// The client's id.
    package var clientID: String
    /// The name that it is registered with.
    package var clientName: String
    /// The user, by id or name; `nil` for whoever scans it first.
    package var user: String?
    /// The template.
    package var template: String
    /// The text `authorization_details`.
    package var details: String
    /// The only container that may answer.
    package var did: String?
    /// The language of the texts.
    package var locale = "en"
    /// For how many seconds it is open, if not as the template says.
    package var lifetime: Int64?
    /// Where it began, as the relying party says.
    package var origin: DocumentOrigin?
    /// The field `Idempotency-Key`.
    package var idempotencyKey: String

    /// A wish.
    package init(
        clientID: String, clientName: String, user: String?, template: String, details: String, idempotencyKey: String
    ) {
        self.clientID = clientID
        self.clientName = clientName
        self.user = user
        self.template = template
        self.details = details
        self.idempotencyKey = idempotencyKey
    }
}

/// A transaction as its relying party sees it.
package struct TransactionView: Sendable {
    /// The transaction.
    package let transaction: SigningTransactionRecord
    /// Where it stands now.
    package let state: SigningTransactionRecord.State
    /// The receipt, if it was decided.
    package let receipt: String?
    /// Why: what the user says, or what has ended it.
    package let reason: String?
}

extension SigningProvider {
    /// The longest text `authorization_details`, in bytes.
    package static let detailsLimit = 16 << 10

    /// Makes a transaction for a relying party.
    ///
    /// - Throws: ``SigningRefusal``: `invalid_request`, `not_found`, `rate_limited`.
    package func create(_ wish: TransactionWish) async throws(SigningRefusal) -> SigningTransactionRecord {
        try await answering {
            guard let template = settings.templates[wish.template] else {
                throw SigningRefusal(.invalidRequest, "There is no template \(wish.template).")
            }
            guard wish.details.utf8.count <= Self.detailsLimit else { throw SigningRefusal(.tooLarge) }
            guard (1...64).contains(wish.idempotencyKey.utf8.count) else {
                throw SigningRefusal(.invalidRequest, "Idempotency-Key has 1 to 64 characters.")
            }
            let user = try await user(of: wish)
            if let did = wish.did {
                guard let container = try await store.container(did: did), container.userID == user?.id else {
                    throw SigningRefusal(.notFound)
                }
            }
            let preset = user == nil ? min(template.lifetime, Self.claimLifetime) : template.lifetime
            let lifetime = wish.lifetime ?? preset
            if user == nil { try Self.check(claim: wish, template, lifetime: lifetime) }
            guard (10...3600).contains(lifetime) else {
                throw SigningRefusal(.invalidRequest, "A transaction is open for 10 to 3600 seconds.")
            }
            let draft = try draft(wish, template)
            let now = store.now
            let frame = SigningHash.detailsFrame(wish.details)
            let new = SigningTransactionRecord(
                txn: SigningID(random: context.random).text, clientID: wish.clientID, userID: user?.id ?? "",
                did: wish.did,
                kind: template.kind.rawValue, content: String(decoding: draft.encoded(), as: UTF8.self),
                req: frame.hash.text, request: Base64URL.encode(frame.bytes),
                matchNumber: template.matchesNumber ? Self.number(context.random) : nil, createdAt: now,
                expiresAt: now + lifetime,
                idempotency: SigningTransactionRecord.Idempotency(
                    key: wish.idempotencyKey, request: Self.key(wish, user)))
            let made = try await store.create(new, limits: settings.limits)
            if made.txn == new.txn { await tell(of: made) }
            return made
        }
    }

    private func user(of wish: TransactionWish) async throws -> User? {
        guard let name = wish.user else { return nil }
        guard let user = try await find(user: name), user.isActive else { throw SigningRefusal(.notFound) }
        return user
    }

    private func draft(_ wish: TransactionWish, _ template: SigningTemplate) throws -> DocumentDraft {
        let details: JSONValue
        do {
            details = try JSONValue.parse(
                Array(wish.details.utf8), limits: ShownContent.limits, duplicates: .rejectAlike)
        } catch {
            throw SigningRefusal(.invalidRequest, "authorization_details is not JSON. \(error.detail)")
        }
        return try DocumentDraft(
            template, details: details, relyingParty: RelyingParty(id: wish.clientID, name: wish.clientName),
            locale: wish.locale, origin: wish.origin)
    }

    /// Two random digits.
    static func number(_ random: any RandomSource) -> String {
        while true {
            // 200 values are twice each number; the others would make some numbers more likely.
            guard let byte = random.bytes(1).first else { continue }
            if byte < 200 {
                let value = Int(byte % 100)
                return value < 10 ? "0\(value)" : "\(value)"
            }
        }
    }

    /// What makes two requests the same.
    private static func key(_ wish: TransactionWish, _ user: User?) -> String {
        Frame(
            "assent signing request", .text(user?.id ?? ""), .text(wish.template), .text(wish.details),
            .optional(wish.did),
            .text(wish.locale), .optional(wish.lifetime.map(String.init)), .optional(wish.origin?.place),
            .optional(wish.origin?.address)
        ).hash.text
    }

    /// How a client's transaction stands; with `wait`, as soon as it is over, or after so many seconds.
    ///
    /// - Throws: ``SigningRefusal`` `tx_unknown`, also for another client's.
    package func view(_ txn: String, client: String, wait: Int = 0) async throws(SigningRefusal) -> TransactionView {
        try await answering {
            guard let found = try await store.transaction(txn, evenUnclaimed: true), found.isOf(client) else {
                throw SigningRefusal(.transactionUnknown)
            }
            guard found.state(at: store.now) == .pending, wait > 0 else { return try await view(found) }
            await bell.wait(for: .transaction(txn), seconds: wait)
            return try await view(try await store.transaction(txn, evenUnclaimed: true) ?? found)
        }
    }

    private func view(_ transaction: SigningTransactionRecord) async throws -> TransactionView {
        let state = transaction.state(at: store.now)
        let decision = state == .pending ? nil : try await store.decision(of: transaction.txn)
        let said = try decision.map { try UnverifiedMessage<Decision>($0.decision).content.reason } ?? nil
        return TransactionView(
            transaction: transaction, state: state, receipt: decision?.receipt, reason: said ?? transaction.reason)
    }

    /// Takes a client's transaction back.
    ///
    /// - Throws: ``SigningRefusal``: `tx_unknown`, `already_decided`.
    package func cancel(_ txn: String, client: String) async throws(SigningRefusal) {
        try await answering { try await store.cancel(txn, client: client, at: store.now) }
    }

    /// Who reads evidence.
    package enum EvidenceReader: Sendable {
        /// The relying party that made the transaction.
        case client(String)
        /// The user, an auditor or an administrator.
        case caller(SigningCaller)
    }

    /// The bundle of a decision: all that is needed to judge it years later, as JSON.
    ///
    /// - Throws: ``SigningRefusal`` `tx_unknown`, also when it is somebody else's, or not decided.
    package func evidence(_ txn: String, for reader: EvidenceReader) async throws(SigningRefusal) -> [UInt8] {
        try await answering {
            guard let transaction = try await store.transaction(txn), mayRead(transaction, reader),
                let decision = try await store.decision(of: txn)
            else { throw SigningRefusal(.transactionUnknown) }
            let keys = try await keys.current()
            let enrolments = try await store.records(did: decision.did)
            var messages = enrolments.flatMap { [$0.record, $0.offer] }
            messages += [decision.txd, decision.receipt, decision.evaluation].compactMap(\.self)
            let bundle = EvidenceBundle(
                issuer: iss, identities: keys.identities.map(\.publicKey), next: keys.next, previous: keys.previous,
                certificates: try keys.certificates(of: messages), enrolments: enrolments,
                transactions: [
                    EvidenceTransaction(
                        document: decision.txd, request: Base64URL.decode(transaction.request),
                        decision: decision.decision, possession: decision.possession, receipt: decision.receipt,
                        evaluation: decision.evaluation, confirmation: decision.confirmation)
                ])
            try await store.noteEvidence(transaction, by: reader)
            return bundle.encoded()
        }
    }

    private func mayRead(_ transaction: SigningTransactionRecord, _ reader: EvidenceReader) -> Bool {
        switch reader {
        case .client(let client): transaction.isOf(client)
        case .caller(let caller):
            transaction.userID == caller.session.user.id || caller.isAdministrator || caller.isAuditor
        }
    }
}

extension SigningStore {
    /// The records of a container, oldest first.
    func records(did: String) async throws -> [EvidenceEnrolment] {
        try await context.database.run(
            .read("SELECT record, enrol, offer, endorsements FROM signing_records WHERE did = \(did) ORDER BY seq")
        ).map {
            EvidenceEnrolment(
                record: try $0.text("record"), enrol: try $0.text("enrol"), offer: try $0.text("offer"),
                endorsements: try SigningRenewalRecord.endorsements(try $0.text("endorsements")))
        }
    }

    func noteEvidence(_ transaction: SigningTransactionRecord, by reader: SigningProvider.EvidenceReader) async throws {
        let by =
            switch reader {
            case .client(let client): client
            case .caller(let caller): caller.session.user.id
            }
        try await audit.write(record(.signingEvidence, user: transaction.userID, txn: transaction.txn, ["by": by]))
    }
}
