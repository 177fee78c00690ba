import ArgumentParser
import Assent
import AssentConfiguration

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
            console.warn(error.code == .declined ? "You declined." : "The journey did not end: \(told(error))")
            throw ExitCode(error.code == .declined ? 2 : 1)
        } catch let error as AuthorizationError where error.code == .outcomeUnknown {
            console.warn("What happened is unknown: \(told(error))")
            console.warn("Do not repeat it. Run the same command again with --ask \(error.pending?.argument ?? "<id>")")
            throw ExitCode(3)
        } catch let error as AuthorizationError {
            console.warn(told(error))
            let refused: [AuthorizationError.Code] = [
                .declined, .refused, .approvalForAnotherRequest, .untrustedAdvice,
            ]
            throw ExitCode(refused.contains(error.code) ? 2 : 1)
        } catch let error as TokenError where error.code == .signInNeeded {
            console.warn("Sign in first: assent login (\(DisplayText.escapedForTerminal(error.detail)))")
            throw ExitCode(1)
        } catch let error as TokenError where error.code == .authorizationRefused {
            console.warn("The server says no: \(told(error))")
            throw ExitCode(2)
        } catch let error as TokenError {
            console.warn(told(error))
            throw ExitCode(1)
        } catch let error as NIOTransportError {
            console.warn(error.code == .noRedirect ? "Nobody signed in: \(error.detail)." : told(error))
            throw ExitCode(1)
        } catch let error as HTTPTransportError {
            console.warn(told(error))
            throw ExitCode(error.mayHaveHadEffect ? 3 : 1)
        } catch let error as SecretStoreError {
            console.warn("\(error.code): \(DisplayText.escapedForTerminal(error.detail))")
            throw ExitCode(1)
        } catch let error as Prompt.NoTerminal {
            console.warn(told(error))
            throw ExitCode(1)
        }
    }

    /// An error's words; some of them may be a server's.
    private static func told(_ error: any Error) -> String { DisplayText.escapedForTerminal("\(error)") }
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
