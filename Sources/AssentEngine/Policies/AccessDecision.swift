package import AssentCore

/// What is decided on one access. Its transaction, where there is one, is settled then.
package enum AccessDecision: Sendable, Hashable {
    /// It is granted; with a transaction, once: that one is spent, whatever happens from here.
    case granted(taken: TakenTransaction?)
    /// The user must do something first; with a record, have that transaction approved.
    case advised(Advice, transaction: TransactionRecord?)
    /// The transaction was used before for this very access.
    case alreadyTaken(TransactionRecord)
    /// It is denied.
    case denied(AccessDenial)
}

/// Why nothing is granted and nothing can be done about it.
package enum AccessDenial: Sendable, Hashable {
    /// There is no live session.
    case noSession
    /// No policy covers the resource and the action for this subject and these circumstances.
    case noPolicy
    /// A policy denies the action.
    case notPermitted
    /// Two policies each ask for a transaction: a mistake in the configuration.
    case severalTransactions
    /// The policies want more of the user than they can do with credentials of this kind.
    case tokenKind
    /// The policy binds a part of the request that was not sent.
    case unboundContent
    /// The transaction that was named grants nothing. The reason is in the audit log and not for the client.
    case transaction(TransactionRefusal)
    /// The request cannot be put before the user, or there were too many of them: the error says which.
    case refused(EngineError)
    /// The engine or its database failed: nothing was granted.
    case unavailable
    /// Nobody knows whether a transaction was made or used: nothing was granted.
    case outcomeUnknown
}
