import AssentCore

/// Shows what is to be approved and asks for a yes or a no. Outside of a transaction nothing can be approved: it
/// declines.
struct TransactionApprovalNode: RunnableNode {
    static let name = "TransactionApprovalNode"
    let outcomes = ["approve", "decline"]
    private let buttons: [String]

    init(_ settings: NodeSettings) {
        buttons = [
            settings.text("approveText", default: "Approve"), settings.text("declineText", default: "Decline"),
        ]
    }

    func process(_ context: inout NodeContext) async throws -> NodeResult {
        guard let approval = context.approval else { return .outcome("decline") }
        guard let answer = context.answers?.last else {
            return .ask(approval.prompts + [.confirmation(buttons, default: 1)])
        }
        if answer.index == 0 { return .outcome("approve") }
        context.progress.failure = .declined
        return .outcome("decline")
    }
}

extension PendingApproval {
    /// What is bound, for the client, and what is approved, for the user.
    var prompts: [CallbackPrompt] { [.approval(self), .textOutput(text)] }

    private var text: String {
        let request = [method, resource].compactMap(\.self).joined(separator: " ")
        var lines = lines.map { "\($0.label): \($0.value)" }
        // A query that is bound is approved as well, and no line of the body says it.
        if display.isEmpty || resource.contains("?") { lines.append(request) }
        return lines.joined(separator: "\n")
    }
}
