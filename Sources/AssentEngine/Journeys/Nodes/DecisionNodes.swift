import AssentCore

/// Checks user name and password. An unknown user, a wrong and an empty password are the same.
struct DataStoreDecisionNode: RunnableNode {
    static let name = "DataStoreDecisionNode"
    let outcomes = ["true", "false"]

    init(_ settings: NodeSettings) {}

    func process(_ context: inout NodeContext) async throws -> NodeResult {
        let password = context.password
        context.password = nil
        var username = context.progress.subject.username
        if username == nil, context.progress.subject.userID != nil {
            username = try await context.claimedUser()?.username
        }
        guard let username, let password else { return .outcome("false") }
        let check = try await context.services.passwords.check(
            username: username, password: password, realm: context.realm, from: context.clientAddress)
        context.progress.decideAnew()
        switch check {
        case .right(let user):
            context.progress.subject.prove(user)
            return .outcome("true")
        case .wrong:
            return .outcome("false")
        case .locked:
            context.progress.failure = .locked
            return .outcome("false")
        }
    }
}

/// Whether the user may sign in at all.
struct AccountActiveDecisionNode: RunnableNode {
    static let name = "AccountActiveDecisionNode"
    let outcomes = ["true", "false"]

    init(_ settings: NodeSettings) {}

    func process(_ context: inout NodeContext) async throws -> NodeResult {
        .outcome(try await context.claimedUser()?.isActive == true ? "true" : "false")
    }
}

/// Counts how often the journey comes here and lets it try again a few times.
struct RetryLimitDecisionNode: RunnableNode {
    static let name = "RetryLimitDecisionNode"
    let outcomes = ["Retry", "Reject"]
    private let limit: Int

    init(_ settings: NodeSettings) {
        limit = settings.integer("retryLimit", default: 3, in: 1...20)
    }

    func process(_ context: inout NodeContext) async throws -> NodeResult {
        let key = "retries.\(context.progress.nodeID)"
        let count = context.progress.shared[key]?.integer ?? 0
        guard count < Int64(limit), context.progress.failure != .locked else { return .outcome("Reject") }
        context.progress.shared[key] = .integer(count + 1)
        return .outcome("Retry")
    }
}
