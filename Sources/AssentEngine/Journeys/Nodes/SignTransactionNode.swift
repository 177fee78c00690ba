import AssentCore

/// Has the user sign what is to be approved on an enrolled device, and waits for that. Outside of a transaction nothing
/// can be approved: it declines.
///
/// The journey's end uses the signed approval, in the database transaction that completes the policy's.
struct SignTransactionNode: RunnableNode {
    static let name = "SignTransactionNode"
    let outcomes = ["approve", "decline", "expired", "noDevice"]
    private let template: String
    private let message: String

    /// Seconds for which one request waits: a page less for a user who takes a minute.
    private static let wait = 10

    init(_ settings: NodeSettings) {
        template = settings.string("template")
        message = settings.text("message", default: "Confirm on your device.")
    }

    func process(_ context: inout NodeContext) async throws -> NodeResult {
        guard let approval = context.approval, let signing = context.services.signing[context.realm] else {
            return .outcome("decline")
        }
        guard context.answers != nil, let txn = context.progress.memory["txn"]?.string else {
            let asked = try await signing.questions.ask(approval, template: template, from: context.clientAddress)
            guard let question = asked else {
                context.progress.failure = .noDevice
                return .outcome("noDevice")
            }
            context.progress.memory["txn"] = .string(question.txn)
            context.progress.memory["number"] = question.number.map(JSONValue.string)
            context.progress.memory["until"] = .integer(question.expiresAt)
            return waiting(approval, context)
        }
        switch try await signing.questions.answer(to: txn, wait: Self.wait) {
        case .pending: return waiting(approval, context)
        case .approved:
            context.progress.isSigned = true
            return .outcome("approve")
        case .expired:
            context.progress.failure = .expired
            return .outcome("expired")
        case .denied, .reported, .canceled:
            context.progress.failure = .declined
            return .outcome("decline")
        case .failed:
            context.progress.failure = .failedOnDevice
            return .outcome("decline")
        }
    }

    /// The page asks again by itself.
    private func waiting(_ approval: PendingApproval, _ context: NodeContext) -> NodeResult {
        let number = context.progress.memory["number"]?.string
        let text = message + (number.map { "\nNumber: \($0)" } ?? "")
        // Number and time also apart from the text, for clients that draw them. AM sends neither.
        let polling = CustomCallback(
            CallbackKind.pollingWait.rawValue,
            outputs: JSONObject(omittingNil: [
                "waitTime": "1000", "message": .string(text), "number": number.map(JSONValue.string),
                "expiresAt": context.progress.memory["until"],
            ]))
        return .ask(approval.prompts + [.textOutput(text), .custom(polling)])
    }
}
