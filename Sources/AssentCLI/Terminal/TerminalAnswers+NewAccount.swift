import AssentCore
import AssentJourney

/// What a journey asks that makes an account.
extension TerminalAnswers {
    private static let tries = 3

    /// A callback with what the user has typed; as it came where it is not about a new account.
    func ofNewAccount(_ callback: any JourneyCallback) throws -> any JourneyCallback {
        switch callback {
        case var name as ValidatedCreateUsernameCallback:
            name.name = try username ?? prompt.line(question(name.prompt, "User name"))
            return name
        case var secret as ValidatedCreatePasswordCallback:
            secret.set(try password ?? chosen(question(secret.prompt, "Password")))
            return secret
        case var text as StringAttributeInputCallback:
            text.value = try edited(text.value, question(text.prompt, name(of: text.attribute)))
            return text
        case var choice as BooleanAttributeInputCallback:
            let asked = question(choice.prompt, name(of: choice.attribute))
            choice.value = try prompt.choice(asked, ["Yes", "No"], default: choice.value ? 0 : 1) == 0
            return choice
        case var terms as TermsAndConditionsCallback:
            show(terms.terms)
            guard try prompt.choice("Do you accept these terms?", ["Yes", "No"], default: nil) == 0 else {
                throw CommandFailure("You did not accept the terms. Nothing of this page was sent.", status: .refused)
            }
            terms.isAccepted = true
            return terms
        case var reminder as KbaCreateCallback:
            try fill(&reminder)
            return reminder
        default: return callback
        }
    }

    /// Asks for a question that the user chooses, or has of their own, and for its answer.
    private func fill(_ reminder: inout KbaCreateCallback) throws {
        let proposed = reminder.questions
        var options = proposed.map(DisplayText.escapedForTerminal)
        if reminder.allowsOwnQuestion { options.append("A question of your own") }
        let index = try prompt.choice(question(reminder.prompt, "Security question"), options, default: nil)
        if proposed.indices.contains(index) {
            reminder.question = proposed[index]
        } else {
            reminder.question = try prompt.line("Your question")
        }
        reminder.answer = try prompt.line("Your answer")
    }

    /// A text that the server may have already: then an empty line keeps it.
    private func edited(_ known: String, _ question: String) throws -> String {
        guard !known.isEmpty else { return try prompt.line(question) }
        let typed = try prompt.line("\(question) [\(DisplayText.escapedForTerminal(known))]")
        return typed.isEmpty ? known : typed
    }

    private func name(of attribute: String) -> String {
        attribute.isEmpty ? "Answer" : DisplayText.escapedForTerminal(attribute)
    }

    /// Whether an answer that the server has refused was given beforehand: it would be refused again. Where the server
    /// says which answers break its rules, it is one of those: the user can type the others anew.
    func isGiven(in step: JourneyStep) -> Bool {
        let name = step[ValidatedCreateUsernameCallback.self]
        let chosen = step[ValidatedCreatePasswordCallback.self]
        if step.refusal?.failedPolicies.isEmpty == false {
            return username != nil && name?.failedPolicies.isEmpty == false
                || password != nil && chosen?.failedPolicies.isEmpty == false
        }
        return password != nil && (chosen != nil || step[PasswordCallback.self] != nil)
            || username != nil && name != nil
    }

    /// Has the user type a new password twice.
    private func chosen(_ question: String) throws -> Secret {
        for _ in 0..<Self.tries {
            let chosen = try prompt.secret(question)
            if try prompt.secret("The same again") == chosen { return chosen }
            console.warn("The two were not the same.")
        }
        throw CommandFailure("No password was chosen. Run the command again to go on.", status: .refused)
    }
}
