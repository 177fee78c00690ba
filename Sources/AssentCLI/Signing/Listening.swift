import Assent
import AssentSigning

/// Has a device's transactions answered as they come. What goes wrong with one of them does not end it, and it waits
/// for a server that is away.
struct Listening<Transactions: AsyncSequence> {
    /// Begins anew: gives all that is open now, and then what comes.
    let transactions: () -> Transactions

    /// Has one transaction answered.
    let answer: (Transactions.Element) async throws -> Void

    /// Asks the server whether it answers again, and sends what could not be sent before.
    let reconnect: () async throws -> Void

    /// Tells the user what has happened.
    let warn: (String) -> Void

    /// Waits for so long, or until the task is cancelled.
    let pause: (Duration) async throws -> Void

    /// Whether it ends after the first transaction, also with an error.
    var once = false

    private static var shortest: Duration { .seconds(1) }
    private static var longest: Duration { .seconds(60) }

    /// Listens until the sequence ends, or until something is wrong that does not mend by itself.
    ///
    /// - Throws: that error; `CancellationError`.
    func run() async throws {
        while true {
            switch try await listen() {
            case .over: return
            // Whatever a server does, it is not asked without a break.
            case .anew: try await pause(Self.shortest)
            case .away: try await awaitServer()
            }
        }
    }

    private enum End {
        case over
        case anew
        case away
    }

    private func listen() async throws -> End {
        var iterator = transactions().makeAsyncIterator()
        while true {
            let transaction: Transactions.Element
            do {
                guard let next = try await iterator.next() else { return .over }
                transaction = next
            } catch let error as SigningError where error.code == .documentRefused {
                // Begun anew, it would be in the way of those behind it.
                tell(error)
                continue
            } catch let error as any AssentError where error.isTransient {
                tell(error)
                return .away
            }
            do {
                try await answer(transaction)
            } catch let error as any AssentError where !once && Self.mends(error) {
                tell(error)
                return error.isTransient ? .away : .anew
            } catch let failure as CommandFailure where !once {
                warn(DisplayText.escapedForTerminal("\(failure)"))
                return .anew
            }
            if once { return .over }
        }
    }

    /// Tries again after growing pauses.
    private func awaitServer() async throws {
        warn("It goes on as soon as the server answers.")
        var wait = Self.shortest
        while true {
            try await pause(wait)
            wait = min(wait * 2, Self.longest)
            do {
                try await reconnect()
                return warn("The server answers again.")
            } catch let error as any AssentError where error.isTransient {
                continue
            }
        }
    }

    private func tell(_ error: any AssentError) {
        for line in Outcome(error).lines { warn(line) }
    }

    /// Whether another transaction may be answered after this error of one.
    private static func mends(_ error: any AssentError) -> Bool {
        if error.isTransient { return true }
        let lasting: [SigningError.Code] = [
            .credentialsLost, .containerRevoked, .unknownContainer, .keyExpired, .passwordDestroyed,
            .untrustedIdentity, .versionUnsupported, .secureData, .internal,
        ]
        return (error as? SigningError).map { !lasting.contains($0.code) } ?? false
    }
}
