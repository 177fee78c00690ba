package import AssentCore

/// How the users of one realm sign in.
package struct RealmSignIn: Sendable {
    /// The journeys by their names.
    package let journeys: [String: Journey]

    /// The journey that runs when a client names none.
    package let defaultJourney: String?

    /// How long sessions live.
    package let sessionLimits: SessionLimits

    /// Where a browser would go after a journey's success.
    package let successURL: String

    /// What a client is told when a journey in a transaction fails.
    package let failedTransaction: FailedTransaction

    /// Whether a policy asks from which networks users have come, so that this is remembered.
    package let remembersNetworks: Bool

    /// A realm; defaults are AM's.
    ///
    /// - Throws: the first ``SettingsIssue`` of the first journey that has one, or one about a default journey that
    ///   does not exist.
    package init(
        journeys: [JourneyDefinition], defaultJourney: String? = nil, sessionLimits: SessionLimits = SessionLimits(),
        successURL: String = "/", failedTransaction: FailedTransaction = .success, remembersNetworks: Bool = false,
        catalog: NodeCatalog = .standard
    ) throws(SettingsIssue) {
        var made: [String: Journey] = [:]
        for definition in journeys { made[definition.name] = try Journey(definition, catalog: catalog) }
        if let defaultJourney, made[defaultJourney] == nil {
            throw SettingsIssue(path: "defaultJourney", "there is no journey \(defaultJourney)")
        }
        self.journeys = made
        self.defaultJourney = defaultJourney
        self.sessionLimits = sessionLimits
        self.successURL = successURL
        self.failedTransaction = failedTransaction
        self.remembersNetworks = remembersNetworks
    }
}

/// What a client is told when a journey in a transaction fails (`transaction.failureStatus`).
package enum FailedTransaction: Sendable, Hashable, CaseIterable {
    /// That it succeeded, with the token that it came with, as AM does: the failure shows when the request is repeated.
    case success
    /// That it failed, so that the client knows at once.
    case failure
}
