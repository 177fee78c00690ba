package import AssentCore
package import HTTPTypes

/// Why a request that was opened does not reach the handler. The answer is sealed.
package enum ContentRefusal: Int, Error, Hashable, Sendable, CaseIterable {
    /// It is not Binary HTTP, or says what only belongs to a connection or to payload encryption itself.
    case badRequest = 400
    /// It is for another origin (RFC 9110 §15.5.20).
    case misdirected = 421
}

/// What a sealed request may not say (docs/payload-encryption.md, "Content").
package enum ContentRules {
    /// Below this no sealed request goes: a message inside of a message has no use but to hide its length.
    package static let root = "/assent-pe"

    /// Fields that belong to a connection, and those by which somebody behind could read another request out of it.
    private static let connectionFields: Set<String> = [
        "transfer-encoding", "connection", "upgrade", "expect", "te", "trailer", "keep-alive", "proxy-connection",
    ]

    /// Why `request` is refused at the listener of `origin`; `nil` when it is not.
    package static func refusal(of request: HTTPRequest, at origin: Origin) -> ContentRefusal? {
        // A field Host would be a second authority.
        var hosts: [String] = []
        var isOfConnection = false
        for field in request.headerFields {
            let name = field.name.canonicalName
            if name == "host" { hosts.append(field.value) }
            if connectionFields.contains(name) { isOfConnection = true }
        }
        guard hosts.count <= 1 else { return .badRequest }
        let isOfScheme = request.scheme?.utf8.elementsEqual(origin.scheme.utf8) == true
        let usual = origin.authority
        for authority in [request.authority] + hosts {
            // An authority as we write it ourselves needs no reading.
            if isOfScheme, authority?.utf8.elementsEqual(usual.utf8) == true { continue }
            var named = request
            named.authority = authority
            guard let other = try? Origin(named) else { return .badRequest }
            guard other == origin else { return .misdirected }
        }
        guard !isOfConnection, let path = request.path, !isBelowRoot(path), declaredLength(request) != .invalid else {
            return .badRequest
        }
        return nil
    }

    /// How many bytes of content a request says that it has.
    enum DeclaredLength: Hashable, Sendable {
        case none
        case bytes(UInt64)
        /// It is not a number, or there twice.
        case invalid
    }

    static func declaredLength(_ request: HTTPRequest) -> DeclaredLength {
        let values = request.headerFields[values: .contentLength]
        guard let value = values.first else { return .none }
        guard values.count == 1, 1...19 ~= value.utf8.count, value.utf8.allSatisfy(\.isASCIIDigit),
            let length = UInt64(value)
        else { return .invalid }
        return .bytes(length)
    }

    /// However it is written: with escapes, dots or more slashes.
    private static func isBelowRoot(_ path: String) -> Bool {
        // By bytes: to find where characters end takes longer than all the rest.
        let bytes = path.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        // Most paths have nothing by which their first segment could be another one than it seems.
        guard bytes.contains(where: isOdd) else {
            let slash = UInt8(ascii: "/")
            let first = bytes.drop(while: { $0 == slash }).prefix(while: { $0 != slash })
            return first.lazy.map(\.asciiLowercased).elementsEqual(root.utf8.dropFirst())
        }
        let path = Substring(bytes)
        // Bytes that are not text are not escapes of this name.
        let decoded = PercentEncoding.decode(path) ?? String(path)
        var segments: [Substring] = []
        for segment in decoded.split(whereSeparator: { $0 == "/" || $0 == "\\" }) {
            switch segment {
            case ".": continue
            case "..": _ = segments.popLast()
            default: segments.append(segment)
            }
        }
        return segments.first.map { "/" + $0.lowercased() == root } ?? false
    }

    private static func isOdd(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "%") || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "\\") || !byte.isASCIIVisible
    }
}
