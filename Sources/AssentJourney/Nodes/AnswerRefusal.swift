import AssentCore

/// That the server did not accept what was typed into the step before, and why, as far as it says.
///
/// ```swift
/// if let refusal = step.refusal { await screen.show(refusal.messages.first ?? "That was wrong.") }
/// ```
///
/// AM has no word for this: it asks the same again. So that is what makes a refusal: a step with the same questions as
/// the one that was answered.
public struct AnswerRefusal: Hashable, Sendable {
    /// The server's words, in their order, for example "Wrong password"; empty when it only asks again. Escape them
    /// before they reach a terminal.
    public let messages: [String]

    /// What a new name or password does not meet, by AM's names, for example `MIN_LENGTH` or `UNIQUE`.
    public let failedPolicies: [String]

    /// Compares a step that was answered with the one that came for it; `nil` when that one asks something else, or
    /// when nothing was typed.
    init?(of sent: JourneyStep, by next: JourneyStep) {
        guard sent.callbacks.contains(where: \.isTyped), sent.asksTheSame(as: next) else { return nil }
        let shown = Set(sent.messages)
        messages = next.messages.filter { !shown.contains($0) } + next.complaints.filter(shown.contains)
        failedPolicies = next.callbacks.flatMap(\.fields.failedPolicies)
    }
}

extension JourneyStep {
    /// Whether another step has the same questions, by type and prompt. Texts beside them do not count.
    func asksTheSame(as other: JourneyStep) -> Bool {
        let (one, two) = (questions, other.questions)
        return one.count == two.count && zip(one, two).allSatisfy { $0 == $1 }
    }

    private var questions: [(type: String, prompt: String)] {
        callbacks.filter { !$0.fields.inputNames.isEmpty }.map { ($0.fields.type, $0.prompt) }
    }

    /// What the page says to people.
    fileprivate var messages: [String] {
        let texts = callbacks.compactMap { $0 as? TextOutputCallback }.filter { $0.kind != .script }.map(\.message)
        return ([description].compactMap(\.self) + texts).filter { !$0.isEmpty }
    }

    /// The texts that say that something is wrong, also those that the page had before.
    fileprivate var complaints: [String] {
        callbacks.compactMap { $0 as? TextOutputCallback }.filter { [.error, .warning].contains($0.kind) }
            .map(\.message)
    }
}

extension JourneyCallback {
    /// Whether it has an answer that was typed.
    var isTyped: Bool {
        answers.contains { if case .text = $0 { true } else if case .decimal = $0 { true } else { false } }
    }
}
