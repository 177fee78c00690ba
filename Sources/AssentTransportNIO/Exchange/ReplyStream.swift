import AssentCore
import NIOCore

/// The content of a reply on its way from a connection to its reader.
///
/// The connection stops reading from the network while too much waits here. It holds this weakly: when the last reader lets
/// go before the end, the rest of the reply is not wanted and the connection is closed.
final class ReplyStream: Sendable {
    private struct State {
        var chunks: [[UInt8]] = []
        var buffered = 0
        var end: Result<Void, any Error>?
        var waiter: CheckedContinuation<[UInt8]?, any Error>?
        var isHeld = false
    }

    private static let highWater = 256 << 10
    private static let lowWater = 64 << 10
    private static let coalesced = 16 << 10

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
            // A peer may send single bytes; they are not kept one by one.
            let last = state.chunks.indices.last
            if let last, state.chunks[last].count + bytes.count <= Self.coalesced {
                state.chunks[last] += bytes
            } else {
                state.chunks.append(bytes)
            }
            state.buffered += bytes.count
            state.isHeld = state.buffered >= Self.highWater
            return (nil, state.isHeld)
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
                    if !state.chunks.isEmpty {
                        let chunk = state.chunks.removeFirst()
                        state.buffered -= chunk.count
                        let unhold = state.isHeld && state.buffered <= Self.lowWater
                        if unhold { state.isHeld = false }
                        return .resume(.success(chunk), unhold: unhold)
                    }
                    if let end = state.end { return .resume(end.map { nil }, unhold: false) }
                    guard state.waiter == nil else {
                        let error = HTTPTransportError(.bodyFailed, "a reply is read by two tasks at once")
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
