import ArgumentParser
import Assent
import AssentServer

/// What the exit status says.
enum Outcome {
    /// Runs a command's work and turns its errors into a message and an exit status.
    static func run(_ console: Console, _ work: () async throws -> Void) async throws {
        do {
            try await work()
        } catch let error as ConfigurationError {
            console.warn("assent: \(error)")
            throw ExitCode(78)
        } catch let error as JourneyError {
            console.warn("The server says no: \(DisplayText.escapedForTerminal(error.message))")
            throw ExitCode(2)
        } catch let error as JourneyFailure {
            console.warn(error.code == .declined ? "You declined." : "The journey did not end: \(error)")
            throw ExitCode(error.code == .declined ? 2 : 1)
        } catch let error as AuthorizationError where error.code == .outcomeUnknown {
            console.warn("What happened is unknown: \(error)")
            console.warn("Do not repeat it. Run the same command again with --ask \(error.pending?.argument ?? "<id>")")
            throw ExitCode(3)
        } catch let error as AuthorizationError {
            console.warn("\(error)")
            let refused: [AuthorizationError.Code] = [
                .declined, .refused, .approvalForAnotherRequest, .untrustedAdvice,
            ]
            throw ExitCode(refused.contains(error.code) ? 2 : 1)
        } catch let error as TokenError where error.code == .signInNeeded {
            console.warn("Sign in first: assent login (\(error.detail))")
            throw ExitCode(1)
        } catch let error as TokenError where error.code == .authorizationRefused {
            console.warn("The server says no: \(error)")
            throw ExitCode(2)
        } catch let error as TokenError {
            console.warn("\(error)")
            throw ExitCode(1)
        } catch let error as NIOTransportError {
            console.warn(error.code == .noRedirect ? "Nobody signed in: \(error.detail)." : "\(error)")
            throw ExitCode(1)
        } catch let error as HTTPTransportError {
            console.warn("\(error)")
            throw ExitCode(error.mayHaveHadEffect ? 3 : 1)
        } catch let error as Prompt.NoTerminal {
            console.warn("\(error)")
            throw ExitCode(1)
        }
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
