import AssentCore

/// Asks for a one-time code of one of the user's signing devices, and accepts each code once.
struct DeviceCodeVerifierNode: RunnableNode {
    static let name = "DeviceCodeVerifierNode"
    let outcomes = ["successOutcome", "failureOutcome", "notRegisteredOutcome"]
    private let label: String
    private let prompt: String

    init(_ settings: NodeSettings) {
        label = settings.string("key")
        prompt = settings.text("prompt", default: "One Time Password")
    }

    func process(_ context: inout NodeContext) async throws -> NodeResult {
        guard let signing = context.services.signing[context.realm] else { return .outcome("notRegisteredOutcome") }
        guard let answer = context.answers?.last else {
            // Somebody who has not proved to be that user is always asked: else the page would say who has a device.
            if context.progress.subject.userID != nil, let user = try await context.claimedUser(),
                context.knows(user), try await !signing.codes.hasKey(label, user: user.id)
            {
                return .outcome("notRegisteredOutcome")
            }
            return .ask([.textInput(prompt)])
        }
        guard let user = try await context.claimedUser() else {
            // Asked for in any case: an unknown name must cost the same.
            _ = try await signing.codes.hasKey(label, user: "")
            return try await context.resultOfNobodysCode(in: Self.name, isKnown: false)
        }
        let check = try await signing.codes.verify(answer.text, label: label, user: user)
        return try await context.result(of: check, for: user, in: Self.name)
    }
}
