import AssentCore
package import AssentSigningProtocol
import AssentStore

/// What a relying party asks a user to agree to.
package struct TransactionWish: Sendable {
    package var clientID: String
    /// The name that it is registered with.
    package var clientName: String
    /// By id or name; `nil` for the one who scans it first.
    package var user: String?
    package var template: String
    /// The text `authorization_details`.
    package var details: String
    /// The only container that may answer.
    package var did: String?
    package var locale = "en"
    /// For how many seconds it is open, if not as the template says.
    package var lifetime: Int64?
    /// Where it began, as the relying party says.
    package var origin: DocumentOrigin?
    /// The field `Idempotency-Key`.
    package var idempotencyKey: String

    package init(
        clientID: String, clientName: String, user: String?, template: String, details: String, idempotencyKey: String
    ) {
        (self.clientID, self.clientName, self.user) = (clientID, clientName, user)
        (self.template, self.details, self.idempotencyKey) = (template, details, idempotencyKey)
    }
}

/// A transaction as its relying party sees it.
package struct TransactionView: Sendable {
    package let transaction: SigningTransactionRecord
    package let state: SigningTransactionRecord.State
    /// The receipt, if it was decided.
    package let receipt: String?
    /// Why: what the user says, or what has ended it.
    package let reason: String?
}

/// Transactions of relying parties: made, looked at, and taken back.
package struct SigningParties: SigningPart {
    /// The longest text `authorization_details`, in bytes.
    package static let detailsLimit = 16 << 10

    /// The longest life of a transaction that anyone who scans it may claim, in seconds: a code on a page is soon on
    /// another one.
    private static let claimLifetime: Int64 = 120

    package let realm: SigningRealm

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
            var did: SigningID?
            if let text = wish.did {
                did = SigningID(text: text)
                guard let did, let container = try await devices.find(did), container.userID == user?.id else {
                    throw SigningRefusal(.notFound)
                }
            }
            let preset = user == nil ? min(template.lifetime, Self.claimLifetime) : template.lifetime
            let lifetime = wish.lifetime ?? preset
            if user == nil { try Self.check(claim: wish, template, lifetime: lifetime) }
            guard (10...3600).contains(lifetime) else {
                throw SigningRefusal(.invalidRequest, "A transaction is open for 10 to 3600 seconds.")
            }
            var new = documents.transaction(
                template, try draft(wish, template), for: SigningHash.detailsFrame(wish.details), user: user?.id ?? "",
                lifetime: lifetime, at: now)
            new.did = did
            new.idempotency = SigningTransactionRecord.Idempotency(
                key: wish.idempotencyKey, request: Self.key(wish, user))
            let made = try await documents.create(new, limits: settings.limits)
            if made.txn == new.txn { await notices.tell(of: made) }
            return made
        }
    }

    private func user(of wish: TransactionWish) async throws -> User? {
        guard let name = wish.user else { return nil }
        guard let user = try await devices.find(user: name), user.isActive else { throw SigningRefusal(.notFound) }
        return user
    }

    /// What a transaction must have that anyone who scans it may claim.
    private static func check(claim wish: TransactionWish, _ template: SigningTemplate, lifetime: Int64)
        throws(SigningRefusal)
    {
        guard wish.did == nil else {
            throw SigningRefusal(.invalidRequest, "A transaction to be claimed has no device.")
        }
        guard lifetime <= claimLifetime else {
            throw SigningRefusal(.invalidRequest, "A transaction to be claimed is open for at most 120 seconds.")
        }
        guard template.matchesNumber, wish.origin != nil else {
            throw SigningRefusal(.invalidRequest, "A transaction to be claimed needs a number to match, and an origin.")
        }
    }

    private func draft(_ wish: TransactionWish, _ template: SigningTemplate) throws -> DocumentDraft {
        // Only by these texts can a user tell that the code came from somebody else's page.
        for text in [wish.origin?.place, wish.origin?.address].compactMap(\.self)
        where DisplayText.isBlankOrSpread(text) {
            throw SigningRefusal(
                .invalidRequest, "place or address of origin has nothing but blanks, or more than three in a row.")
        }
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

    /// What makes two requests the same.
    private static func key(_ wish: TransactionWish, _ user: User?) -> String {
        Frame(
            "assent signing request", .text(user?.id ?? ""), .text(wish.template), .text(wish.details),
            .optional(wish.did),
            .text(wish.locale), .optional(wish.lifetime.map(String.init)), .optional(wish.origin?.place),
            .optional(wish.origin?.address)
        ).hash.text
    }

    /// How a client's transaction stands; with `wait`, as soon as it has ended, or after so many seconds.
    ///
    /// - Throws: ``SigningRefusal`` `tx_unknown`, also for another client's.
    package func view(_ txn: String, client: String, wait: Int = 0) async throws(SigningRefusal) -> TransactionView {
        try await answering {
            guard let txn = SigningID(text: txn), let found = try await documents.find(txn, evenUnclaimed: true),
                found.isOf(client)
            else { throw SigningRefusal(.transactionUnknown) }
            guard found.state(at: now) == .pending, wait > 0 else { return try await view(found) }
            await realm.bell.wait(for: .transaction(txn), seconds: wait)
            return try await view(try await documents.find(txn, evenUnclaimed: true) ?? found)
        }
    }

    private func view(_ transaction: SigningTransactionRecord) async throws -> TransactionView {
        let state = transaction.state(at: now)
        let decision = state == .pending ? nil : try await decisions.find(of: transaction.txn)
        let said = try decision.map { try UnverifiedMessage<Decision>($0.decision).content.reason } ?? nil
        return TransactionView(
            transaction: transaction, state: state, receipt: decision?.receipt, reason: said ?? transaction.reason)
    }

    /// Takes a client's transaction back.
    ///
    /// - Throws: ``SigningRefusal``: `tx_unknown`, `already_decided`.
    package func cancel(_ txn: String, client: String) async throws(SigningRefusal) {
        try await answering {
            guard let txn = SigningID(text: txn) else { throw SigningRefusal(.transactionUnknown) }
            try await documents.cancel(txn, client: client, at: now)
        }
    }

    /// The id of a transaction that a page shows as a QR code.
    package func ticket(of transaction: SigningTransactionRecord) async throws(SigningRefusal) -> String {
        try await answering {
            try await keys.sign(
                Ticket(issuer: iss, txn: transaction.txn, expiresAt: Int(transaction.expiresAt), isClaim: true))
        }
    }
}
