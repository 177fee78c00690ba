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

        var buffer = ByteBufferAllocator().buffer(capacity: 512 + (call.body?.inMemory?.count ?? 0))
        buffer.writeString(request.method.rawValue)
        buffer.writeInteger(UInt8(ascii: " "))
        try Self.writeTarget(request.path, to: &buffer)
        buffer.writeStaticString(" HTTP/1.1\r\nHost: ")
        buffer.writeString(origin.host.description)
        if !origin.hasDefaultPort {
            buffer.writeInteger(UInt8(ascii: ":"))
            buffer.writeString(String(origin.port))
        }
        buffer.writeStaticString(isLast ? "\r\nConnection: close\r\n" : "\r\n")
        try Self.writeFields(request.headerFields, length: call.body.map(\.length) ?? 0, to: &buffer)
        content = Self.writeFraming(method: request.method, body: call.body, to: &buffer)
        bytes = buffer
    }

    /// Sending it twice has the effect of sending it once, its content can be read again, and it proves nothing that
    /// counts once: a second sending needs another proof, which is for the layer that made the first.
    private static func mayRepeat(_ call: HTTPCall) -> Bool {
        idempotent.contains(call.request.method) && call.hasReplayableBody && !call.isSentOnce
            && !call.request.headerFields.contains { proofs.contains($0.name) }
    }

    /// A server takes each of these once (RFC 9449 §11.1; docs/transaction-signing.md, "Calls of a device").
    private static let proofs: [HTTPField.Name] = [.dpop, .signingProof]

    /// RFC 9110 §9.2.2.
    private static let idempotent: Set<HTTPRequest.Method> = [.get, .head, .options, .trace, .put, .delete]

    private static func writeTarget(_ path: String?, to buffer: inout ByteBuffer) throws(HTTPTransportError) {
        let path = path ?? "/"
        let first = path.utf8.first
        guard first == nil || first == UInt8(ascii: "/") || first == UInt8(ascii: "?"),
            path.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "#") })
        else { throw HTTPTransportError(.invalidRequest, "The URL's path is not valid.") }
        if first != UInt8(ascii: "/") { buffer.writeStaticString("/") }
        buffer.writeString(path)
    }

    /// Set here or not allowed at all: fields about the connection or the framing (RFC 9110 §7.6.1).
    private static let reserved: Set<HTTPField.Name> = Set(
        [
            "Host", "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Transfer-Encoding", "TE",
            "Trailer", "Upgrade", "Expect", "HTTP2-Settings",
        ].compactMap { HTTPField.Name($0) })

    private static func writeFields(
        _ fields: HTTPFields, length: Int?, to buffer: inout ByteBuffer
    ) throws(HTTPTransportError) {
        var cookies: String?
        for field in fields {
            guard !reserved.contains(field.name) else {
                throw HTTPTransportError(.invalidRequest, "The transport sets \(field.name) itself.")
            }
            let value = field.value
            guard value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 }) else {
                throw HTTPTransportError(.invalidRequest, "\(field.name) contains a control character.")
            }
            if field.name == .contentLength {
                guard let length, value == String(length) else {
                    throw HTTPTransportError(.invalidRequest, "Content-Length does not match the body.")
                }
            } else if field.name == .cookie {
                // RFC 6265 §5.4: one field.
                cookies = cookies.map { "\($0); \(value)" } ?? value
            } else {
                buffer.writeString(field.name.rawName)
                buffer.writeStaticString(": ")
                buffer.writeString(value)
                buffer.writeStaticString("\r\n")
            }
        }
        if let cookies {
            buffer.writeStaticString("Cookie: ")
            buffer.writeString(cookies)
            buffer.writeStaticString("\r\n")
        }
    }

    private static func writeFraming(
        method: HTTPRequest.Method, body: HTTPBody?, to buffer: inout ByteBuffer
    ) -> Content {
        let length = body.map(\.length) ?? 0
        guard let length else {
            buffer.writeStaticString("Transfer-Encoding: chunked\r\n\r\n")
            return body.map { .chunked($0) } ?? .none
        }
        let expectsContent = method == .post || method == .put || method == .patch
        if length > 0 || expectsContent {
            buffer.writeStaticString("Content-Length: ")
            buffer.writeString(String(length))
            buffer.writeStaticString("\r\n")
        }
        buffer.writeStaticString("\r\n")
        guard let body, length > 0 else { return .none }
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
