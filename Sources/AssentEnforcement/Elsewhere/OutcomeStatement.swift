package import AssentCore

/// What a gateway elsewhere says of a request that it has forwarded (`POST …/enforcement/<realm>/outcome`). It may be
/// said again, until it is heard.
package struct OutcomeStatement: Sendable, Equatable {
    /// The transaction that was taken for it.
    package let transaction: String

    /// The attempt that took it.
    package let attempt: String

    /// What became of it: `answered`, `notForwarded` or `unknown`.
    package let outcome: EnforcementOutcome

    /// A statement.
    package init(transaction: String, attempt: String, outcome: EnforcementOutcome) {
        self.transaction = transaction
        self.attempt = attempt
        self.outcome = outcome
    }

    /// The largest one, in bytes.
    package static let maximumBytes = 4096

    /// The statement as it is sent.
    package var json: JSONValue {
        ["transaction": .string(transaction), "attempt": .string(attempt), "outcome": outcome.json]
    }

    /// Reads a statement.
    ///
    /// - Throws: ``WireError``: a member is missing, unknown, there twice, of another type or beyond its bound; or the
    ///   outcome says nothing of what became of the request.
    package init(json: JSONValue) throws(WireError) {
        var members = try WireMembers(json)
        let transaction = try members.text("transaction", upTo: EnforcementBounds.name)
        let attempt = try members.attempt()
        let outcome = try EnforcementOutcome(strict: try members.required("outcome"))
        try members.finish()
        guard outcome != .taken, outcome != .forwarded else {
            throw WireError(.refused, "the outcome says nothing of what became of the request")
        }
        self.init(transaction: transaction, attempt: attempt, outcome: outcome)
    }
}

extension EnforcementOutcome {
    /// Reads an outcome that has its members and no others.
    init(strict json: JSONValue) throws(WireError) {
        var members = try WireMembers(json, at: "outcome")
        _ = try members.text("state", upTo: 32)
        guard let outcome = EnforcementOutcome(json: json) else { throw members.fault("state", "is not known") }
        if case .answered = outcome { _ = members.value("status") }
        try members.finish()
        self = outcome
    }
}
