import Assent
import AssentSigning
import Foundation

/// Shows a transaction at the terminal, and asks for one of its statuses.
struct TerminalDecision {
    let console: Console
    var prompt = Prompt()

    /// Shows a transaction, and asks for one of its statuses.
    func choose(_ transaction: SigningTransaction) throws -> SigningTransaction.Status {
        show(transaction)
        console.say(Self.open(for: transaction.remaining()))
        let statuses = transaction.allowedStatuses
        return statuses[try prompt.choice("Your answer", statuses.map(\.label), default: nil)]
    }

    /// Signs a status and sends it. Asks for what it needs and is not given.
    func sign(
        _ transaction: SigningTransaction, _ status: SigningTransaction.Status, number: String? = nil,
        reason: String? = nil
    ) async throws -> SigningReceipt {
        var number = number
        if number == nil, status.needsNumber { number = try prompt.line("The number that the page shows") }
        var reason = reason
        if reason == nil, status.reason == .required { reason = try prompt.line("Why") }
        let (digits, why) = (number, reason)
        return try await TerminalPassword(console: console, prompt: prompt).signing(
            with: transaction.signingKey(for: status.name)
        ) {
            try await transaction.setStatus(status.name, password: $0, number: digits, reason: why)
        }
    }

    /// Shows everything that a decision covers.
    func show(_ transaction: SigningTransaction) {
        let displayed = transaction.displayed
        say("")
        console.say(console.styled(escaped("\(displayed.relyingParty) asks: \(displayed.title)"), .bold))
        if let warning = displayed.warning { console.say(console.styled(escaped(warning), .yellow)) }
        if let text = displayed.text { console.say(Self.sentence(text, displayed.fields.map(\.value))) }
        for place in [displayed.place, displayed.address].compactMap(\.self) { say("Asked from \(place)") }
        for line in Self.lines(displayed.fields.map { ($0.label, $0.value) }) { console.say(line) }
    }

    /// How long a transaction can still be answered.
    static func open(for left: Duration) -> String {
        let seconds = left.components.seconds
        return "Open for \(seconds) more \(seconds == 1 ? "second" : "seconds")."
    }

    /// The fields, one on a line: a column of labels, and one of values.
    static func lines(_ fields: [(label: String, value: String)]) -> [String] {
        let width = fields.map(\.label.count).max() ?? 0
        return fields.map { label, value in
            let label = DisplayText.escapedForTerminal(label) + String(repeating: " ", count: width - label.count)
            return "  \(label)  \(DisplayText.setOff(DisplayText.escapedForTerminal(value)))"
        }
    }

    /// A sentence in which those of these values that are written from right to left are set off: they would draw the
    /// words beside them along.
    static func sentence(_ text: String, _ values: [String]) -> String {
        Set(values).map(DisplayText.escapedForTerminal).reduce(DisplayText.escapedForTerminal(text)) { text, value in
            value.isEmpty ? text : text.replacing(value, with: DisplayText.setOff(value))
        }
    }

    private func escaped(_ text: String) -> String { DisplayText.escapedForTerminal(text) }

    private func say(_ text: String) { console.say(escaped(text)) }
}

extension SigningTransaction {
    /// For a script: what a person is shown, and what may be answered.
    var json: JSONValue {
        func text(_ value: String?) -> JSONValue? { value.map { .string($0) } }
        let fields = displayed.fields.map { field -> JSONValue in
            ["label": .string(field.label), "value": .string(field.value)]
        }
        let statuses = allowedStatuses.map { status -> JSONValue in
            [
                "name": .string(status.name), "label": .string(status.label),
                "effect": .string(status.effect.rawValue), "reason": .string(status.reason.rawValue),
                "number": .bool(status.needsNumber),
            ]
        }
        return JSONValue(omittingNil: [
            "transaction": .string(id), "container": .string(container.id), "issuer": .string(container.issuer),
            "user": .string(container.userName), "kind": .string(kind.rawValue),
            "from": .string(displayed.relyingParty), "title": .string(displayed.title),
            "text": text(displayed.text), "warning": text(displayed.warning), "place": text(displayed.place),
            "address": text(displayed.address), "fields": .array(fields), "statuses": .array(statuses),
            "cancelable": .bool(isCancelable), "expires": .integer(Int64(expiresAt.timeIntervalSince1970)),
            "remaining": .integer(remaining().components.seconds),
        ])
    }
}

extension SigningReceipt {
    /// For a script.
    var json: JSONValue {
        [
            "transaction": .string(transactionID), "status": .string(status), "effect": .string(effect.rawValue),
            "decided": .integer(Int64(decidedAt.timeIntervalSince1970)), "receipt": .string(compact),
        ]
    }

    /// For a person.
    var line: String {
        let done =
            switch effect {
            case .approve: "Approved"
            case .deny: "Declined"
            case .report: "Declined and reported"
            case .cancel: "Canceled"
            }
        return DisplayText.escapedForTerminal("\(done): \(status), transaction \(transactionID).")
    }

    func show(on console: Console) { console.report(json, line) }
}

extension Console {
    /// Asks to type the digits of an enrolment or a reset into the page that shows the code.
    func showDigits(_ digits: String, user: String, issuer: String) {
        let (user, issuer) = (DisplayText.escapedForTerminal(user), DisplayText.escapedForTerminal(issuer))
        say("Type these digits where the code was shown, if you are \(user) and trust \(issuer):")
        say("")
        say("    " + styled(digits, .bold))
    }
}
