/// How users of each realm sign in.
package struct AuthenticationSettings: Sendable {
    /// The realms by their names, for example `/alpha`.
    package var realms: [String: RealmAuthentication]

    /// How many journeys clients at one address may begin in a minute; each is a row in the database until its time is over.
    package var startsPerMinute: Int64

    /// Settings.
    package init(realms: [String: RealmAuthentication], startsPerMinute: Int64 = 600) {
        self.realms = realms
        self.startsPerMinute = startsPerMinute
    }
}

/// How users of one realm sign in.
package struct RealmAuthentication: Sendable {
    /// The journeys by their names.
    package var journeys: [String: JourneyDefinition]

    /// The journey that runs when a client names none.
    package var defaultJourney: String?

    /// How long sessions live.
    package var sessionLimits: SessionLimits

    /// `successUrl` of a journey's good end.
    package var successURL: String

    /// What a client is told when a journey in a transaction fails.
    package var failedTransaction: FailedTransaction

    /// A realm; defaults are AM's.
    package init(
        journeys: [JourneyDefinition], defaultJourney: String? = nil, sessionLimits: SessionLimits = SessionLimits(),
        successURL: String = "/", failedTransaction: FailedTransaction = .success
    ) {
        self.journeys = [:]
        self.defaultJourney = defaultJourney
        self.sessionLimits = sessionLimits
        self.successURL = successURL
        self.failedTransaction = failedTransaction
        for journey in journeys { self.journeys[journey.name] = journey }
    }
}

/// What a client is told when a journey in a transaction fails (`transaction.failureStatus`).
package enum FailedTransaction: Int, Sendable, Hashable, CaseIterable {
    /// 200 with the token that it came with, as AM does: the failure shows when the request is repeated.
    case success = 200
    /// 401, so that the client knows at once.
    case unauthorized = 401
}
