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
        var bytes = try head(request, contentLength: content.count)
        bytes += content
        bytes += knownEnd
        return bytes
    }

    /// A whole reply, without padding.
    package static func response(_ response: HTTPResponse, content: [UInt8]) -> [UInt8] {
        var bytes = head(response, contentLength: content.count)
        bytes += content
        bytes += knownEnd
        return bytes
    }

    /// The beginning of a request whose content has `length` bytes, which follow as they are, and then
    /// ``knownEnd``.
    ///
    /// - Throws: ``PayloadError/malformedContent(_:)`` for a request without scheme, authority or path.
    package static func head(_ request: HTTPRequest, contentLength length: Int) throws(PayloadError) -> [UInt8] {
        var bytes = beginning(length)
        try control(request, .request, to: &bytes)
        known(request.headerFields, contentLength: length, to: &bytes)
        return bytes
    }

    /// The beginning of a reply whose content has `length` bytes, which follow as they are, and then ``knownEnd``.
    package static func head(_ response: HTTPResponse, contentLength length: Int) -> [UInt8] {
        var bytes = beginning(length)
        control(response, .response, to: &bytes)
        known(response.headerFields, contentLength: length, to: &bytes)
        return bytes
    }

    /// The end of a content of known length: no trailers.
    package static let knownEnd: [UInt8] = [0]

    /// The beginning of a request whose length is not known.
    ///
    /// - Throws: ``PayloadError/malformedContent(_:)`` for a request without scheme, authority or path.
    package static func head(_ request: HTTPRequest) throws(PayloadError) -> [UInt8] {
        var bytes = beginning(0)
        try control(request, .streamedRequest, to: &bytes)
        fields(request.headerFields, to: &bytes)
        bytes.append(0)
        return bytes
    }

    /// The beginning of a reply whose length is not known.
    package static func head(_ response: HTTPResponse) -> [UInt8] {
        var bytes = beginning(0)
        control(response, .streamedResponse, to: &bytes)
        fields(response.headerFields, to: &bytes)
        bytes.append(0)
        return bytes
    }

    /// A piece of a streamed content; nothing for an empty one, which would end it.
    package static func piece(_ bytes: [UInt8]) -> [UInt8] {
        guard !bytes.isEmpty else { return [] }
        var piece: [UInt8] = []
        piece.reserveCapacity(VariableInteger.longest + bytes.count)
        VariableInteger.append(bytes.count, to: &piece)
        piece += bytes
        return piece
    }

    /// What stands before a piece of so many bytes; nothing for an empty one.
    package static func pieceHead(_ count: Int) -> [UInt8] {
        guard count > 0 else { return [] }
        var head: [UInt8] = []
        VariableInteger.append(count, to: &head)
        return head
    }

    /// The end of a streamed content, and no trailers.
    package static let end: [UInt8] = [0, 0]

    /// With room for a usual head, and for a content that is sent with it and its padding.
    private static func beginning(_ length: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(length <= roomLimit ? 2 * length + 1_024 : 1_024)
        return bytes
    }

    /// A longer content is not sent with its head.
    private static let roomLimit = 65_536

    private static func control(
        _ request: HTTPRequest, _ framing: Framing, to bytes: inout [UInt8]
    ) throws(PayloadError) {
        guard let scheme = request.scheme, let authority = request.authority, let path = request.path else {
            throw .malformedContent("the request has no scheme, authority or path")
        }
        bytes.append(framing.rawValue)
        for text in [request.method.rawValue, scheme, authority, path] { append(text, to: &bytes) }
    }

    private static func control(_ response: HTTPResponse, _ framing: Framing, to bytes: inout [UInt8]) {
        bytes.append(framing.rawValue)
        VariableInteger.append(response.status.code, to: &bytes)
    }

    /// A section of known length, and the content's length behind it.
    private static func known(_ fields: HTTPFields, contentLength length: Int, to bytes: inout [UInt8]) {
        var section = 0
        for field in fields { section += size(of: field.name.canonicalName) + size(of: field.value) }
        VariableInteger.append(section, to: &bytes)
        self.fields(fields, to: &bytes)
        VariableInteger.append(length, to: &bytes)
    }

    private static func fields(_ fields: HTTPFields, to bytes: inout [UInt8]) {
        for field in fields {
            append(field.name.canonicalName, to: &bytes)
            append(field.value, to: &bytes)
        }
    }

    private static func append(_ text: String, to bytes: inout [UInt8]) {
        VariableInteger.append(text.utf8.count, to: &bytes)
        bytes += text.utf8
    }

    /// How many bytes ``append(_:to:)`` makes of a text.
    private static func size(of text: String) -> Int {
        let count = text.utf8.count
        return VariableInteger.length(of: count) + count
    }
}
