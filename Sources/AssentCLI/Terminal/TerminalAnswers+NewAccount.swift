import AssentCore
import AssentJourney
import Foundation

/// What a journey asks that makes an account, or may lead to one at another provider.
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
        case var number as NumberAttributeInputCallback:
            try fill(&number)
            return number
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
        case var consent as ConsentMappingCallback:
            try fill(&consent)
            return consent
        case var reminder as KbaCreateCallback:
            try fill(&reminder)
            return reminder
        case var selection as SelectIdPCallback:
            selection.selected = try local(of: selection.providers)
            return selection
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

    /// Asks for a number. An empty line keeps the one that the server has, or leaves out one that need not be there.
    private func fill(_ number: inout NumberAttributeInputCallback) throws {
        let asked = question(number.prompt, name(of: number.attribute))
        let known = number.value == nil ? nil : number.fields.output("value")
        let text = known?.number?.description ?? known?.string ?? ""
        for _ in 0..<Self.tries {
            let typed = try edited(text, asked).trimmingCharacters(in: .whitespaces)
            if typed == text, !typed.isEmpty || !number.isRequired { return }
            if let value = Double(typed), value.isFinite {
                number.value = value
                return
            }
            console.warn("Type a number, for example 12 or 1.5.")
        }
        throw CommandFailure("No number was typed. Run the command again to go on.", status: .refused)
    }

    /// Asks whether something may be passed on.
    private func fill(_ consent: inout ConsentMappingCallback) throws {
        if !consent.message.isEmpty { show(consent.message) }
        if !consent.attributes.isEmpty {
            show("It is about: " + consent.attributes.joined(separator: ", "), indent: "  ")
        }
        let asked = question(consent.prompt, "Passing on what is known of you")
        let isAccepted = try prompt.choice("\(asked): do you agree?", ["Yes", "No"], default: nil) == 0
        guard isAccepted || !consent.isRequired else {
            throw CommandFailure("You did not agree. Nothing of this page was sent.", status: .refused)
        }
        consent.isAccepted = isAccepted
    }

    /// The server itself, of those who can sign the user in: what another one asks, only a browser can show.
    private func local(of providers: [SelectIdPCallback.Provider]) throws -> String {
        if let local = providers.first(where: \.isLocal) { return local.name }
        let others = providers.map(\.title).joined(separator: ", ")
        throw CommandFailure(
            "The journey leads to other providers (\(others)), which need a browser. Nothing of this page was sent. "
                + "Try 'assent login --browser'.",
            status: .refused)
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
