import AssentCore
package import HTTPTypes

/// Writes Binary HTTP (RFC 9292), with the known length where that is known.
package enum BinaryHTTPWriter {
    /// The framing indicators (RFC 9292 §3.3).
    enum Framing: UInt8 {
        case request = 0
        case response = 1
        case streamedRequest = 2
        case streamedResponse = 3
    }

    /// A whole request, without padding.
    ///
    /// - Throws: ``PayloadError/malformedContent(_:)`` for a request without scheme, authority or path.
    package static func request(_ request: HTTPRequest, content: [UInt8]) throws(PayloadError) -> [UInt8] {
        try control(request, .request) + text(fields(request.headerFields)) + text(content) + [0]
    }

    /// A whole reply, without padding.
    package static func response(_ response: HTTPResponse, content: [UInt8]) -> [UInt8] {
        control(response, .response) + text(fields(response.headerFields)) + text(content) + [0]
    }

    /// The beginning of a request whose content has `length` bytes, which follow as they are, and then
    /// ``knownEnd``.
    ///
    /// - Throws: ``PayloadError/malformedContent(_:)`` for a request without scheme, authority or path.
    package static func head(_ request: HTTPRequest, contentLength length: Int) throws(PayloadError) -> [UInt8] {
        try control(request, .request) + text(fields(request.headerFields)) + VariableInteger.encode(length)
    }

    /// The beginning of a reply whose content has `length` bytes, which follow as they are, and then ``knownEnd``.
    package static func head(_ response: HTTPResponse, contentLength length: Int) -> [UInt8] {
        control(response, .response) + text(fields(response.headerFields)) + VariableInteger.encode(length)
    }

    /// The end of a content of known length: no trailers.
    package static let knownEnd: [UInt8] = [0]

    /// The beginning of a request whose length is not known.
    ///
    /// - Throws: ``PayloadError/malformedContent(_:)`` for a request without scheme, authority or path.
    package static func head(_ request: HTTPRequest) throws(PayloadError) -> [UInt8] {
        try control(request, .streamedRequest) + fields(request.headerFields) + [0]
    }

    /// The beginning of a reply whose length is not known.
    package static func head(_ response: HTTPResponse) -> [UInt8] {
        control(response, .streamedResponse) + fields(response.headerFields) + [0]
    }

    /// A piece of a streamed content; nothing for an empty one, which would end it.
    package static func piece(_ bytes: [UInt8]) -> [UInt8] { bytes.isEmpty ? [] : text(bytes) }

    /// The end of a streamed content, and no trailers.
    package static let end: [UInt8] = [0, 0]

    private static func control(_ request: HTTPRequest, _ framing: Framing) throws(PayloadError) -> [UInt8] {
        guard let scheme = request.scheme, let authority = request.authority, let path = request.path else {
            throw .malformedContent("the request has no scheme, authority or path")
        }
        return [framing.rawValue] + text(request.method.rawValue) + text(scheme) + text(authority) + text(path)
    }

    private static func control(_ response: HTTPResponse, _ framing: Framing) -> [UInt8] {
        [framing.rawValue] + VariableInteger.encode(response.status.code)
    }

    private static func fields(_ fields: HTTPFields) -> [UInt8] {
        fields.reduce(into: []) { bytes, field in bytes += text(field.name.canonicalName) + text(field.value) }
    }

    private static func text(_ text: String) -> [UInt8] { self.text(Array(text.utf8)) }

    private static func text(_ bytes: [UInt8]) -> [UInt8] { VariableInteger.encode(bytes.count) + bytes }
}
