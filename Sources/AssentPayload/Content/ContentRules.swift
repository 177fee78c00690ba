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
        let hosts = request.headerFields.filter { $0.name.canonicalName == "host" }.map(\.value)
        guard hosts.count <= 1 else { return .badRequest }
        for authority in [request.authority] + hosts {
            var named = request
            named.authority = authority
            guard let other = try? Origin(named) else { return .badRequest }
            guard other == origin else { return .misdirected }
        }
        guard !request.headerFields.contains(where: { connectionFields.contains($0.name.canonicalName) }),
            let path = request.path, !isBelowRoot(path), declaredLength(request) != .invalid
        else { return .badRequest }
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
        let path = path.prefix { $0 != "?" && $0 != "#" }
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
}
