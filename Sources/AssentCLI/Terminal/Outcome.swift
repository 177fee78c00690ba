import ArgumentParser
import Assent
import AssentConfiguration

/// How a command ended: what a person reads, and the exit status.
struct Outcome: Equatable {
    /// The exit statuses that mean something to scripts.
    enum Status: Int32 {
        /// It failed.
        case failed = 1
        /// The server refused, or the user declined.
        case refused = 2
        /// Nobody knows whether the request had an effect.
        case unknown = 3
        /// The configuration is wrong (`EX_CONFIG` of sysexits.h).
        case configuration = 78
    }

    let status: Status

    /// What happened and what to do, a line for each; escaped for the terminal.
    let lines: [String]

    /// Runs a command's work and turns its errors into a message and an exit status.
    ///
    /// - Parameters:
    ///   - console: where the command speaks.
    ///   - reportsErrors: whether a script that asked for JSON gets the error as JSON, too, with what `--ask` takes
    ///     where that is known. Not where standard output is another program's.
    ///   - work: what the command does.
    /// - Throws: `ExitCode` with the status, and every error that is not about this program's work, such as wrong
    ///   usage.
    static func run(_ console: Console, reportsErrors: Bool = true, _ work: () async throws -> Void) async throws {
        func end(_ outcome: Outcome, _ code: String, _ detail: String, about pending: PendingRequest? = nil) throws {
            if reportsErrors, console.json {
                var told: JSONObject = ["error": .string(code), "detail": .string(detail)]
                told["ask"] = pending.map { .string($0.argument) }
                console.emit(.object(told))
            }
            try outcome.end(console)
        }
        do {
            try await work()
            try console.finish()
        } catch let error as any AssentError {
            let detail = [error.detail, error.advice].compactMap(\.self).joined(separator: " ")
            let pending = (error as? ResourceError)?.pending ?? (error as? AuthorizationError)?.pending
            try end(Outcome(error), error.code.rawValue, detail, about: pending)
        } catch let error as ConfigurationError {
            try end(Outcome(.configuration, "assent: \(error)"), "configuration", "\(error)")
        } catch let error as Prompt.NoTerminal {
            try end(Outcome(.failed, "\(error)"), "noTerminal", "\(error)")
        } catch let error as CommandFailure {
            try end(Outcome(error.status, "\(error)"), "\(error.status)", "\(error)")
        }
    }

    private func end(_ console: Console) throws {
        for line in lines { console.warn(line) }
        throw ExitCode(status.rawValue)
    }

    private init(_ status: Status, _ lines: String...) { self.init(status: status, lines: lines) }

    private init(status: Status, lines: [String]) {
        self.status = status
        self.lines = lines.map(DisplayText.escapedForTerminal)
    }

    /// A server's own words, which say more to its operator than to its users.
    private static func quote(_ message: String) -> [String] {
        message.isEmpty ? [] : ["Its own words: \(message)"]
    }

    /// The outcome of a command that failed with this error.
    init(_ error: any AssentError) {
        let words = error.words
        switch error {
        case let error as JourneyError where error.code == .sessionTimedOut:
            self.init(.refused, "The sign-in took too long and has ended. Run the command again. [\(error.code)]")
        case let error as JourneyError where error.code == .outcomeUnknown:
            self.init(.unknown, "The outcome is unknown: \(words)")
        case let error as JourneyError:
            self.init(status: .refused, lines: ["The server refused: \(words)"] + Self.quote(error.message))
        case let error as JourneyFailure where error.code == .declined: self.init(.refused, "You declined.")
        case is TrustFileError: self.init(.configuration, words)
        case is JourneyFailure: self.init(.failed, "The journey did not end: \(words)")
        case let error as AuthorizationError where error.code == .outcomeUnknown:
            self.init(.unknown, "The outcome is unknown: \(words)", Self.askInstead(about: error.pending))
        case let error as AuthorizationError: self.init(Self.refusals.contains(error.code) ? .refused : .failed, words)
        case let error as TokenError where error.code == .signInNeeded:
            self.init(.failed, Self.signInFirst(error))
        case let error as TokenError where [.authorizationRefused, .registrationRefused].contains(error.code):
            self.init(.refused, "The server refused: \(words)")
        case let error as TokenError where error.code == .registrationUnknown:
            self.init(.unknown, "The outcome is unknown: \(words)")
        case let error as ResourceError: self.init(error, words)
        case let error as SigningError where error.code.endsTransaction: self.init(.refused, words)
        case let error as SigningError where Self.containerAdvice[error.code] != nil:
            self.init(.failed, error.words(advising: Self.containerAdvice[error.code]))
        case let error as NIOTransportError where error.code == .noRedirect:
            self.init(.failed, "Nobody signed in: \(words)")
        case let error as HTTPTransportError: self.init(error.mayHaveHadEffect ? .unknown : .failed, words)
        default: self.init(.failed, words)
        }
    }

    /// The outcome of a call to a resource that was not answered.
    private init(_ error: ResourceError, _ words: String) {
        switch error.code {
        case .outcomeUnknown:
            self.init(.unknown, "The outcome is unknown: \(words)", Self.askInstead(about: error.pending))
        case .userNotAuthenticated: self.init(.failed, Self.signInFirst(error))
        case .deviceNotAuthenticated, .deviceDeregistered:
            self.init(.failed, "Register this installation first: assent register. \(words)")
        case .deviceRegistrationFailure, .scopeRefused, .invalidPin: self.init(.refused, "The server refused: \(words)")
        case .actionCancelled, .approvalNeeded: self.init(.refused, words)
        default: self.init(error.transportError?.mayHaveHadEffect == true ? .unknown : .failed, words)
        }
    }

    /// What to type where nobody knows what became of a request. The transaction's id is the server's word.
    private static func askInstead(about pending: PendingRequest?) -> String {
        let id = pending.map { ShellWord.quoted($0.argument) } ?? "<id>"
        return "Do not repeat it. Run the same command again with --ask \(id)"
    }

    /// Asks for a sign-in, and says why. The error's own advice is left out if it only asks for a sign-in again.
    static func signInFirst(_ error: any AssentError) -> String {
        let own = error.suggestion == TokenError(.signInNeeded, "").suggestion ? nil : error.suggestion
        return "Sign in first: assent login. \(error.words(advising: own))"
    }

    /// What to type where the SDK tells an app to ask for the container's status.
    private static let containerAdvice: [SigningError.Code: String] = [
        .containerBlocked: "Ask an administrator of the server to unblock it.",
        .containerRevoked: "Remove it here with 'assent device remove', and enrol again with 'assent device enroll'.",
        .containerSuspect:
            "Sign in, make the code of a reset with 'assent device invite --container', and give that to "
            + "'assent device renew'.",
    ]

    private static let refusals: Set<AuthorizationError.Code> = [
        .declined, .refused, .expired, .strongerSignInNeeded, .approvalForAnotherRequest, .untrustedAdvice,
    ]
}

extension AssentError {
    /// What happened, what to do, and at the end the code, by which a person can search. Never the code alone.
    var words: String { words(advising: advice) }

    /// What to do about it. Pins that an app has in its code are in a file here.
    fileprivate var advice: String? {
        guard transportFailure?.code == .notPinned else { return suggestion }
        return "Write the host under pins in the client's file (client.yaml) with two keys, the server's and its "
            + "issuer's: pins: {<host>: [sha256/…, sha256/…]}. With a trust file, its next version must name the host."
    }

    /// Why there was no reply.
    private var transportFailure: HTTPTransportError? {
        switch self {
        case let error as HTTPTransportError: error
        case let error as JourneyFailure: error.transportError
        case let error as TokenError: error.transportError
        case let error as AuthorizationError: error.transportError
        case let error as ResourceError: error.transportError
        default: nil
        }
    }

    /// The same with `advice` in the place of the error's own; `nil` leaves it out.
    func words(advising advice: String?) -> String {
        var words = [Self.sentence(detail.isEmpty ? "It failed without further explanation" : detail)]
        words += notes.map { "(\($0))" }
        if let advice { words.append(Self.sentence(advice)) }
        return (words + ["[\(code)]"]).joined(separator: " ")
    }

    /// An address, a key or a file at the beginning stays as it is written: `localhost:8443` is not `Localhost:8443`,
    /// and what stands before a colon is a name as well.
    private static func sentence(_ text: String) -> String {
        let first = text.prefix { $0 != " " }
        let isWord =
            first.last != ":" && first.dropFirst().dropLast().allSatisfy { $0.isLowercase || "'’-".contains($0) }
        let text = isWord ? text.prefix(1).uppercased() + text.dropFirst() : text
        return text.last.map { ".?!:".contains($0) } == true ? text : text + "."
    }
}

extension PendingRequest {
    /// The request as `--ask` takes it.
    var argument: String { transactionID + (idempotencyKey.map { ":\($0)" } ?? "") }

    /// Reads what ``argument`` wrote.
    init(argument: String) {
        let parts = argument.split(separator: ":", maxSplits: 1).map(String.init)
        self.init(transactionID: parts.first ?? "", idempotencyKey: parts.count > 1 ? parts[1] : nil)
    }
}
