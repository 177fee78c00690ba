import Foundation

/// One part of a form with files (RFC 7578 §4).
public struct MultipartPart: Sendable {
    /// The name of the form's field.
    public var name: String

    /// The content. A stream is read as it is sent.
    public var content: HTTPBody

    /// The file's name; `nil` for a plain field.
    public var fileName: String?

    /// The media type. Without one, a file is `application/octet-stream` and a field is text (RFC 7578 §4.4).
    public var contentType: String?

    /// The media type of bytes of which nothing is known (RFC 2046 §4.5.1).
    package static let octetStream = "application/octet-stream"

    /// A part of any content.
    public init(name: String, content: HTTPBody, fileName: String? = nil, contentType: String? = nil) {
        self.name = name
        self.content = content
        self.fileName = fileName
        self.contentType = contentType
    }

    /// A part in memory.
    public init(name: String, data: [UInt8], fileName: String? = nil, contentType: String? = nil) {
        self.init(name: name, content: HTTPBody(data), fileName: fileName, contentType: contentType)
    }

    /// A file, which is read as it is sent.
    ///
    /// - Parameters:
    ///   - name: the name of the form's field.
    ///   - path: where the file is.
    ///   - fileName: the name that the server is told; `nil` for the file's own.
    ///   - contentType: the media type.
    /// - Throws: ``HTTPTransportError`` with code `bodyFailed` when it is not a file that can be read.
    public init(name: String, file path: String, fileName: String? = nil, contentType: String? = nil) throws {
        self.init(
            name: name, content: try HTTPBody(file: path),
            fileName: fileName ?? URL(fileURLWithPath: path).lastPathComponent, contentType: contentType)
    }

    /// The part's header with the empty line behind it.
    ///
    /// - Throws: ``WireError``: `malformed` for what cannot stand in a header.
    func head() throws(WireError) -> [UInt8] {
        var head: [UInt8] = []
        head.reserveCapacity(128)
        head += "Content-Disposition: form-data; name=\"".utf8
        try Self.write(name, to: &head)
        if let fileName {
            head += "\"; filename=\"".utf8
            try Self.write(fileName, to: &head)
        }
        head.append(UInt8(ascii: "\""))
        if let type = contentType ?? fileName.map({ _ in Self.octetStream }) {
            guard !type.isEmpty, type.utf8.allSatisfy(\.isASCIIPrintable) else {
                throw WireError(.malformed, "the media type of a part is not printable ASCII")
            }
            head += "\r\nContent-Type: ".utf8
            head += type.utf8
        }
        head += "\r\n\r\n".utf8
        return head
    }

    /// Names are escaped as HTML does ("Multipart form data"): nothing but the quotation mark and line breaks.
    private static func write(_ name: String, to head: inout [UInt8]) throws(WireError) {
        if name.utf8.allSatisfy({ $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != 0x7F }) {
            head += name.utf8
            return
        }
        for byte in name.utf8 {
            switch byte {
            case UInt8(ascii: "\""): head += "%22".utf8
            case 0x0D: head += "%0D".utf8
            case 0x0A: head += "%0A".utf8
            case 0x09: head.append(byte)
            case ..<0x20, 0x7F: throw WireError(.malformed, "the name of a part has a control character")
            default: head.append(byte)
            }
        }
    }
}
