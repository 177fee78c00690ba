import AssentCore
import NIOCore

/// The content of a reply on its way from a connection to its reader.
///
/// The connection stops reading from the network while too much waits here. It holds this weakly: when the last reader
/// lets go before the end, the rest of the reply is not wanted and the connection is closed.
final class ReplyStream: Sendable {
    private struct State {
        var backlog = ReplyBacklog()
        var end: Result<Void, any Error>?
        var waiter: CheckedContinuation<[UInt8]?, any Error>?
    }

    private let state = Locked(State())
    private let connection: ConnectionHandle
    private let exchange: UInt64

    init(connection: ConnectionHandle, exchange: UInt64) {
        self.connection = connection
        self.exchange = exchange
    }

    deinit {
        let isFinished = state.withLock { $0.end != nil }
        if !isFinished { connection.abandon(exchange) }
    }

    /// Hands bytes over; whether the connection should stop reading for now.
    func push(_ bytes: [UInt8]) -> Bool {
        let (waiter, hold) = state.withLock { state -> (CheckedContinuation<[UInt8]?, any Error>?, Bool) in
            if let waiter = state.waiter {
                state.waiter = nil
                return (waiter, false)
            }
            return (nil, state.backlog.add(bytes))
        }
        waiter?.resume(returning: bytes)
        return hold
    }

    /// No more bytes come; with an error when the content is not complete.
    func finish(_ result: Result<Void, any Error>) {
        let waiter = state.withLock { state -> CheckedContinuation<[UInt8]?, any Error>? in
            guard state.end == nil else { return nil }
            state.end = result
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(with: result.map { nil })
    }

    /// The next bytes, or `nil` at the end.
    func next() async throws -> [UInt8]? {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                enum Outcome {
                    case wait
                    case resume(Result<[UInt8]?, any Error>, unhold: Bool)
                }
                let outcome = state.withLock { state -> Outcome in
                    if let (chunk, resumes) = state.backlog.take() {
                        return .resume(.success(chunk), unhold: resumes)
                    }
                    if let end = state.end { return .resume(end.map { nil }, unhold: false) }
                    guard state.waiter == nil else {
                        let error = HTTPTransportError(.bodyFailed, "Two tasks read one reply at once.")
                        return .resume(.failure(error.afterSending()), unhold: false)
                    }
                    state.waiter = continuation
                    return .wait
                }
                if case .resume(let result, let unhold) = outcome {
                    if unhold { connection.resumeReading(exchange) }
                    continuation.resume(with: result)
                }
            }
        } onCancel: {
            connection.cancel(exchange)
        }
    }

    /// This stream as a body.
    func body(length: Int?) -> HTTPBody {
        HTTPBody(length: length, isReplayable: false) { { try await self.next() } }
    }
}
