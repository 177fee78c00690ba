package import AssentCore
package import AssentStore

/// A transaction while its journey runs: what the user is being asked to approve.
package struct PendingApproval: Sendable, Hashable {
    /// The transaction's id.
    package let id: String

    /// The journey that must succeed (`strategySpecifier`).
    package let journey: String

    /// The `data` of the Metadata callback that tells the client what is bound: `_type` is `AssentTransaction`.
    package let metadata: JSONValue

    /// What the user is shown, in order.
    package let display: [DisplayField]

    /// When the transaction dies, in seconds since 1970.
    package let expiresAt: Int64

    /// An approval that is pending.
    package init(
        id: String, journey: String, metadata: JSONValue, display: [DisplayField], expiresAt: Int64
    ) {
        self.id = id
        self.journey = journey
        self.metadata = metadata
        self.display = display
        self.expiresAt = expiresAt
    }

    /// Two approvals are equal when they are of one transaction and show the same.
    package static func == (left: Self, right: Self) -> Bool {
        left.id == right.id && left.metadata == right.metadata
    }

    /// Hashes the id.
    package func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

/// What the journey engine asks of the transactions.
package protocol TransactionApprovals: Sendable {
    /// CREATED → IN_PROGRESS, for the session that it was made for.
    ///
    /// - Throws: ``EngineError`` `transactionUnreadable`, the same for unknown, expired, foreign and in another state.
    func start(id: String, session: LiveSession) async throws -> PendingApproval

    /// The approval again, at a later step. Throws the same error when it is no longer IN_PROGRESS for this session.
    func check(id: String, session: LiveSession) async throws -> PendingApproval

    /// The statements that make it COMPLETED, to run in one transaction with the end of the journey. They fail as a
    /// whole (``StoreError`` `unexpectedCount`) when it is no longer IN_PROGRESS, is expired, or its session or user is
    /// no longer live.
    func completion(of approval: PendingApproval, session: LiveSession) -> [SQLStatement]

    /// The journey, or the user, said no: it can no longer become COMPLETED. Returns whether that changed anything.
    func decline(id: String, session: LiveSession) async throws -> Bool
}
