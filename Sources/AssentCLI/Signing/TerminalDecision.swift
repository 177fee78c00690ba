import Assent
import AssentSigning

/// Shows a transaction at the terminal, and asks for one of its statuses.
struct TerminalDecision {
    let console: Console
    var prompt = Prompt()

    /// Shows, asks, signs and sends.
    func decide(_ transaction: SigningTransaction) async throws -> SigningReceipt {
        let displayed = transaction.displayed
        say("")
        say("\(displayed.relyingParty) asks: \(displayed.title)")
        for text in [displayed.warning, displayed.text].compactMap(\.self) { say(text) }
        for place in [displayed.place, displayed.address].compactMap(\.self) { say("Asked from \(place)") }
        let width = displayed.fields.map(\.label.count).max() ?? 0
        for field in displayed.fields {
            say("  \(field.label)\(String(repeating: " ", count: width - field.label.count))  \(field.value)")
        }
        let statuses = transaction.allowedStatuses
        let status = statuses[try prompt.choice("Your answer", statuses.map(\.label), default: nil)]
        let number = status.needsNumber ? try prompt.line("The number that the page shows") : nil
        let reason = status.reason == .required ? try prompt.line("Why") : nil
        return try await transaction.setStatus(status.name, number: number, reason: reason)
    }

    private func say(_ text: String) { console.say(DisplayText.escapedForTerminal(text)) }
}
