package import Foundation
public import HTTPTypes

/// One request on its way out.
public struct HTTPCall: Sendable {
    /// Method, URL and header fields.
    public var request: HTTPRequest

    /// The content, if there is one.
    public var body: HTTPBody?

    /// How long it may take and how much may come back.
    public var limits: HTTPLimits

    /// Whether no layer may send the call a second time, whatever the reply is, and also when there is none: for a call
    /// whose approval can be used once. What was refused for want of a nonce, or has not left at all, was not sent.
    public var isSentOnce = false

    /// Whether the layer above sends another one in its place where a kept connection turns out to have ended. Then the
    /// transport need not ask the system first whether it has, which takes longer than writing the call.
    package var isReplacedAbove = false

    /// Whether it is refused where it would go out as it is, in an app that seals its calls (payload encryption).
    package var mustBeSealed = false

    /// Suspends the call while it is sent; `nil` when nobody wants to. It stays with the call in every layer.
    package var control: CallControl?

    /// That the probes were asked for this call; `nil` when nobody has done so yet.
    package var examination: IntegrityExamination?

    private var known: KnownOrigin?

    /// A request with its content.
    public init(_ request: HTTPRequest, body: HTTPBody? = nil, limits: HTTPLimits = .init()) {
        self.request = request
        self.body = body
        self.limits = limits
    }

    /// A call to an absolute URL, which is used exactly as it is written; see `HTTPRequest.init(_:url:headerFields:)`.
    ///
    /// - Throws: ``WireError`` as ``Origin/init(_:)-(String)``.
    public init(
        _ method: HTTPRequest.Method, url: String, headerFields: HTTPFields = [:], body: HTTPBody? = nil,
        limits: HTTPLimits = .init()
    ) throws(WireError) {
        self.init(
            method, url: url, to: try Origin(url), headerFields: headerFields, body: body, limits: limits)
    }

    /// The same for somebody who remembers where the call before went.
    ///
    /// - Throws: ``WireError`` as ``Origin/init(_:)-(String)``.
    package init(
        _ method: HTTPRequest.Method, url: String, headerFields: HTTPFields, body: HTTPBody?, limits: HTTPLimits,
        remembering origins: OriginMemory
    ) throws(WireError) {
        self.init(
            method, url: url, to: try origins.origin(of: url), headerFields: headerFields, body: body, limits: limits)
    }

    private init(
        _ method: HTTPRequest.Method, url: String, to origin: Origin, headerFields: HTTPFields, body: HTTPBody?,
        limits: HTTPLimits
    ) {
        let request = HTTPRequest(method, url: url, scheme: origin.scheme, headerFields: headerFields)
        self.init(request, body: body, limits: limits)
        known = KnownOrigin(origin, of: request)
    }

    /// Where the call goes. It is worked out once and carried with the call; every layer may read it.
    ///
    /// - Throws: ``WireError`` as ``Origin/init(_:)-(String)``.
    public var origin: Origin {
        get throws(WireError) {
            if let carriedOrigin { return carriedOrigin }
            return try Origin(request)
        }
    }

    /// The origin that was worked out before, if the request still goes there.
    var carriedOrigin: Origin? {
        guard let known, known.isOf(request) else { return nil }
        return known.origin
    }

    /// Whether its method asks for no change (RFC 9110 §9.2.1).
    public var isSafe: Bool {
        switch request.method {
        case .get, .head, .options, .trace: true
        default: false
        }
    }

    /// Whether a layer may send it again because of the reply: it asks for no change, and its body can be read again.
    public var mayBeRepeated: Bool { isSafe && !isSentOnce && hasReplayableBody }

    /// The same call when some of its time has passed before it is sent, so that it takes no longer in all than it may.
    package func afterWaiting(since begun: Date, _ clock: any WallClock) -> HTTPCall {
        guard let total = limits.total else { return self }
        var call = self
        call.limits.total = max(.milliseconds(1), total - .seconds(max(0, clock.now.timeIntervalSince(begun))))
        return call
    }

    /// Whether its body can be read again, or there is none.
    package var hasReplayableBody: Bool { body?.isReplayable != false }
}

/// An origin with the texts that it was read from, so that it is not taken for that of a request which was changed
/// since. It is a class because calls are copied from layer to layer with it.
final class KnownOrigin: Sendable {
    let origin: Origin
    private let scheme: String?
    private let authority: String?

    init(_ origin: Origin, of request: HTTPRequest) {
        self.origin = origin
        scheme = request.scheme
        authority = request.authority
    }

    /// Swift takes U+212A for `K`; a text that was read is ASCII, so one that only looks like it has more bytes.
    func isOf(_ request: HTTPRequest) -> Bool {
        guard scheme == request.scheme else { return false }
        let other = request.authority
        return authority == other && authority?.utf8.count == other?.utf8.count
    }
}

/// Bounds of one exchange.
public struct HTTPLimits: Sendable, Hashable {
    /// Until the connection with its TLS handshake and trust checks is there.
    public var connect: Duration

    /// Between two arrivals of bytes.
    public var read: Duration

    /// From the end of the request to the end of the reply's header; `nil` when ``read`` bounds the silence there too.
    package var head: Duration?

    /// From the start to the last byte of the reply; `nil` means no limit. Zero or less is refused: a call that may
    /// take no time cannot be sent.
    public var total: Duration?

    /// The bytes of a reply's content that are accepted.
    public var replyBytes: Int

    /// Bounds; the defaults suit JSON calls.
    public init(
        connect: Duration = .seconds(10), read: Duration = .seconds(30), total: Duration? = .seconds(60),
        replyBytes: Int = 4 << 20
    ) {
        self.connect = connect
        self.read = read
        self.total = total
        self.replyBytes = replyBytes
    }

    /// The same limits, each time limit at least `least`. A total of zero stays zero.
    package func atLeast(_ least: Duration) -> HTTPLimits {
        var limits = self
        limits.connect = max(connect, least)
        limits.read = max(read, least)
        limits.head = head.map { max($0, least) }
        limits.total = total.map { $0 > .zero ? max($0, least) : $0 }
        return limits
    }
}

/// What came back.
public struct HTTPReply: Sendable {
    /// Status and header fields.
    public var response: HTTPResponse

    /// The content; reading it stops at ``HTTPLimits/replyBytes``.
    public var body: HTTPBody {
        // Also what a layer puts in its place.
        didSet { body.isOfReply = true }
    }

    /// Whether the user was asked for it.
    public var authorization = ReplyAuthorization.notAsked

    /// A reply.
    public init(_ response: HTTPResponse, body: HTTPBody = .empty) {
        self.response = response
        self.body = body
        self.body.isOfReply = true
    }

    /// The status code, for example 200.
    public var status: Int { response.status.code }
}

/// Carries a request to its server and brings the reply. Every byte of the SDK leaves through one of these.
///
/// An implementation checks the server's certificate and its pins before the first byte of a request is sent. It
/// follows no redirects and does not repeat a request that may have had an effect: it throws ``HTTPTransportError``
/// with `mayHaveHadEffect` instead.
public protocol HTTPTransport: Sendable {
    /// Sends `call` and returns as soon as the reply's header is there.
    @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply
}

extension HTTPReply {
    /// Reads the content, which must be JSON, as a type of the app's own.
    ///
    /// ```swift
    /// struct Account: Decodable { let id: UInt64, balance: Decimal }
    /// let accounts = try await reply.json([Account].self)
    /// ```
    ///
    /// The status is not looked at. See ``JSONValue/decode(_:)`` for how numbers and dates are read.
    ///
    /// - Parameters:
    ///   - type: the type.
    ///   - limits: bounds of the JSON.
    /// - Returns: the content.
    /// - Throws: ``JSONError`` when the content is not JSON, ``JSONDecodingError`` when it is other JSON,
    ///   `HTTPTransportError` when it cannot be read.
    public func json<Value: Decodable>(
        _ type: Value.Type, limits: JSONLimits = JSONLimits()
    ) async throws -> Value {
        try JSONValue.parse(try await body.collect(upTo: limits.bytes), limits: limits).decode(type)
    }
}
