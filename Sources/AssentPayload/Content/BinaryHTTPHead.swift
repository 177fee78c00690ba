import AssentCore
import HTTPTypes

/// Reads the control data and the field section of one message.
struct BinaryHTTPHead {
    private(set) var rest: ArraySlice<UInt8>
    private(set) var isStreamed = false
    /// Whether the bytes end where the field section would begin.
    private(set) var endsBeforeFields = false
    private let kind: FrameHead.Kind
    /// Most heads have no more fields: there is room for them at once, and not for one, two, four and eight.
    private static let usualFields = 8

    init(_ bytes: ArraySlice<UInt8>, expecting kind: FrameHead.Kind) {
        rest = bytes
        self.kind = kind
    }

    /// The head; `nil` when bytes are missing.
    mutating func read() throws(PayloadError) -> BinaryHTTPReader.Part? {
        guard let indicator = VariableInteger.read(&rest) else { return nil }
        guard let framing = UInt8(exactly: indicator).flatMap(BinaryHTTPWriter.Framing.init(rawValue:)) else {
            throw .malformedContent("its framing is unknown")
        }
        isStreamed = framing == .streamedRequest || framing == .streamedResponse
        let isRequest = framing == .request || framing == .streamedRequest
        guard isRequest == (kind == .request) else { throw .malformedContent("it is not a \(kind)") }
        return isRequest ? try request() : try response()
    }

    private mutating func request() throws(PayloadError) -> BinaryHTTPReader.Part? {
        guard let method = try text(), let scheme = try text(), let authority = try text(), let path = try text(),
            let fields = try fields()
        else { return nil }
        guard let method = HTTPRequest.Method(method) else { throw .malformedContent("its method is not a token") }
        guard scheme == "https", path.utf8.first == UInt8(ascii: "/"), !authority.isEmpty,
            !authority.utf8.contains(UInt8(ascii: "@")), authority.utf8.allSatisfy(Self.isVisible),
            path.utf8.allSatisfy(Self.isVisible)
        else { throw .malformedContent("its target is not one of https") }
        return .request(
            HTTPRequest(method: method, scheme: scheme, authority: authority, path: path, headerFields: fields))
    }

    private mutating func response() throws(PayloadError) -> BinaryHTTPReader.Part? {
        guard let status = VariableInteger.read(&rest) else { return nil }
        guard 200...599 ~= status else { throw .malformedContent("its status is not a final one") }
        guard let fields = try fields() else { return nil }
        return .response(HTTPResponse(status: .init(code: Int(status)), headerFields: fields))
    }

    /// A field section, with its length or up to an empty name.
    private mutating func fields() throws(PayloadError) -> HTTPFields? {
        var fields = HTTPFields()
        fields.reserveCapacity(Self.usualFields)
        endsBeforeFields = rest.isEmpty
        guard isStreamed else {
            guard let length = VariableInteger.read(&rest) else { return nil }
            guard length <= UInt64(BinaryHTTPReader.headLimit) else { throw .malformedContent("its head is too large") }
            guard rest.count >= Int(length) else { return nil }
            let behind = rest.dropFirst(Int(length))
            rest = rest.prefix(Int(length))
            while !rest.isEmpty {
                guard let field = try field() else { throw .malformedContent("a field goes beyond its section") }
                try append(field, to: &fields)
            }
            rest = behind
            return fields
        }
        while true {
            guard let first = rest.first else { return nil }
            if first == 0 {
                rest = rest.dropFirst()
                return fields
            }
            guard let field = try field() else { return nil }
            try append(field, to: &fields)
        }
    }

    private func append(_ field: HTTPField, to fields: inout HTTPFields) throws(PayloadError) {
        guard fields.count < BinaryHTTPReader.fieldLimit else { throw .malformedContent("it has too many fields") }
        fields.append(field)
    }

    private mutating func field() throws(PayloadError) -> HTTPField? {
        guard let name = try text(), let value = try text() else { return nil }
        // A name that is parsed is refused in upper case, and may be that of a pseudo-header.
        guard name.utf8.first != UInt8(ascii: ":"), let name = HTTPField.Name(parsed: name) else { throw Self.badField }
        // A field keeps the very text that it gets, and another one in the place of a text that is not valid: so each
        // value is looked through once.
        let field = HTTPField(name: name, value: value)
        guard field.value == value else { throw Self.badField }
        return field
    }

    private static let badField = PayloadError.malformedContent(
        "a field's name or value is not one of HTTP in lower case")

    private mutating func text() throws(PayloadError) -> String? {
        guard let length = VariableInteger.read(&rest) else { return nil }
        guard length <= UInt64(BinaryHTTPReader.headLimit) else { throw .malformedContent("its head is too large") }
        guard rest.count >= Int(length) else { return nil }
        guard let text = String(utf8: rest.prefix(Int(length))) else {
            throw .malformedContent("a text in its head is not UTF-8")
        }
        guard !MarksInARow.areTooMany(in: text) else {
            throw .malformedContent("a text in its head has too many marks in a row")
        }
        rest = rest.dropFirst(Int(length))
        return text
    }

    private static func isVisible(_ byte: UInt8) -> Bool { 0x21...0x7E ~= byte }
}
