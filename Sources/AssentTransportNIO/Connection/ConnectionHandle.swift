import AssentCore
import NIOCore

/// A connection as other threads see it: everything is passed on to its event loop.
struct ConnectionHandle: Sendable {
    let id: UInt64
    let channel: any Channel
    private let bound: NIOLoopBound<HTTPConnection>

    /// Must be made on the event loop.
    init(id: UInt64, channel: any Channel, connection: HTTPConnection) {
        self.id = id
        self.channel = channel
        bound = NIOLoopBound(connection, eventLoop: channel.eventLoop)
    }

    /// Sends a request and waits for its reply.
    func perform(
        _ request: RequestHead, id: UInt64, limits: HTTPLimits, deadline: NIODeadline, isReused: Bool,
        control: CallControl?
    ) async throws -> HTTPReply {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let start = ExchangeStart(
                    id: id, request: request, limits: limits, deadline: deadline, isReused: isReused,
                    control: control, continuation: continuation)
                if channel.eventLoop.inEventLoop {
                    bound.value.start(start)
                } else {
                    channel.eventLoop.execute { bound.value.start(start) }
                }
            }
        } onCancel: {
            cancel(id)
        }
    }

    func cancel(_ exchange: UInt64) {
        channel.eventLoop.execute {
            bound.value.abort(exchange, HTTPTransportError(.cancelled, "The task was cancelled."))
        }
    }

    func abandon(_ exchange: UInt64) {
        channel.eventLoop.execute {
            bound.value.abort(exchange, HTTPTransportError(.cancelled, "The reply was not read to its end."))
        }
    }

    func resumeReading(_ exchange: UInt64) {
        channel.eventLoop.execute { bound.value.resumeReading(exchange) }
    }

    /// The app has suspended the call of this exchange, or lets it go on.
    func adjust(_ exchange: UInt64) {
        channel.eventLoop.execute { bound.value.adjust(exchange) }
    }

    /// Sends a piece of the request's content; returns when the network has taken it.
    func write(_ exchange: UInt64, _ bytes: ByteBuffer) async throws {
        let promise = channel.eventLoop.makePromise(of: Void.self)
        channel.eventLoop.execute { bound.value.write(exchange, bytes, promise) }
        try await promise.futureResult.get()
    }

    func finishUpload(_ exchange: UInt64, _ error: HTTPTransportError?) {
        channel.eventLoop.execute { bound.value.finishUpload(exchange, error) }
    }

    /// Closes the connection. A call that runs on it fails with `error`, and with what is known of its effect.
    func end(_ error: HTTPTransportError) {
        channel.eventLoop.execute { bound.value.end(error) }
    }

    func close() {
        channel.close(promise: nil)
    }
}
