/// The calls of a device (docs/transaction-signing.md, "Calls"). Both sides take their paths from here.
package enum DeviceCall: String, Sendable, Hashable, CaseIterable {
    case start = "provision/start"
    /// Evaluates a password that is set.
    case evaluate = "provision/evaluate"
    case commit = "provision/commit"
    case complete = "provision/complete"
    /// Has stored the answer.
    case confirm = "provision/confirm"
    case status
    case list = "transactions/list"
    case fetch = "transactions/fetch"
    /// Takes a transaction that was scanned.
    case claim = "transactions/claim"
    /// Begins a record of a message.
    case create = "transactions/create"
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
    case delete
    case renewStart = "renew/start"
    /// Evaluates a password for new keys.
    case renewEvaluate = "renew/evaluate"
    case renewCommit = "renew/commit"
    case renewComplete = "renew/complete"
    /// Has stored the answer.
    case renewConfirm = "renew/confirm"

    /// The path below the issuer's name.
    package var path: String { "/device/\(rawValue)" }
}

/// What else an issuer answers: its configuration, and what users, administrators and relying parties ask
/// (docs/transaction-signing.md, "HTTP interface"). `{id}` stands for one of them.
package enum IssuerPath: String, Sendable, CaseIterable {
    case configuration
    case invites
    case invite = "invites/{id}"
    case digits = "invites/{id}/digits"
    case containers
    case container = "containers/{id}"
    case keys
    case transactions
    case transaction = "transactions/{id}"
    case evidence = "transactions/{id}/evidence"

    /// The path below the issuer's name, with an id as it stands in a URL.
    package func path(_ id: String = "") -> String { "/" + rawValue.replacing("{id}", with: id) }
}
