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
        default: return callback
        }
    }

    /// Whether an answer that the server has refused was given beforehand: it would be refused again.
    func isGiven(in step: JourneyStep) -> Bool {
        let asksForPassword = step[PasswordCallback.self] != nil || step[ValidatedCreatePasswordCallback.self] != nil
        return password != nil && asksForPassword
            || username != nil && step[ValidatedCreateUsernameCallback.self] != nil
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
