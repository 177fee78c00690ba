import AssentCore

/// Asks for a code of the user's authenticator and accepts each code once.
///
/// AM asks with a NameCallback and a ConfirmationCallback; this asks with one TextInputCallback, which says what it is.
struct OathTokenVerifierNode: RunnableNode {
    static let name = "OathTokenVerifierNode"
    let outcomes = ["successOutcome", "failureOutcome", "notRegisteredOutcome"]
    private let prompt: String

    init(_ settings: NodeSettings) {
        prompt = settings.text("prompt", default: "One Time Password")
    }

    func process(_ context: inout NodeContext) async throws -> NodeResult {
        guard let answer = context.answers?.last else {
            // Somebody who has not proved to be that user is always asked: else the page would say which users exist.
            if context.progress.subject.userID != nil, let user = try await context.claimedUser(),
                context.knows(user), try await !context.services.oneTimePasswords.isEnrolled(userID: user.id)
            {
                return .outcome("notRegisteredOutcome")
            }
            return .ask([.textInput(prompt)])
        }
        guard let user = try await context.claimedUser() else {
            // Asked for in any case: an unknown name must cost the same.
            _ = try await context.services.oneTimePasswords.isEnrolled(userID: "")
            return try await context.resultOfNobodysCode(in: Self.name, isKnown: false)
        }
        let check = try await context.services.oneTimePasswords.verify(
            answer.text, user: user, transactionID: context.approval?.id, from: context.clientAddress)
        return try await context.result(of: check, for: user, in: Self.name)
    }
}

extension NodeContext {
    /// Where a checked one-time code of a user leads, in each `node` that asks for one.
    mutating func result(
        of check: OneTimePasswords.Check, for user: User, in node: String
    ) async throws -> NodeResult {
        if check == .notEnrolled, !knows(user) {
            return try await resultOfNobodysCode(in: node, isKnown: true)
        }
        progress.decideAnew()
        switch check {
        case .accepted:
            progress.subject.prove(user)
            return .outcome("successOutcome")
        case .wrong, .replayed:
            return .outcome("failureOutcome")
        case .locked:
            progress.failure = .locked
            return .outcome("failureOutcome")
        case .notEnrolled:
            return .outcome("notRegisteredOutcome")
        }
    }

    /// Where a code leads that is nobody's, since the name is of no user, or of one who has no key: where a wrong one
    /// does, and there is a lock after as many. Else somebody who has not proved to be that user would learn who
    /// exists, and who has a key.
    mutating func resultOfNobodysCode(in node: String, isKnown: Bool) async throws -> NodeResult {
        progress.decideAnew()
        guard let username = progress.subject.username else { return .outcome("failureOutcome") }
        let isLocked = try await services.oneTimePasswords.refuse(
            username: username, realm: realm, counting: node, isKnown: isKnown, from: clientAddress)
        if isLocked { progress.failure = .locked }
        return .outcome("failureOutcome")
    }
}
