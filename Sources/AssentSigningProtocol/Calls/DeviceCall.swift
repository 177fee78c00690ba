/// The calls of a device (docs/transaction-signing.md, "Calls"). Both sides take their paths from here.
package enum DeviceCall: String, Sendable, Hashable, CaseIterable {
    /// Begins an enrolment.
    case start = "provision/start"
    /// Evaluates a password that is set.
    case evaluate = "provision/evaluate"
    /// Commits to the keys.
    case commit = "provision/commit"
    /// Brings the keys.
    case complete = "provision/complete"
    /// Has stored the answer.
    case confirm = "provision/confirm"
    /// Asks how the container stands.
    case status
    /// Asks for open transactions.
    case list = "transactions/list"
    /// Asks for a document.
    case fetch = "transactions/fetch"
    /// Takes a transaction that was scanned.
    case claim = "transactions/claim"
    /// Begins a record of a message.
    case create = "transactions/create"
    /// Decides.
    case decide = "transactions/decide"
    /// Evaluates a password that is guessed.
    case unlock = "slots/unlock"
    /// Says that it was right.
    case confirmEvaluation = "slots/confirm"
    /// Begins to change a password.
    case startChange = "slots/change-start"
    /// Makes the new password the only one.
    case commitChange = "slots/change-commit"
    /// Changes what the container is called, and where push messages go.
    case update
    /// Ends the container.
    case delete
    /// Asks for an offer of new keys.
    case renewStart = "renew/start"
    /// Evaluates a password for new keys.
    case renewEvaluate = "renew/evaluate"
    /// Commits to new keys.
    case renewCommit = "renew/commit"
    /// Brings new keys.
    case renewComplete = "renew/complete"
    /// Has stored the answer.
    case renewConfirm = "renew/confirm"

    /// The path below the issuer's name.
    package var path: String { "/device/\(rawValue)" }
}
