import AssentCore
import AssentPayload
import Foundation
import HTTPTypes

/// Runs a `ClientSession`: the sealed calls to one origin in one role. Sessions are in memory only.
package final class PayloadChannel: Sendable {
    /// A call without a sealed reply, which may be sent once more, as another message and with a new proof.
    struct Unanswered: Error {
        let error: HTTPTransportError
    }

    private struct State {
        var session: ClientSession
        var lastCall = 0
        /// The calls that wait for a session.
        var waiting: [Int: CheckedContinuation<ClientSession.Message, any Error>] = [:]
        /// Why the last handshake got no answer.
        var handshakeError: HTTPTransportError?
    }

    private let state: Locked<State>
    private let handshakes: HandshakeCalls
    /// What carries messages. It is made once, since its URL is read for that.
    private let carrier: Result<HTTPCall, WireError>

    init(_ handshakes: HandshakeCalls, keys: [ClientSession.Key]) {
        self.handshakes = handshakes
        let origin = handshakes.settings.origin
        carrier = Result { () throws(WireError) in try SealedCall.carrier(to: origin) }
        state = Locked(State(session: ClientSession(role: handshakes.role, keys: keys)))
    }

    /// Sends a call sealed.
    ///
    /// - Parameters:
    ///   - call: what is sent.
    ///   - mayRepeat: whether it can be sent once more.
    /// - Returns: what was sealed for it, as soon as that begins.
    /// - Throws: `HTTPTransportError`; ``Unanswered`` for a call that may be repeated.
    func exchange(_ call: HTTPCall, mayRepeat: Bool) async throws -> HTTPReply {
        let request = try SealedCall(call, at: handshakes.settings.origin)
        let (id, message) = try await message(within: call.limits.total, mayRepeat: mayRepeat)
        // A call with a proof is not repeated from here: its layer makes another one.
        let isReplaced = mayRepeat && !RequestRules.carriesProof(call.request.headerFields)
        var hasReply = false
        let reply: OpenedReply
        do {
            let sealed = try request.sealed(
                message.sealer(random: handshakes.seams.random), in: try carrier.get(), isReplacedAbove: isReplaced)
            report(.request, sealed.call.body?.length, message)
            let answer = try await handshakes.network.send(sealed.call)
            hasReply = true
            if let whole = WholeReply(answer, message, to: sealed.head, of: call) {
                takeSealedReply(to: id)
                report(.reply, whole.length, message)
                return whole.reply
            }
            reply = try await OpenedReply.open(answer, message, to: sealed.head, of: call)
        } catch {
            throw failure(of: id, error, hasReply: hasReply)
        }
        takeSealedReply(to: id)
        return try await reply.handedOver { [self] length in report(.reply, length, message) }
    }

    // MARK: Events

    private func takeSealedReply(to id: Int) { state.withLock { $0.session.takeSealedReply(to: id) } }

    /// Tells the session, and does what follows but for what has come of a call that was sent.
    @discardableResult
    private func take(
        _ event: ClientSession.Event, if prepare: (inout State) -> Bool = { _ in true }
    ) -> [ClientSession.Action] {
        let (actions, ready) = state.withLock { state -> ([ClientSession.Action], [@Sendable () -> Void]) in
            guard prepare(&state) else { return ([], []) }
            let actions = state.session.take(event, at: handshakes.seams.clock.now)
            return (actions, Self.answers(actions, &state))
        }
        for resume in ready { resume() }
        for action in actions { perform(action) }
        return actions
    }

    /// What the calls that have waited are told.
    private static func answers(_ actions: [ClientSession.Action], _ state: inout State) -> [@Sendable () -> Void] {
        actions.compactMap { action in
            switch action {
            case .send(let id, let message):
                guard let waiter = state.waiting.removeValue(forKey: id) else { return nil }
                return { waiter.resume(returning: message) }
            case .giveUp(let id, let failure):
                guard let waiter = state.waiting.removeValue(forKey: id) else { return nil }
                let error = failure.error(after: state.handshakeError)
                return { waiter.resume(throwing: error) }
            default: return nil
            }
        }
    }

    private func perform(_ action: ClientSession.Action) {
        switch action {
        case .handshake(let attempt, let key):
            Task {
                let (result, error) = await handshakes.make(with: key)
                state.withLock { $0.handshakeError = error }
                take(.handshake(attempt: attempt, result))
            }
        case .pause(let seconds):
            let clock = handshakes.seams.clock
            let end = clock.now.addingTimeInterval(TimeInterval(seconds))
            // A call that waits keeps the channel. If no call waits, the pause must not keep it.
            Task { [weak self] in
                try? await clock.sleep(until: end)
                self?.take(.paused)
            }
        case .readRegistration: Task { take(.registration(await handshakes.registration())) }
        case .wait, .send, .handOver, .repeatAbove, .giveUp: break
        }
    }

    // MARK: Calls

    /// Waits for a session, no longer than the call may take.
    private func message(
        within limit: Duration?, mayRepeat: Bool
    ) async throws -> (id: Int, ClientSession.Message) {
        let (id, ready) = state.withLock { state -> (Int, ClientSession.Message?) in
            state.lastCall += 1
            let call = ClientSession.Call(id: state.lastCall, mayRepeat: mayRepeat)
            if Task.isCancelled { return (call.id, nil) }
            return (call.id, state.session.message(for: call, at: handshakes.seams.clock.now))
        }
        // Most calls have a session, and wait for nothing.
        if let ready { return (id, ready) }
        var timer: Task<Void, any Error>?
        defer { timer?.cancel() }
        let message = try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                var isCancelled = false
                // Under one lock: a cancellation that comes later finds the call here and in the session, which would
                // else begin it when nobody waits any more.
                take(.begin(.init(id: id, mayRepeat: mayRepeat))) { state in
                    isCancelled = Task.isCancelled
                    if !isCancelled { state.waiting[id] = continuation }
                    return !isCancelled
                }
                if isCancelled { continuation.resume(throwing: Self.cancelled) }
                // A call for which there is a session needs no timer.
                if let limit, state.withLock({ $0.waiting[id] != nil }) { timer = alarm(id, after: limit) }
            }
        } onCancel: {
            withdraw(id, Self.cancelled)
        }
        return (id, message)
    }

    private func alarm(_ id: Int, after limit: Duration) -> Task<Void, any Error> {
        let clock = handshakes.seams.clock
        let end = clock.now.addingTimeInterval(limit / .seconds(1))
        return Task {
            try await clock.sleep(until: end)
            withdraw(id, Self.late)
        }
    }

    /// Ends the wait of a call, if it still waits.
    private func withdraw(_ id: Int, _ error: HTTPTransportError) {
        var waiter: CheckedContinuation<ClientSession.Message, any Error>?
        take(.cancelled(id)) { state in
            waiter = state.waiting.removeValue(forKey: id)
            return waiter != nil
        }
        waiter?.resume(throwing: error)
    }

    /// What a call ends with that has no sealed reply.
    private func failure(of id: Int, _ error: any Error, hasReply: Bool) -> any Error {
        let answer: ClientSession.Answer
        var known = error as? HTTPTransportError
        switch error {
        case let unsealed as OpenedReply.Unsealed:
            answer = unsealed.refusal == .unknownSession ? .unknownSession : .other
            known = unsealed.error
        case let error as HTTPTransportError where Self.isOurs(error.code):
            take(.cancelled(id))
            return hasReply ? error.afterSending() : error
        case is CancellationError:
            take(.cancelled(id))
            return error
        case let error as HTTPTransportError where !hasReply && !error.mayHaveHadEffect: answer = .notSent
        case let error as HTTPTransportError where error.wasStale: answer = .staleConnection
        default: answer = .other
        }
        for action in take(.answer(id, answer)) {
            switch action {
            case .repeatAbove(id):
                let error = known ?? HTTPTransportError(.payloadEncryptionFailed, "The call has no reply.")
                return Unanswered(error: error.withoutSealedReply())
            case .giveUp(id, let failure):
                guard let known else { return error }
                return failure.mayHaveHadEffect ? known.afterSending() : known
            default: continue
            }
        }
        return error
    }

    /// What the app has caused: another sending would end the same way.
    private static func isOurs(_ code: HTTPTransportError.Code) -> Bool {
        [.cancelled, .shutDown, .bodyFailed, .invalidRequest].contains(code)
    }

    private static let late = HTTPTransportError(
        .timedOut, "The handshake of payload encryption took longer than the call may. Nothing of the call was sent.")
    private static let cancelled = HTTPTransportError(.cancelled, "The task was cancelled before the call was sent.")

    private func report(_ kind: PayloadTrace.Kind, _ length: Int?, _ message: ClientSession.Message) {
        let seams = handshakes.seams
        guard let observe = seams.observe else { return }
        let age = max(0, seams.clock.now.timeIntervalSince(message.begun))
        observe(
            PayloadTrace(
                kind: kind, origin: handshakes.settings.origin, length: length, number: message.number,
                age: Int(exactly: age.rounded(.down))))
    }
}

extension ClientSession.Failure {
    /// For a call that has waited for a session: nothing of it was sent.
    ///
    /// - Parameter cause: why the handshake got no answer.
    /// - Returns: the error.
    fileprivate func error(after cause: HTTPTransportError?) -> HTTPTransportError {
        let (detail, suggestion): (String, String?) =
            switch reason {
            case .noHandshake where cause != nil: ("", nil)
            case .noReply, .unknownSession, .notConnected, .noHandshake:
                ("The server's answer to the handshake of payload encryption cannot be used.", nil)
            case .noKey:
                (
                    "The server takes none of the configured keys of payload encryption, or none is valid any more.",
                    "Get the server's current keys."
                )
            case .proofRefused: ("The server does not take this installation's proof.", "Check the clock.")
            case .notRegistered: ("This installation is not registered any more.", "Sign in again.")
            case .busy: ("The server is too busy for a handshake of payload encryption.", "Try again later.")
            case .notConfirmed:
                ("The answer to the handshake of payload encryption was not made with the server's key.", nil)
            case .tooMany: ("Too many calls wait for a handshake of payload encryption.", "Try again later.")
            }
        if detail.isEmpty, let cause { return cause.beforeSending() }
        return HTTPTransportError(.payloadEncryptionFailed, detail, suggestion: suggestion)
    }
}
