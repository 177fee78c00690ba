import AssentCore
import AssentSigningProtocol
public import Foundation

/// What a transaction's id says, before anything is asked from the server.
public struct SigningTransactionInfo: Sendable {
    /// The container that is meant.
    public let container: SigningContainer

    /// The transaction.
    public let transactionID: String

    /// Until when it is open, by the server's clock.
    public let expiresAt: Date

    /// Whether whoever scans it may claim it. This version cannot.
    public let isClaim: Bool

    /// Whether the id's signature was verified already. If not, its signer is new to this device, and the next call
    /// finds out.
    public let isVerified: Bool

    let ticket: String
    let txn: SigningID
    let expires: Int

    /// Fetches the transaction.
    ///
    /// - Throws: ``SigningError``, for example with code `tx_unknown`, `tx_expired`, or `documentRefused`.
    public func transaction() async throws -> SigningTransaction { try await container.device.fetch(self) }

    /// Refuses the transaction without opening it.
    ///
    /// - Parameter reason: the user's reason, 1 to 200 characters.
    /// - Returns: the server's signed receipt.
    /// - Throws: ``SigningError``.
    @discardableResult
    public func deny(reason: String? = nil) async throws -> SigningReceipt {
        try SigningTransaction.check(reason: reason)
        return try await container.device.refuse(self, .deny, reason: reason)
    }

    /// Refuses the transaction without opening it, and reports it as suspicious.
    ///
    /// - Parameter reason: the user's reason, 1 to 200 characters.
    /// - Returns: the server's signed receipt.
    /// - Throws: ``SigningError``.
    @discardableResult
    public func report(reason: String? = nil) async throws -> SigningReceipt {
        try SigningTransaction.check(reason: reason)
        return try await container.device.refuse(self, .report, reason: reason)
    }
}
