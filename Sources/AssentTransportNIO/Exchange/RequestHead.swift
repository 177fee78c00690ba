import AssentCore
import HTTPTypes
import NIOCore

/// A request as it goes over the wire, checked.
struct RequestHead: Sendable {
    let origin: Origin
    let bytes: ByteBuffer
    let content: Content
    let isHEAD: Bool
    /// Whether it may go out again by itself although bytes of it have left, where a kept connection turns out to be
    /// stale.
    let mayRepeat: Bool
    /// Whether it may not be written to a connection that the peer is known to have closed: nobody would send it again,
    /// or another one in its place.
    let needsLiveConnection: Bool

    enum Content: Sendable {
        /// Nothing follows, or it is in `bytes` already.
        case none
        case fixed(HTTPBody, length: Int)
        case chunked(HTTPBody)
    }

    /// Whether content follows `bytes`.
    var hasUpload: Bool {
        if case .none = content { false } else { true }
    }

    /// Content up to this size goes out in one piece with the head.
    private static let joined = 64 << 10

    /// A request's head. With `isLast` it says that the connection ends after it (`Connection: close`).
    init(_ call: HTTPCall, to origin: Origin, isLast: Bool = false) throws(HTTPTransportError) {
        let request = call.request
        self.origin = origin
        guard request.method != .connect, request.extendedConnectProtocol == nil else {
            throw HTTPTransportError(.invalidRequest, "CONNECT is not supported.")
        }
        isHEAD = request.method == .head
        mayRepeat = Self.mayRepeat(call)
        needsLiveConnection = !mayRepeat && !call.isReplacedAbove

        var buffer = ByteBufferAllocator().buffer(capacity: 512 + (call.body?.inMemory?.count ?? 0))
        buffer.writeString(request.method.rawValue)
        buffer.writeInteger(UInt8(ascii: " "))
        buffer.writeString(try RequestRules.target(request.path))
        buffer.writeStaticString(" HTTP/1.1\r\nHost: ")
        buffer.writeString(origin.host.description)
        if !origin.hasDefaultPort {
            buffer.writeInteger(UInt8(ascii: ":"))
            buffer.writeString(String(origin.port))
        }
        buffer.writeStaticString(isLast ? "\r\nConnection: close\r\n" : "\r\n")
        try RequestRules.forEachField(of: call) { name, value in
            buffer.writeString(name.rawName)
            buffer.writeStaticString(": ")
            buffer.writeString(value)
            buffer.writeStaticString("\r\n")
        }
        content = Self.writeFraming(call, to: &buffer)
        bytes = buffer
    }

    /// Sending it twice has the effect of sending it once, its content can be read again, and it proves nothing that
    /// counts once: a second sending needs another proof, which is for the layer that made the first.
    private static func mayRepeat(_ call: HTTPCall) -> Bool {
        idempotent.contains(call.request.method) && call.hasReplayableBody && !call.isSentOnce
            && !RequestRules.carriesProof(call.request.headerFields)
    }

    /// RFC 9110 §9.2.2.
    private static let idempotent: Set<HTTPRequest.Method> = [.get, .head, .options, .trace, .put, .delete]

    private static func writeFraming(_ call: HTTPCall, to buffer: inout ByteBuffer) -> Content {
        if let body = call.body, body.length == nil {
            buffer.writeStaticString("Transfer-Encoding: chunked\r\n\r\n")
            return .chunked(body)
        }
        let length = RequestRules.declaredLength(of: call)
        if let length {
            buffer.writeStaticString("Content-Length: ")
            buffer.writeString(String(length))
            buffer.writeStaticString("\r\n")
        }
        buffer.writeStaticString("\r\n")
        guard let body = call.body, let length, length > 0 else { return .none }
        if let content = body.inMemory, content.count <= joined {
            buffer.writeBytes(content)
            return .none
        }
        return .fixed(body, length: length)
    }
}

extension SocketAddress {
    /// Whether packets to this address stay on the machine.
    var isLoopback: Bool {
        guard let text = ipAddress, let host = try? NormalizedHost(text) else { return false }
        return host.isIPAddress && host.isLoopback
    }
}
