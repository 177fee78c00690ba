import Assent
import AssentSigning

/// Asks at the terminal for the PIN or password of a device's keys.
struct TerminalPassword: Sendable {
    let console: Console
    var prompt = Prompt()

    /// How often it asks before it gives up.
    private static let tries = 5

    private static let question = "Your PIN or password"

    /// Has the user choose one, and type it twice; or type the one that they chose before an interruption.
    func enrolling(_ request: SigningPasswordRequest) throws -> Secret {
        let issuer = DisplayText.escapedForTerminal(request.issuerName)
        guard request.isNew else { return try prompt.secret("The PIN or password that you chose for \(issuer)") }
        return try choosing(for: issuer, by: request.rules)
    }

    /// Asks for the current one, or has the user choose another where the server's rules or a reset want that.
    func renewing(_ request: SigningPasswordRequest) throws -> Secret {
        guard request.isNew else { return try prompt.secret(Self.question) }
        return try choosing(for: DisplayText.escapedForTerminal(request.issuerName), by: request.rules)
    }

    /// Asks for the current one and for another, and sets that.
    func changing(_ password: SigningPassword, issuer: String) async throws {
        let issuer = DisplayText.escapedForTerminal(issuer)
        try await retrying {
            let old = try prompt.secret(Self.question)
            let new = try choosing(for: issuer, by: password.rules)
            do {
                try await password.change(from: old, to: new)
            } catch let error as SigningError where error.code == .invalidPassword {
                if let rule = error.rule { console.warn(rule.sentence) }
                throw error
            }
        }
    }

    private func choosing(for issuer: String, by rules: SigningPasswordRules) throws -> Secret {
        for _ in 0..<Self.tries {
            let chosen = try prompt.secret("Choose a PIN or password for \(issuer)")
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

    /// Runs what asks for the current password, and once more after a wrong one.
    func retrying<Result>(_ body: () async throws -> Result) async throws -> Result {
        for _ in 1..<Self.tries {
            do {
                return try await body()
            } catch let error as SigningError where error.code == .wrongPassword {
                let left = error.remaining.map { " Tries left: \($0)." } ?? ""
                console.warn("\(DisplayText.escapedForTerminal(error.detail))\(left)")
            }
        }
        return try await body()
    }
}

extension PasswordRule {
    /// What is wrong with a password that breaks the rule.
    fileprivate var sentence: String {
        switch self {
        case .unusable: "It must have 1 to 128 bytes of text."
        case .minimumLength(let count): "It must have at least \(count) characters."
        case .maximumLength(let count): "It must have at most \(count) characters."
        case .minimum(let kind, let count): "It must have at least \(count) of these: \(kind.words)."
        case .maximum(let kind, let count): "It must have at most \(count) of these: \(kind.words)."
        case .sequence: "It is a sequence or a repetition, which others would guess."
        case .common: "It is one of the most common ones, or a date, which others would guess."
        case .history: "It was used before."
        case .other: "It is the password of the other keys."
        }
    }
}

extension PasswordCharacters {
    fileprivate var words: String {
        switch self {
        case .upper: "capital letters"
        case .lower: "small letters"
        case .alpha: "letters"
        case .numeric: "digits"
        case .nonAlpha: "characters that are no letters"
        }
    }
}
