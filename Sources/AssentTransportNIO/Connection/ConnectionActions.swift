import AssentCore

// What a connection's state machine answers. Each is a plain value, so that deciding allocates nothing.

extension ConnectionState {
    enum StartAction: Sendable {
        /// Write the request.
        case send
        /// It was not begun; the connection stays as it is.
        case refuse(ExchangeFailure)
        /// It was not begun: tell the caller, close the connection.
        case refuseAndClose(ExchangeFailure)
    }

    enum ReceiveAction: Sendable {
        /// Give the bytes to the parser.
        case parse
        case close(Closing)
    }

    enum ContentAction: Sendable {
        /// Keep it until the reply is handed over.
        case collect
        /// Give it to the reader.
        case push
        case close(Closing)
    }

    enum GoOnAction: Sendable {
        /// It is not suspended, or is not the current exchange.
        case ignore
        /// Go on, and ask the network for bytes if that was held.
        case goOn(readsNow: Bool)
    }

    enum EndAction: Sendable {
        case complete(Completion)
        case close(Closing)
    }

    /// A reply is complete: read on if that was held, ask the pool to keep the connection, answer, close.
    struct Completion: Sendable {
        let delivery: Delivery
        /// Whether the network was asked for bytes while the reader was behind.
        let resumesReading: Bool
        /// The pool decides; when it does not want the connection, ``ConnectionState/notKept()`` says what to do.
        let isReusable: Bool
    }

    enum Delivery: Sendable {
        /// The caller gets the reply with all its content.
        case whole
        /// The reader gets the end.
        case end
    }

    /// The connection ends: answer what waits, close the channel.
    struct Closing: Sendable {
        let loss: Loss
        /// `false` when it closes already.
        let closesChannel: Bool

        static let none = Closing(loss: .none, closesChannel: false)
    }

    /// What was waiting for something that will not come.
    enum Loss: Sendable {
        case none
        case dial(HTTPTransportError)
        case caller(ExchangeFailure)
        /// The status is known and says more than the failure: the caller gets the reply, if it has not yet, and the
        /// reader of its content the error.
        case reader(HTTPTransportError, isDelivered: Bool)
    }

    /// The channel is gone: answer what waits, then tell the pool.
    struct Departure: Sendable {
        enum Answer: Sendable {
            case completed(Delivery)
            case lost(Loss)
        }

        let answer: Answer
        let leavesPool: Bool
    }
}

// MARK: - Errors

extension ConnectionState {
    static let disorder = HTTPTransportError(.malformedReply, "The parts of the reply are out of order.")
    static let closedHere = HTTPTransportError(.connectionClosed, "The connection was closed.")
    static let endedInReply = HTTPTransportError(
        .connectionClosed, "The connection ended before the reply was complete.")
    static let endedInHandshake = HTTPTransportError(
        .tlsFailed, "The server closed the connection during the TLS handshake.")
    static let brokenTLS = HTTPTransportError(.tlsFailed, "TLS failed.")
    static let broken = HTTPTransportError(.connectionClosed, "The connection broke.")
    static let stale = ExchangeFailure(
        error: HTTPTransportError(.connectionClosed, "The server closed the connection."), isUnsent: true, isStale: true
    )
}
