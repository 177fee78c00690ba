import AssentCore

/// What a receiver's connections share: the sign-in that waits, and its answer.
final class RedirectWait: Sendable {
    /// The longest URL that is looked at, in bytes.
    static let limit = 16 << 10

    /// How many connections may be open at once; a browser needs two or three.
    static let connectionLimit = 32

    private enum Phase {
        /// Nobody has asked yet.
        case ready
        case waiting(CheckedContinuation<String, any Error>, accepts: @Sendable (String) -> Bool)
        /// The answer has come; the browser gets its page.
        case claimed(CheckedContinuation<String, any Error>)
        case over
        /// Ended before anybody asked.
        case endedEarly(any Error)
    }

    private struct State {
        var phase = Phase.ready
        var redirectURI = ""
        var path = ""
        var refused = 0
        var connections = 0
    }

    private let state = Locked(State())

    func begin(redirectURI: String, path: String) {
        state.withLock { ($0.redirectURI, $0.path) = (redirectURI, path) }
    }

    /// What a request must be for: the path of the redirect URI, and its host and port.
    var target: (path: String, authority: String, redirectURI: String) {
        state.withLock { state in
            let authority = state.redirectURI.dropFirst("http://".count).prefix { $0 != "/" && $0 != "?" }
            return (state.path, String(authority), state.redirectURI)
        }
    }

    /// Begins to wait; returns whether there is anything to wait for.
    func wait(
        _ continuation: CheckedContinuation<String, any Error>, accepts: @escaping @Sendable (String) -> Bool
    ) -> Bool {
        let failure: (any Error)? = state.withLock { state in
            switch state.phase {
            case .ready:
                state.phase = .waiting(continuation, accepts: accepts)
                return nil
            case .endedEarly(let error): return error
            case .waiting, .claimed, .over:
                return NIOTransportError(
                    .cannotListen, "This receiver was used before.", suggestion: "Make another one.")
            }
        }
        if let failure { continuation.resume(throwing: failure) }
        return failure == nil
    }

    /// Whether this is the answer, and the first one. A caller that gets `true` must call ``finish(_:)``.
    func claim(_ redirect: String) -> Bool {
        let accepts: (@Sendable (String) -> Bool)? = state.withLock { state in
            if case .waiting(_, let accepts) = state.phase { accepts } else { nil }
        }
        guard let accepts else { return false }
        let isAnswer = accepts(redirect)
        return state.withLock { state in
            guard isAnswer else {
                state.refused += 1
                return false
            }
            guard case .waiting(let continuation, _) = state.phase else { return false }
            state.phase = .claimed(continuation)
            return true
        }
    }

    /// The time has passed. An answer that has already come is still used.
    func giveUp() {
        let refused: Int? = state.withLock { state in
            if case .claimed = state.phase { nil } else { state.refused }
        }
        guard let refused else { return }
        let hint = refused == 0 ? "" : ", and \(refused) that came belonged to another request"
        finish(.failure(NIOTransportError(.noRedirect, "The browser did not come back in time\(hint).")))
    }

    func finish(_ result: Result<String, any Error>) {
        let continuation: CheckedContinuation<String, any Error>? = state.withLock { state in
            switch state.phase {
            case .waiting(let continuation, _), .claimed(let continuation):
                state.phase = .over
                return continuation
            case .ready:
                if case .failure(let error) = result { state.phase = .endedEarly(error) }
                return nil
            case .over, .endedEarly: return nil
            }
        }
        continuation?.resume(with: result)
    }

    /// Counts a connection; `false` when there are too many.
    func connect() -> Bool {
        state.withLock { state in
            guard state.connections < Self.connectionLimit else { return false }
            state.connections += 1
            return true
        }
    }

    func disconnect() { state.withLock { $0.connections -= 1 } }
}
