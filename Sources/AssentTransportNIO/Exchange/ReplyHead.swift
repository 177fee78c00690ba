import AssentCore
import HTTPTypes

/// A status line with its header fields, and what they say about the framing.
struct ReplyHead {
    private(set) var response: HTTPResponse
    private(set) var contentLength: Int?
    private(set) var isChunked = false
    private(set) var keepsAlive: Bool

    /// Reads a head from its bytes, which end in an empty line.
    init(_ bytes: [UInt8], limits: ReplyParser.Limits) throws(HTTPTransportError) {
        var lines = Lines(rest: bytes[...])
        guard let statusLine = lines.next() else { throw ReplyParser.malformed("There is no status line.") }
        let (status, isHTTP11) = try Self.status(statusLine)
        keepsAlive = isHTTP11
        response = HTTPResponse(status: status)
        var fields: [HTTPField] = []
        fields.reserveCapacity(8)
        while let line = lines.next(), !line.isEmpty {
            let field = try Self.field(line)
            try note(field, isHTTP11: isHTTP11)
            fields.append(field)
        }
        // All at once: appending each one goes through generic code of another module.
        response.headerFields.reserveCapacity(fields.count)
        response.headerFields.replaceSubrange(0..<0, with: fields)
        guard !(isChunked && contentLength != nil) else {
            throw ReplyParser.malformed("The reply gives its length in two ways.")
        }
    }

    private mutating func note(_ field: HTTPField, isHTTP11: Bool) throws(HTTPTransportError) {
        switch field.name {
        case .contentLength:
            let digits = field.value.utf8
            guard contentLength == nil, (1...18).contains(digits.count),
                digits.allSatisfy({ (0x30...0x39).contains($0) }), let length = Int(field.value)
            else { throw ReplyParser.malformed("Content-Length is not one number.") }
            contentLength = length
        case .transferEncoding:
            guard isHTTP11, !isChunked, field.value.lowercased() == "chunked" else {
                throw ReplyParser.malformed("Transfer-Encoding is not chunked.")
            }
            isChunked = true
        case .connection:
            let value = field.value.lowercased()
            guard value != "keep-alive" else { return }
            if value.split(separator: ",").contains(where: { $0.trimmingSpace == "close" }) { keepsAlive = false }
        default: break
        }
    }

    /// `HTTP/1.1 200 OK`; the reason may be empty, and the space before it missing.
    private static func status(_ line: ArraySlice<UInt8>) throws(HTTPTransportError) -> (HTTPResponse.Status, Bool) {
        let version = line.prefix(8)
        let isHTTP11 = version.elementsEqual("HTTP/1.1".utf8)
        let afterVersion = line.dropFirst(8)
        let digits = afterVersion.dropFirst().prefix(3)
        let reason = afterVersion.dropFirst(4)
        guard isHTTP11 || version.elementsEqual("HTTP/1.0".utf8), afterVersion.first == 0x20, digits.count == 3,
            digits.allSatisfy({ (0x30...0x39).contains($0) }), reason.isEmpty || reason.first == 0x20,
            reason.allSatisfy(isText)
        else { throw ReplyParser.malformed("The status line is not valid in HTTP/1.1.") }
        let code = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        guard (100...599).contains(code) else { throw ReplyParser.malformed("There is no status \(code).") }
        return (.init(code: code, reasonPhrase: String(decoding: reason.dropFirst(), as: UTF8.self)), isHTTP11)
    }

    /// RFC 9112 §5: a token, a colon at once, the value between optional spaces.
    static func field(_ line: ArraySlice<UInt8>) throws(HTTPTransportError) -> HTTPField {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")),
            let name = HTTPField.Name(String(decoding: line[..<colon], as: UTF8.self))
        else { throw ReplyParser.malformed("A header line has no valid name.") }
        var value = line[line.index(after: colon)...].drop(while: isSpace)
        while let last = value.last, isSpace(last) { value.removeLast() }
        guard value.allSatisfy(isText) else {
            throw ReplyParser.malformed("A header field contains a control character.")
        }
        // Of bytes the field would make a text in the generic way; what is not a text it keeps as bytes.
        let field =
            String(utf8: value).map { HTTPField(name: name, value: $0) } ?? HTTPField(name: name, value: value)
        // Most are too short, and need no text.
        guard value.count <= 2 * MarksInARow.limit || !MarksInARow.areTooMany(in: field.value) else {
            throw ReplyParser.malformed("A header field has too many marks in a row.")
        }
        return field
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
    private static func isText(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7f || byte == 0x09 }

    /// Lines that end in CRLF; a lone CR or LF stays inside and is refused as a control character.
    private struct Lines {
        var rest: ArraySlice<UInt8>

        mutating func next() -> ArraySlice<UInt8>? {
            var from = rest.startIndex
            while let end = rest[from...].firstIndex(of: 0x0d) {
                let after = rest.index(after: end)
                guard after < rest.endIndex else { return nil }
                if rest[after] == 0x0a {
                    defer { rest = rest[rest.index(after: after)...] }
                    return rest[..<end]
                }
                from = after
            }
            return nil
        }
    }
}

extension Substring {
    fileprivate var trimmingSpace: Substring {
        var text = self.drop { $0 == " " || $0 == "\t" }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return text
    }
}
