import Assent
import Foundation

/// Shows what is to be approved, and asks.
struct TerminalApproval: Sendable {
    private let console: Console
    private let answers: TerminalAnswers

    /// What was shown: a step that waits comes again every few seconds.
    private let shown = Locked<[DisplayField]?>(nil)

    init(console: Console, prompt: Prompt = Prompt()) {
        self.console = console
        answers = TerminalAnswers(console: console, prompt: prompt)
    }

    /// What is shown of a field.
    static func line(_ field: DisplayField, _ console: Console) -> String {
        "  \(DisplayText.escapedForTerminal(field.label)): "
            + console.styled(DisplayText.setOff(DisplayText.escapedForTerminal(field.value)), .bold)
    }

    /// Answers a step of an approval.
    func answer(_ approval: inout Approval) throws -> StepAction {
        let isKnown = approval.waiting != nil && shown.withLock { $0 } == approval.display
        if approval.isFirstStep || (approval.step[MetadataCallback.self] != nil && !isKnown) {
            shown.withLock { $0 = approval.display }
            console.say(console.styled("You are asked to approve:", .bold))
            for field in approval.display { console.say(Self.line(field, console)) }
            console.say("  \(approval.method) \(DisplayText.escapedForTerminal(approval.url))")
            if case .notStated = approval.binding {
                console.say(console.styled("  The server does not say that it is for this request alone.", .yellow))
            }
        }
        var step = approval.step
        // What a transaction's page says in its own text is what the lines above say, checked against the request.
        let action = try answers.answer(&step, showingTexts: approval.display.isEmpty)
        approval.step = step
        // The first button approves; another button declines.
        if let confirmation = step[ConfirmationCallback.self], let chosen = confirmation.selectedValue,
            chosen != confirmation.options.first?.value
        {
            return .decline
        }
        return action
    }
}
