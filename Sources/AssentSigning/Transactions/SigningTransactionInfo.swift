public import AssentCore
import AssentSigningProtocol
public import Foundation

/// What a transaction's id says, before anything is asked from the server.
public struct SigningTransactionInfo: Sendable {
    /// The container that is meant.
    public let container: SigningContainer

    let ticket: UnverifiedMessage<Ticket>

    /// Whether the id's signature was verified already. If not, its signer is new to this device, and the next call
    /// finds out.
    public let isVerified: Bool

    /// The transaction.
    public var transactionID: String { ticket.content.txn.text }

    /// Until when it is open, by the server's clock.
    public var expiresAt: Date { Date(timeIntervalSince1970: TimeInterval(ticket.content.expiresAt)) }

    /// Whether anyone who scans it first may claim it: ``transaction(password:)`` does. The app shows where it began
    /// (`place` and `address` of `SigningDisplay`), and the user types the number of the page.
    public var isClaim: Bool { ticket.content.isClaim }

    /// The key that decrypts the transaction's details: whether the user has to type a password to see them.
    public var protectionKey: SigningContainer.Key? { container.keys.first { $0.usage == .transport } }

    /// Fetches the transaction, and claims it before where ``isClaim`` says so.
    ///
    /// - Parameter password: the password `session`, if ``protectionKey`` needs one and it is not remembered.
    /// - Returns: the transaction, to be shown.
    /// - Throws: ``SigningError``, for example with code `tx_unknown`, `tx_expired`, `documentRefused`, or
    ///   `passwordRequired`.
    public func transaction(password: Secret? = nil) async throws -> SigningTransaction {
        try await Documents(parts: container.device.parts).fetch(self, password: password)
    }

    /// Refuses the transaction without opening it.
    ///
    /// - Parameter reason: the user's reason, 1 to 200 characters.
    /// - Returns: the server's signed receipt.
    /// - Throws: ``SigningError``.
    @discardableResult
    public func deny(reason: String? = nil) async throws -> SigningReceipt {
        try SigningTransaction.check(reason: reason)
        return try await refuse(.deny, reason)
    }

    /// Refuses the transaction without opening it, and reports it as suspicious.
    ///
    /// - Parameter reason: the user's reason, 1 to 200 characters.
    /// - Returns: the server's signed receipt.
    /// - Throws: ``SigningError``.
    @discardableResult
    public func report(reason: String? = nil) async throws -> SigningReceipt {
        try SigningTransaction.check(reason: reason)
        return try await refuse(.report, reason)
    }

    private func refuse(_ effect: DecisionEffect, _ reason: String?) async throws -> SigningReceipt {
        let answer = Answer(
            subject: .unseen(expires: ticket.content.expiresAt), txn: ticket.content.txn, status: effect.rawValue,
            effect: effect, reason: reason)
        return try await Decisions(parts: container.device.parts).decide(answer, in: container.record)
    }
}
