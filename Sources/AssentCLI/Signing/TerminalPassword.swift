import Assent
import AssentSigning

/// Asks at the terminal for the PIN or password of a device's keys.
struct TerminalPassword: Sendable {
    let console: Console
    var prompt = Prompt()

    /// Whether what opens the keys that sign is also what the user signs in with.
    var signsIn = false

    /// How often it asks before it gives up.
    private static let tries = 5

    private static let question = "Your PIN or password"

    /// What the keys of a slot are for: an enrolment may ask for two passwords, one after the other.
    private func use(_ slot: PasswordSlot) -> String {
        switch slot {
        case .session: "for reading transactions"
        case .signing: signsIn ? "for signing in and approving" : "for signing"
        case .otp: "for one-time codes"
        }
    }

    /// Has the user choose one, and type it twice; or type the one that they chose before an interruption.
    func enrolling(_ request: SigningPasswordRequest) throws -> Secret {
        let issuer = DisplayText.escapedForTerminal(request.issuerName)
        let use = use(request.slot)
        guard request.isNew else {
            return try prompt.secret("The PIN or password that you chose for \(issuer), \(use)")
        }
        return try choosing("\(use), for \(issuer)", by: request.rules)
    }

    /// Asks for the current one, or has the user choose another where the server's rules or a reset want that.
    func renewing(_ request: SigningPasswordRequest) throws -> Secret {
        let use = use(request.slot)
        guard request.isNew else { return try prompt.secret("\(Self.question) \(use)") }
        return try choosing("\(use), for \(DisplayText.escapedForTerminal(request.issuerName))", by: request.rules)
    }

    /// Asks for the current one and for another, and sets that.
    func changing(_ password: SigningPassword, issuer: String) async throws {
        let issuer = DisplayText.escapedForTerminal(issuer)
        try await retrying {
            let old = try prompt.secret(Self.question)
            let new = try choosing("\(use(password.slot)), for \(issuer)", by: password.rules)
            try await password.change(from: old, to: new)
        }
    }

    private func choosing(_ purpose: String, by rules: PasswordRules) throws -> Secret {
        for _ in 0..<Self.tries {
            let chosen = try prompt.secret("Choose a PIN or password \(purpose)")
            if let rule = rules.broken(by: chosen) {
                console.warn(rule.sentence)
                continue
            }
            if try prompt.secret("The same again") == chosen { return chosen }
            console.warn("The two were not the same.")
        }
        throw CommandFailure("No PIN or password was chosen. Run the command again to go on.", status: .refused)
    }

    /// Runs what a key signs, with the password that the key needs; asks again after a wrong one.
    func signing<Result>(
        with key: SigningContainer.Key?, _ body: (Secret?) async throws -> Result
    ) async throws -> Result {
        guard key?.password != nil else { return try await body(nil) }
        return try await retrying { try await body(try prompt.secret(Self.question)) }
    }

    /// Runs what asks for the current password, and once more after a wrong one, unless the next try must wait.
    func retrying<Result>(_ body: () async throws -> Result) async throws -> Result {
        for _ in 1..<Self.tries {
            do {
                return try await body()
            } catch let error as SigningError where error.code == .wrongPassword && error.retryAfter == nil {
                let left = error.remaining.map { " Tries left: \($0)." } ?? ""
                console.warn("\(DisplayText.escapedForTerminal(error.detail))\(left)")
            }
        }
        return try await body()
    }
}

extension SigningContainer {
    /// Whether a PIN or password of it signs the user in ('assent request --pin').
    var signsIn: Bool { keys(usage: .auth).contains { $0.password != nil } }
}
