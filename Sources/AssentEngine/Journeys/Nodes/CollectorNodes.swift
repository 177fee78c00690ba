import AssentCore

/// Asks who the user is. Nothing is proved by that.
struct UsernameCollectorNode: RunnableNode {
    static let name = "UsernameCollectorNode"
    let outcomes = ["outcome"]
    private let prompt: String

    init(_ settings: NodeSettings) {
        prompt = settings.text("prompt", default: "User Name")
    }

    func process(_ context: inout NodeContext) async throws -> NodeResult {
        guard let answer = context.answers?.first else { return .ask([.name(prompt)]) }
        context.progress.subject.username = answer.text
        return .outcome("outcome")
    }
}

/// Asks for the password. The node that checks it must come before the next page: a password is never kept between two.
struct PasswordCollectorNode: RunnableNode {
    static let name = "PasswordCollectorNode"
    let outcomes = ["outcome"]
    private let prompt: String

    init(_ settings: NodeSettings) {
        prompt = settings.text("prompt", default: "Password")
    }

    func process(_ context: inout NodeContext) async throws -> NodeResult {
        guard let answer = context.answers?.first else { return .ask([.password(prompt)]) }
        context.password = Secret(answer.text)
        return .outcome("outcome")
    }
}

/// Lets the user choose; each choice is an outcome.
struct ChoiceCollectorNode: RunnableNode {
    static let name = "ChoiceCollectorNode"
    let outcomes: [String]
    private let prompt: String
    private let defaultIndex: Int

    init(_ settings: NodeSettings) {
        outcomes = settings.strings("choices")
        prompt = settings.text("prompt", default: "Choose")
        let preset = settings.optionalString("defaultChoice")
        defaultIndex = preset.flatMap(outcomes.firstIndex) ?? 0
        if outcomes.isEmpty { settings.refuse("choices", "must name at least one") }
        if Set(outcomes).count != outcomes.count { settings.refuse("choices", "names one of them twice") }
        if let preset, !outcomes.contains(preset) {
            settings.refuse("defaultChoice", "\(preset) is not one of the choices")
        }
    }

    func process(_ context: inout NodeContext) async throws -> NodeResult {
        guard let answer = context.answers?.first else {
            return .ask([.choice(prompt, choices: outcomes, default: defaultIndex)])
        }
        guard outcomes.indices.contains(answer.index) else {
            return .ask([.choice(prompt, choices: outcomes, default: defaultIndex)])
        }
        return .outcome(outcomes[answer.index])
    }
}

/// Tells something and asks yes or no.
struct MessageNode: RunnableNode {
    static let name = "MessageNode"
    let outcomes = ["true", "false"]
    private let message: String
    private let buttons: [String]

    init(_ settings: NodeSettings) {
        message = settings.text("message")
        buttons = [settings.text("messageYes", default: "Yes"), settings.text("messageNo", default: "No")]
    }

    func process(_ context: inout NodeContext) async throws -> NodeResult {
        guard let answer = context.answers?.last else {
            return .ask([.textOutput(message), .confirmation(buttons, default: 1)])
        }
        return .outcome(answer.index == 0 ? "true" : "false")
    }
}
