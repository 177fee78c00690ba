import AssentCore
import HTTPTypes
import NIOCore

/// A call on its way to a connection's event loop.
struct ExchangeStart: Sendable {
    let id: UInt64
    let request: RequestHead
    let limits: HTTPLimits
    let deadline: NIODeadline
    /// Whether the connection has served before: it may have gone stale.
    let isReused: Bool
    let control: CallControl?
    let continuation: CheckedContinuation<HTTPReply, any Error>

    /// What the connection's state machine needs of it.
    var summary: ConnectionState.Request {
        .init(
            id: id, deadline: deadline, readLimit: limits.read.timeAmount, replyBytes: limits.replyBytes,
            hasUpload: request.hasUpload, isReused: isReused, headLimit: limits.head?.timeAmount)
    }
}

/// Why an exchange has no reply, with what decides whether it may be sent again.
struct ExchangeFailure: Error {
    let error: HTTPTransportError
    /// No byte of the request was handed to the network.
    let isUnsent: Bool
    /// The connection had served before and ended without a byte of a reply.
    let isStale: Bool
}

/// One request and its reply, on the connection's event loop: the parser, the caller and the reader.
/// ``ConnectionState`` says when each gets an answer.
final class Exchange {
    private let id: UInt64
    private var continuation: CheckedContinuation<HTTPReply, any Error>?
    private weak var stream: ReplyStream?
    var parser: ReplyParser
    var response: HTTPResponse?
    /// Content that came before the reply was handed over.
    var early: [UInt8] = []
    var upload: Task<Void, Never>?
    let control: CallControl?
    /// Tells the connection of suspensions for as long as the exchange lasts.
    var watch: CallControl.Watch?

    init(_ start: ExchangeStart, limits: ReplyParser.Limits) {
        id = start.id
        continuation = start.continuation
        control = start.control
        parser = ReplyParser(limits: limits, isHEAD: start.request.isHEAD)
    }

    deinit {
        // A last resort, so that no call waits for ever.
        continuation?.resume(throwing: HTTPTransportError(.connectionClosed, "The exchange has ended.").afterSending())
    }

    /// Hands the reply over with a stream for the rest of its content.
    func deliver(from connection: ConnectionHandle) {
        guard let response, let continuation = takeContinuation() else { return }
        let stream = ReplyStream(connection: connection, exchange: id)
        self.stream = stream
        if !early.isEmpty { _ = stream.push(early) }
        early = []
        continuation.resume(returning: HTTPReply(response, body: stream.body(length: parser.declaredLength)))
    }

    /// Gives bytes to the reader; whether the connection should stop reading for now.
    func push(_ bytes: ByteBuffer) -> Bool {
        stream?.push(Array(bytes.readableBytesView)) == true
    }

    /// Ends it with all that was promised.
    func complete(_ delivery: ConnectionState.Delivery) {
        upload?.cancel()
        switch delivery {
        case .end: stream?.finish(.success(()))
        case .whole:
            guard let response, let continuation = takeContinuation() else { return }
            continuation.resume(returning: HTTPReply(response, body: HTTPBody(early)))
        }
    }

    /// Ends it without a reply.
    func fail(_ failure: ExchangeFailure) {
        upload?.cancel()
        takeContinuation()?.resume(throwing: failure)
    }

    /// Ends it in the middle of the content, after the reply was handed over.
    func breakOff(_ error: HTTPTransportError) {
        upload?.cancel()
        stream?.finish(.failure(error))
    }

    private func takeContinuation() -> CheckedContinuation<HTTPReply, any Error>? {
        defer { continuation = nil }
        return continuation
    }
}
