public import AssentCore
public import AssentSigningProtocol
public import Foundation

/// One question to the user, as the server signed it for this container.
public struct SigningTransaction: Sendable, Identifiable {
    /// An answer that the user may give.
    public struct Status: Sendable, Hashable, Identifiable {
        /// Its name, for ``SigningTransaction/setStatus(_:password:number:reason:)``.
        public let name: String
        /// What the user must see on its button: it is part of what is signed.
        public let label: String
        /// What it does.
        public let effect: DecisionEffect
        /// Whether the user may or must give a reason.
        public let reason: ReasonRule
        /// Whether the user must type the number that is shown where the transaction began.
        public let needsNumber: Bool

        /// The name.
        public var id: String { name }
    }

    /// Why a transaction is given up.
    public enum CancelReason: Sendable, Hashable {
        /// The user does not want to answer.
        case userCancel
        /// The user did not ask for it.
        case notifySuspicious
    }

    let document: SignedMessage<TransactionDocument>

    /// The container that it is for.
    public let container: SigningContainer

    let serverTime: Int
    let fetchedAt: Duration

    /// The texts that the app must show, as they are: their hash is signed with the decision.
    public var displayed: SigningDisplay { SigningDisplay(document.content) }

    /// The transaction's id.
    public var id: String { document.content.txn.text }

    /// What it is about.
    public var kind: DocumentKind { document.content.kind }

    /// Until when it is open, by the server's clock.
    public var expiresAt: Date { Date(timeIntervalSince1970: TimeInterval(document.content.expiresAt)) }

    /// The answers to offer.
    public var allowedStatuses: [Status] {
        document.content.statuses.filter { $0.effect != .cancel }.map { status in
            Status(
                name: status.name, label: status.label, effect: status.effect, reason: status.reason,
                needsNumber: document.content.match != nil && status.effect == .approve)
        }
    }

    /// Whether it can be given up with ``cancel(_:reason:)``.
    public var isCancelable: Bool { document.content.statuses.contains { $0.effect == .cancel } }

    /// How long it is still open: for display only, the server decides. It depends on no clock of this device but the
    /// one that measures durations.
    public func remaining() -> Duration {
        let left =
            Duration.seconds(document.content.expiresAt - serverTime) - (container.device.parts.uptime() - fetchedAt)
        return max(left, .zero)
    }

    /// The key that signs a status: whether the user has to type a password for it.
    ///
    /// - Parameter name: the status' name.
    /// - Returns: `nil` when the transaction has no such status, or none of its keys is this container's.
    public func signingKey(for name: String) -> SigningContainer.Key? {
        guard let status = document.content.status(named: name) else { return nil }
        return container.keys.first { key in status.keys.contains { $0.text == key.id } }
    }

    /// Signs the user's answer and sends it. If that fails, call it again with the same answer: the same bytes are
    /// sent, and the server counts them once.
    ///
    /// - Parameters:
    ///   - name: the status' name.
    ///   - password: the password of the key that signs it (``signingKey(for:)``), if it needs one and it is not
    ///     remembered.
    ///   - number: the two digits that the user typed, if the status needs them.
    ///   - reason: the user's reason, 1 to 200 characters, if the status has one.
    /// - Returns: the server's signed receipt.
    /// - Throws: ``SigningError``: with code `invalidArgument` before anything is signed; `already_decided`,
    ///   `tx_expired`, `match_wrong` and others as the server says; `decisionPending` when another answer was signed
    ///   here before; `wrongPassword` with what is left, `passwordRequired`.
    @discardableResult
    public func setStatus(
        _ name: String, password: Secret? = nil, number: String? = nil, reason: String? = nil
    ) async throws -> SigningReceipt {
        guard let status = document.content.status(named: name) else {
            throw SigningError(.invalidArgument, "The transaction has no such status.")
        }
        try Self.check(reason: reason)
        switch status.reason {
        case .none where reason != nil:
            throw SigningError(.invalidArgument, "This status takes no reason.")
        case .required where reason == nil:
            throw SigningError(.invalidArgument, "This status needs a reason.")
        default: break
        }
        let needsNumber = document.content.match != nil && status.effect == .approve
        let isNumber = number.map { $0.utf8.count == 2 && $0.utf8.allSatisfy(\.isASCIIDigit) } ?? false
        guard needsNumber == (number != nil), isNumber == needsNumber else {
            throw SigningError(
                .invalidArgument,
                needsNumber ? "This status needs the two digits." : "This status takes no number.")
        }
        let answer = Answer(
            subject: .shown(self, status, password: password), txn: document.content.txn, status: status.name,
            effect: status.effect, number: number, reason: reason)
        return try await Decisions(parts: container.device.parts).decide(answer, in: container.record)
    }

    /// Gives the transaction up, or reports it.
    ///
    /// - Parameters:
    ///   - why: the user does not want to answer, or did not ask for it.
    ///   - reason: the user's reason, 1 to 200 characters, if the status has one.
    /// - Returns: the server's signed receipt.
    /// - Throws: ``SigningError`` with code `unsupportedOperation` when the transaction has no such status.
    @discardableResult
    public func cancel(_ why: CancelReason, reason: String? = nil) async throws -> SigningReceipt {
        let effect: DecisionEffect = why == .userCancel ? .cancel : .report
        guard let status = document.content.statuses.first(where: { $0.effect == effect }) else {
            throw SigningError(.unsupportedOperation, "The transaction has no status for this.")
        }
        return try await setStatus(status.name, reason: reason)
    }

    static func check(reason: String?) throws(SigningError) {
        if let reason { try SigningError.check(reason, 1...200, at: "reason") }
    }
}

/// The server's signed statement about a decision.
public struct SigningReceipt: Sendable, Hashable {
    /// The transaction.
    public let transactionID: String
    /// The status' name.
    public let status: String
    /// What it did.
    public let effect: DecisionEffect
    /// When it was decided, by the server's clock.
    public let decidedAt: Date
    /// The receipt as the server signed it (a compact JWS), to be kept.
    public let compact: String

    init(_ receipt: SignedMessage<Receipt>) {
        transactionID = receipt.content.txn.text
        status = receipt.content.status
        effect = receipt.content.effect
        decidedAt = Date(timeIntervalSince1970: TimeInterval(receipt.content.decidedAt))
        compact = receipt.compact
    }
}
