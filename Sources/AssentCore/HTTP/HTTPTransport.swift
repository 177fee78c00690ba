public import HTTPTypes

/// One request on its way out.
public struct HTTPCall: Sendable {
    /// Method, URL and header fields.
    public var request: HTTPRequest

    /// The content, if there is one.
    public var body: HTTPBody?

    /// How long it may take and how much may come back.
    public var limits: HTTPLimits

    /// A request with its content.
    public init(_ request: HTTPRequest, body: HTTPBody? = nil, limits: HTTPLimits = .init()) {
        self.request = request
        self.body = body
        self.limits = limits
    }
}

/// Bounds of one exchange.
public struct HTTPLimits: Sendable, Hashable {
    /// Until the connection with its TLS handshake and trust checks is there.
    public var connect: Duration

    /// Between two arrivals of bytes.
    public var read: Duration

    /// From the start to the last byte of the reply.
    public var total: Duration

    /// The bytes of a reply's content that are accepted.
    public var replyBytes: Int

    /// Bounds; the defaults suit JSON calls.
    public init(
        connect: Duration = .seconds(10), read: Duration = .seconds(30), total: Duration = .seconds(60),
        replyBytes: Int = 4 << 20
    ) {
        self.connect = connect
        self.read = read
        self.total = total
        self.replyBytes = replyBytes
    }
}

/// What came back.
public struct HTTPReply: Sendable {
    /// Status and header fields.
    public var response: HTTPResponse

    /// The content; reading it stops at ``HTTPLimits/replyBytes``.
    public var body: HTTPBody

    /// A reply.
    public init(_ response: HTTPResponse, body: HTTPBody = .empty) {
        self.response = response
        self.body = body
    }

    /// The status code, for example 200.
    public var status: Int { response.status.code }
}

/// Carries a request to its server and brings the reply. Every byte of the SDK leaves through one of these.
///
/// An implementation checks the server's certificate and its pins before the first byte of a request is sent. It follows
/// no redirects and does not repeat a request that may have had an effect: it throws ``HTTPTransportError`` with
/// `mayHaveHadEffect` instead.
public protocol HTTPTransport: Sendable {
    /// Sends `call` and returns as soon as the reply's header is there.
    @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply
}
