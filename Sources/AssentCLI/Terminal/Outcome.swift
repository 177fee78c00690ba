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
    ///   - reportsErrors: whether a script that asked for JSON gets the error as JSON, too.
    ///   - work: what the command does.
    /// - Throws: `ExitCode` with the status, and every error that is not about this program's work, such as wrong
    ///   usage.
    static func run(_ console: Console, reportsErrors: Bool = false, _ work: () async throws -> Void) async throws {
        do {
            try await work()
            try console.finish()
        } catch let error as any AssentError {
            if reportsErrors, console.json { console.emit(json(error)) }
            try Outcome(error).end(console)
        } catch let error as ConfigurationError {
            try Outcome(.configuration, "assent: \(error)").end(console)
        } catch let error as Prompt.NoTerminal {
            try Outcome(.failed, "\(error)").end(console)
        } catch let error as CommandFailure {
            try Outcome(error.status, "\(error)").end(console)
        }
    }

    private func end(_ console: Console) throws {
        for line in lines { console.warn(line) }
        throw ExitCode(status.rawValue)
    }

    private init(_ status: Status, _ lines: String...) {
        self.status = status
        self.lines = lines.map(DisplayText.escapedForTerminal)
    }

    /// The outcome of a command that failed with this error.
    init(_ error: any AssentError) {
        let words = Self.words(error)
        switch error {
        case let error as JourneyError where error.code == .sessionTimedOut:
            self.init(.refused, "The sign-in took too long and has ended. Run the command again. [\(error.code)]")
        case let error as JourneyError:
            let message = error.message.isEmpty ? words : error.message
            self.init(.refused, "The server says no: \(message)")
        case let error as JourneyFailure where error.code == .declined: self.init(.refused, "You declined.")
        case is JourneyFailure: self.init(.failed, "The journey did not end: \(words)")
        case let error as AuthorizationError where error.code == .outcomeUnknown:
            self.init(
                .unknown, "What happened is unknown: \(words)",
                "Do not repeat it. Run the same command again with --ask \(error.pending?.argument ?? "<id>")")
        case let error as AuthorizationError: self.init(Self.refusals.contains(error.code) ? .refused : .failed, words)
        case let error as TokenError where error.code == .signInNeeded:
            self.init(.failed, "Sign in first: assent login. \(words)")
        case let error as TokenError where error.code == .authorizationRefused:
            self.init(.refused, "The server says no: \(words)")
        case let error as NIOTransportError where error.code == .noRedirect:
            self.init(.failed, "Nobody signed in: \(words)")
        case let error as HTTPTransportError: self.init(error.mayHaveHadEffect ? .unknown : .failed, words)
        default: self.init(.failed, words)
        }
    }

    private static let refusals: Set<AuthorizationError.Code> = [
        .declined, .refused, .strongerSignInNeeded, .approvalForAnotherRequest, .untrustedAdvice,
    ]

    /// What happened, what to do, and at the end the code, by which a person can search. Never the code alone.
    private static func words(_ error: some AssentError) -> String {
        var words = [sentence(error.detail.isEmpty ? "It failed without further explanation" : error.detail)]
        words += error.notes.map { "(\($0))" }
        if let suggestion = error.suggestion { words.append(sentence(suggestion)) }
        return (words + ["[\(error.code)]"]).joined(separator: " ")
    }

    private static func sentence(_ text: String) -> String {
        let text = text.prefix(1).uppercased() + text.dropFirst()
        return text.last.map { ".?!:".contains($0) } == true ? text : text + "."
    }

    private static func json(_ error: some AssentError) -> JSONValue {
        let detail = [error.detail, error.suggestion].compactMap(\.self).joined(separator: " ")
        return ["error": .string(error.code.rawValue), "detail": .string(detail)]
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
