/// How a remembered user signs in with a PIN, without I/O: the PIN opens the key (two calls), and one request gets the
/// session. Where an answer is lost all three calls are made once more with the PIN that was typed, which costs no try.
struct PINLogin: Hashable, Sendable {
    /// How far it is. `isAgain` says that an answer was lost before.
    enum Phase: Hashable, Sendable {
        case opening(isAgain: Bool)
        case requesting(isAgain: Bool)
        /// The server has said, unsigned, that what remembers the user has ended.
        case judging
        case loggedIn
        case failed(Outcome)
    }

    /// What is to be done.
    enum Step: Hashable, Sendable {
        /// Have the PIN counted and confirmed, and open the key.
        case open
        /// Ask for session and tokens.
        case request
        /// Ask for the container's signed status.
        case askStatus
        case done
        case fail(Outcome)
    }

    /// What has happened.
    enum Event: Hashable, Sendable {
        case opened
        case granted
        /// What the server has signed: whether the container has ended, or what the PIN opened is destroyed.
        case status(hasEnded: Bool)
        case failed(Failure)
    }

    /// Why a step has failed.
    enum Failure: Hashable, Sendable, CaseIterable {
        /// The server may have done it.
        case noAnswer
        case wrongPIN
        case locked
        /// The container, or what the PIN opens, is said to be gone.
        case gone
        /// The container's keys have expired.
        case expired
        /// The evaluation of the PIN was used, or is too old.
        case unlockNeeded
        case other
    }

    /// How it fails.
    enum Outcome: Hashable, Sendable, CaseIterable {
        case noAnswer
        case wrongPIN
        case locked
        /// The server has signed that the user is not remembered any more.
        case deregistered
        case expired
        /// With the error of the last step.
        case other
    }

    private(set) var phase = Phase.opening(isAgain: false)

    /// A login that begins.
    init() {}

    /// One that is in this phase, for tests.
    init(at phase: Phase) { self.phase = phase }

    /// What is to be done now.
    var next: Step {
        switch phase {
        case .opening: .open
        case .requesting: .request
        case .judging: .askStatus
        case .loggedIn: .done
        case .failed(let outcome): .fail(outcome)
        }
    }

    /// Takes an event.
    ///
    /// - Returns: whether it belongs to this phase; else nothing is changed.
    mutating func take(_ event: Event) -> Bool {
        switch (phase, event) {
        case (.opening(let isAgain), .opened): phase = .requesting(isAgain: isAgain)
        case (.requesting, .granted): phase = .loggedIn
        case (.judging, .status(let hasEnded)): phase = .failed(hasEnded ? .deregistered : .other)
        case (.judging, .failed): phase = .failed(.other)
        case (.opening(let isAgain), .failed(let failure)), (.requesting(let isAgain), .failed(let failure)):
            phase = Self.phase(after: failure, isAgain: isAgain)
        default: return false
        }
        return true
    }

    private static func phase(after failure: Failure, isAgain: Bool) -> Phase {
        switch failure {
        case .noAnswer: isAgain ? .failed(.noAnswer) : .opening(isAgain: true)
        case .unlockNeeded: isAgain ? .failed(.other) : .opening(isAgain: true)
        case .wrongPIN: .failed(.wrongPIN)
        case .locked: .failed(.locked)
        case .gone: .judging
        case .expired: .failed(.expired)
        case .other: .failed(.other)
        }
    }
}
