import AssentCore
import AssentJourney

/// Answers a journey's steps by asking at the terminal.
struct TerminalAnswers: Sendable {
    let console: Console
    var prompt = Prompt()

    /// The user name, when it was given beforehand.
    var username: String?

    /// The password, when it came from a file or a descriptor.
    var password: Secret?

    /// What the step that waits has said: it comes again every few seconds.
    private let told = Locked<JourneyWait?>(nil)

    init(console: Console, prompt: Prompt = Prompt()) {
        self.console = console
        self.prompt = prompt
    }

    /// Answers everything that a step asks.
    ///
    /// - Throws: ``CommandFailure`` when a password from a file was refused: it would be refused again.
    func answer(_ step: inout JourneyStep, showingTexts: Bool = true) throws -> StepAction {
        try noteRefusal(step)
        let isPolling = step.waiting != nil
        let isNew = isPolling ? isNew(step.waiting) : true
        if isNew, let header = step.header {
            console.say(console.styled(DisplayText.escapedForTerminal(header), .bold))
        }
        if isNew, let text = step.description { show(text) }
        step.callbacks = try step.callbacks.map { callback in
            switch callback {
            case var name as NameCallback:
                name.name = try username ?? prompt.line(question(name.prompt, "User name"))
                return name
            case var secret as PasswordCallback:
                secret.password = try (password ?? prompt.secret(question(secret.prompt, "Password"))).reveal()
                return secret
            case var input as TextInputCallback:
                input.text = try prompt.line(question(input.prompt, "Answer"))
                return input
            case var choice as ChoiceCallback:
                choice.selectedIndex = try prompt.choice(
                    question(choice.prompt, "Choose"), choice.choices.map(DisplayText.escapedForTerminal),
                    default: choice.defaultChoice)
                return choice
            case var confirmation as ConfirmationCallback where !isPolling:
                let options = confirmation.options
                guard !options.isEmpty else { return confirmation }
                let index = try prompt.choice(
                    "Your choice", options.map { DisplayText.escapedForTerminal($0.title) }, default: nil)
                confirmation.selectedValue = options[index].value
                return confirmation
            case let text as TextOutputCallback where text.kind != .script && showingTexts:
                // What a step that waits says, it says in both callbacks.
                if isNew, text.message != step.waiting?.text { show(text.message, indent: "  ") }
                return text
            case let waiting as PollingWaitCallback:
                if isNew, let text = step.waiting?.text { show(text) }
                return waiting
            case var unknown as UnknownCallback
            where !unknown.prompt.isEmpty && unknown.fields.inputNames.count == 1
                && unknown.fields.input(at: 0)?.string != nil:
                // A text of a kind that is not known here: it may be a secret.
                unknown.answer(.text(try prompt.secret(question(unknown.prompt, "Answer"))))
                return unknown
            default: return try ofNewAccount(callback)
            }
        }
        return .next
    }

    private func isNew(_ waiting: JourneyWait?) -> Bool {
        told.withLock { told in
            defer { told = waiting }
            return told != waiting
        }
    }

    /// A server's text, each of its lines as one.
    func show(_ text: String, indent: String = "") {
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            console.say(indent + DisplayText.escapedForTerminal(String(line)))
        }
    }

    /// Says so when the server asks the same again: it did not accept what was typed. Someone who pipes the
    /// answers in finds the reason there, too.
    private func noteRefusal(_ step: JourneyStep) throws {
        guard let refusal = step.refusal else { return }
        let reasons = refusal.messages + refusal.failedPolicies.map(Self.unmet)
        if isGiven(in: step) {
            // What a command ends with is escaped where it is shown.
            let words = reasons.map { " " + $0 }.joined()
            throw CommandFailure("The server did not accept the user name or the password.\(words)", status: .refused)
        }
        let words = reasons.map { " " + DisplayText.escapedForTerminal($0) }.joined()
        let advice =
            step[TextInputCallback.self] == nil
            ? "Try again." : "Try again. A code can be used once: if you have used this one, wait for the next."
        console.say(console.styled("That was not accepted.\(words) \(advice)", .yellow))
    }

    /// A requirement of AM's for a new name or password, which comes as a name for programs.
    static func unmet(_ policy: String) -> String {
        switch policy {
        case "REQUIRED": "It must not be empty."
        case "UNIQUE": "Somebody else has it."
        case "MIN_LENGTH": "It is too short."
        case "MAX_LENGTH": "It is too long."
        case "LENGTH_BASED": "It is too short or too long."
        case "AT_LEAST_X_CAPITAL_LETTERS": "It needs more capital letters."
        case "AT_LEAST_X_NUMBERS": "It needs more digits."
        case "CANNOT_CONTAIN_OTHERS": "It must not contain other things that are known of you."
        case "CANNOT_CONTAIN_CHARACTERS": "It contains a character that is not allowed."
        case "CANNOT_CONTAIN_DUPLICATES": "It repeats a character too often."
        case "VALID_EMAIL_ADDRESS_FORMAT": "It is not an email address."
        case "MUST_CONTAIN_LOWERCASE_CHARACTERS": "It needs small letters."
        case "MUST_CONTAIN_SPECIAL_CHARACTERS": "It needs a special character."
        case "IS_NEW": "It was used before."
        case "MATCH_REGEXP": "It does not have the form that is asked for."
        default: "It does not meet the requirement \(policy)."
        }
    }

    func question(_ asked: String, _ fallback: String) -> String {
        asked.isEmpty ? fallback : DisplayText.escapedForTerminal(asked)
    }
}
