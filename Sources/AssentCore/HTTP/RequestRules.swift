package import HTTPTypes

/// What a request may say that we send ourselves, in plain HTTP/1.1 or sealed.
package enum RequestRules {
    /// Set by the transport or not allowed at all: fields about the connection or the framing (RFC 9110 §7.6.1).
    private static let reserved: Set<HTTPField.Name> = Set(
        [
            "Host", "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Transfer-Encoding", "TE",
            "Trailer", "Upgrade", "Expect", "HTTP2-Settings",
        ].compactMap { HTTPField.Name($0) })

    /// A server takes each of these once (RFC 9449 §11.1; docs/transaction-signing.md, "Calls of a device").
    private static let proofs: [HTTPField.Name] = [.dpop, .signingProof]

    /// The request target of a path (RFC 9112 §3.2.1), which begins with `/`.
    ///
    /// - Throws: ``HTTPTransportError`` with code `invalidRequest`.
    package static func target(_ path: String?) throws(HTTPTransportError) -> String {
        let path = path ?? "/"
        let first = path.utf8.first
        guard first == nil || first == UInt8(ascii: "/") || first == UInt8(ascii: "?"),
            path.allBytes(satisfy: { $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "#") })
        else { throw HTTPTransportError(.invalidRequest, "The URL's path is not valid.") }
        return first == UInt8(ascii: "/") ? path : "/" + path
    }

    /// Gives `write` the fields that are sent: cookies as one field (RFC 6265 §5.4), and no `Content-Length`, which
    /// ``declaredLength(of:)`` says.
    ///
    /// - Parameters:
    ///   - call: what is sent.
    ///   - write: gets each field, in order.
    /// - Throws: ``HTTPTransportError`` with code `invalidRequest`.
    package static func forEachField(
        of call: HTTPCall, _ write: (HTTPField.Name, String) -> Void
    ) throws(HTTPTransportError) {
        let length = call.body.map(\.length) ?? 0
        var cookies: String?
        for field in call.request.headerFields {
            guard !reserved.contains(field.name) else {
                throw HTTPTransportError(.invalidRequest, "The transport sets \(field.name) itself.")
            }
            let value = field.value
            guard value.allBytes(satisfy: { $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 }) else {
                throw HTTPTransportError(.invalidRequest, "\(field.name) contains a control character.")
            }
            if field.name == .contentLength {
                guard let length, value == String(length) else {
                    throw HTTPTransportError(.invalidRequest, "Content-Length does not match the body.")
                }
            } else if field.name == .cookie {
                cookies = cookies.map { "\($0); \(value)" } ?? value
            } else {
                write(field.name, value)
            }
        }
        if let cookies { write(.cookie, cookies) }
    }

    /// Whether ``forEachField(of:_:)`` gives the fields of a call as they stand there, and no length is said as well.
    package static func sendsFieldsAsGiven(_ call: HTTPCall) -> Bool {
        declaredLength(of: call) == nil
            && !call.request.headerFields.contains { $0.name == .cookie || $0.name == .contentLength }
    }

    /// The `Content-Length` of a call; `nil` when it says none: its length is not known, or it has no content and its
    /// method expects none.
    package static func declaredLength(of call: HTTPCall) -> Int? {
        guard let length = call.body.map(\.length) ?? 0 else { return nil }
        return length > 0 || [.post, .put, .patch].contains(call.request.method) ? length : nil
    }

    /// Whether a request proves something that counts once: a second sending needs another proof, which is for the
    /// layer that made the first.
    package static func carriesProof(_ fields: HTTPFields) -> Bool { fields.contains { proofs.contains($0.name) } }
}
