import AssentCore
import HTTPTypes
import NIOCore

/// What a connection is told to do. Crosses to its event loop.
struct ExchangeStart: Sendable {
    let id: UInt64
    let request: RequestHead
    let limits: HTTPLimits
    let deadline: NIODeadline
    /// Whether the connection has served before: it may have gone stale.
    let isReused: Bool
    let continuation: CheckedContinuation<HTTPReply, any Error>
}

/// Why an exchange has no reply, with what decides whether it may be sent again.
struct ExchangeFailure: Error {
    let error: HTTPTransportError
    /// No byte of the request was handed to the network.
    let isUnsent: Bool
    /// The connection had served before and ended without a byte of a reply.
    let isStale: Bool
}

/// One request and its reply, on the connection's event loop.
final class Exchange {
    let start: ExchangeStart
    var parser: ReplyParser
    var continuation: CheckedContinuation<HTTPReply, any Error>?
    var response: HTTPResponse?
    /// Content that came before the reply was handed over.
    var early: [UInt8] = []
    weak var stream: ReplyStream?
    var received = 0
    var hasWritten = false
    var hasRead = false
    var isRequestComplete = false
    var upload: Task<Void, Never>?
    var lastProgress = NIODeadline.now()

    init(_ start: ExchangeStart, limits: ReplyParser.Limits) {
        self.start = start
        continuation = start.continuation
        parser = ReplyParser(limits: limits, isHEAD: start.request.isHEAD)
    }

    /// Hands the reply over: whole if it is, else with a stream for the rest.
    func deliver(isComplete: Bool, connection: ConnectionHandle) {
        guard let continuation, let response else { return }
        self.continuation = nil
        if isComplete {
            continuation.resume(returning: HTTPReply(response, body: HTTPBody(early)))
        } else {
            let stream = ReplyStream(connection: connection, exchange: start.id)
            self.stream = stream
            if !early.isEmpty { _ = stream.push(early) }
            continuation.resume(returning: HTTPReply(response, body: stream.body(length: parser.declaredLength)))
        }
        early = []
    }

    /// Ends it with an error, for the one who waits for the reply or for the reader of its content.
    func fail(_ error: HTTPTransportError, isStale: Bool, connection: ConnectionHandle) {
        upload?.cancel()
        let error = hasWritten ? error.afterSending() : error
        if response != nil {
            // The status is known, and says more than the failure; reading the content then ends in it.
            deliver(isComplete: false, connection: connection)
            stream?.finish(.failure(error))
        } else {
            continuation?.resume(throwing: ExchangeFailure(error: error, isUnsent: !hasWritten, isStale: isStale))
            continuation = nil
        }
    }
}
