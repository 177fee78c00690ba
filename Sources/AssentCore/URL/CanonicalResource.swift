/// A URL in the one form in which it is decided on, bound to a transaction and forwarded: scheme and host in lower
/// case, the port written, slashes single, escapes in upper case and only where they are needed (RFC 3986 §6.2.2). The
/// query stays as it was sent.
///
/// A URL that two programs could read differently (dot segments, semicolons in the path, encoded slashes, double
/// encoding, …) has no such form.
package struct CanonicalResource: Sendable, Hashable {
    /// `http` or `https`.
    package let scheme: String

    /// The host in lower case; an IPv6 address in brackets.
    package let host: String

    /// The port, 80 or 443 when the URL had none.
    package let port: UInt16

    /// The path; begins with a slash.
    package let path: String

    /// What stands behind the question mark; `nil` when there is none.
    package let query: String?

    /// The longest URL, in bytes.
    package static let maximumLength = 8192

    /// Reads a URL.
    ///
    /// - Throws: ``ResourceURLError``.
    package init(_ url: String) throws(ResourceURLError) {
        let bytes = Array(url.utf8)
        guard bytes.count <= Self.maximumLength else { throw .tooLong }
        try Self.check(bytes)
        let parts = try URLParts(bytes)
        scheme = String(decoding: parts.scheme, as: UTF8.self).lowercased()
        guard scheme == "http" || scheme == "https" else { throw .notURL }
        host = try Self.host(parts.host)
        if let text = parts.port, !text.isEmpty {
            guard text.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }), text.count <= 5,
                let number = UInt16(String(decoding: text, as: UTF8.self)), number > 0
            else { throw .port }
            port = number
        } else {
            port = scheme == "https" ? 443 : 80
        }
        path = try EscapedText.path(parts.path.isEmpty ? [UInt8(ascii: "/")] : parts.path)
        query = try parts.query.map { query throws(ResourceURLError) in try EscapedText.query(query) }
    }

    /// What a request target, which begins with a slash, names at an origin: the same as the URL of both.
    ///
    /// - Throws: ``ResourceURLError``.
    package init(target: String, at origin: ResourceOrigin) throws(ResourceURLError) {
        let bytes = Array(target.utf8)
        guard origin.byteCount + bytes.count <= Self.maximumLength else { throw .tooLong }
        try Self.check(bytes)
        guard bytes.first == UInt8(ascii: "/") else { throw .notURL }
        let parts = URLParts.pathAndQuery(bytes[...])
        path = try EscapedText.path(parts.path)
        query = try parts.query.map { query throws(ResourceURLError) in try EscapedText.query(query) }
        (scheme, host, port) = (origin.scheme, origin.host, origin.port)
    }

    /// Refuses what stands in no URL that two programs read alike.
    private static func check(_ bytes: [UInt8]) throws(ResourceURLError) {
        guard bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { throw .forbiddenCharacter }
        guard !bytes.contains(UInt8(ascii: "#")) else { throw .fragment }
        guard !bytes.contains(UInt8(ascii: "\\")) else { throw .backslash }
    }

    private init(scheme: String, host: String, port: UInt16, path: String, query: String?) {
        self.scheme = scheme
        self.host = host
        self.port = port
        self.path = path
        self.query = query
    }

    /// The whole, with the query when there is one.
    package var url: String { urlWithoutQuery + (query.map { "?" + $0 } ?? "") }

    /// The whole up to the query.
    package var urlWithoutQuery: String { "\(scheme)://\(host):\(port)\(path)" }

    /// The request target to forward: exactly what was decided on.
    package var target: String { path + (query.map { "?" + $0 } ?? "") }

    /// The same resource without the slash at its path's end; `nil` where it has none.
    package var withoutLastSlash: CanonicalResource? {
        guard path.utf8.count > 1, path.utf8.last == UInt8(ascii: "/") else { return nil }
        return CanonicalResource(
            scheme: scheme, host: host, port: port, path: String(path.dropLast()), query: query)
    }

    /// The path by which policies, actions and routes know it; see ``EscapedText/compared(_:)``.
    package var comparedPath: String { EscapedText.compared(path) }

    /// The query with its parameters sorted by name, those of one name in their order: what two requests are compared
    /// by.
    package var comparedQuery: String? { query.map { Self.sorted($0) } }

    /// The query as an approval binds it: as ``comparedQuery``, but parameters keep their order where some program
    /// takes their names for one. When the order changes, such a program reads another value than the user has seen.
    package var boundQuery: String? {
        query.map { query in
            // Some programs take it for another `&`: nobody knows then what the names are.
            query.utf8.contains(UInt8(ascii: ";")) ? query : Self.sorted(query, by: Self.readName)
        }
    }

    /// The same resource without the parameter `name`, and the values that the parameter had, as they stood in the
    /// query.
    package func removingParameter(_ name: String) -> (resource: CanonicalResource, values: [String]) {
        guard let query else { return (self, []) }
        var values: [String] = []
        let kept = query.split(separator: "&", omittingEmptySubsequences: false).filter { parameter in
            let parts = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let first = parts.first, String(first) == name else { return true }
            values.append(parts.count > 1 ? String(parts[1]) : "")
            return false
        }
        guard !values.isEmpty else { return (self, []) }
        let rest = kept.isEmpty ? nil : kept.joined(separator: "&")
        return (CanonicalResource(scheme: scheme, host: host, port: port, path: path, query: rest), values)
    }

    /// A query with its parameters sorted by name, those of one name in their order.
    package static func sorted(_ query: String) -> String { sorted(query) { Array($0) } }

    private static func sorted(_ query: String, by key: (ArraySlice<UInt8>) -> [UInt8]) -> String {
        let parameters = query.split(separator: "&", omittingEmptySubsequences: false).map { Array($0.utf8) }
        let named = parameters.enumerated().map { index, text in
            (name: key(text.prefix { $0 != UInt8(ascii: "=") }), index: index, text: text)
        }
        let sorted = named.sorted { left, right in
            left.name == right.name ? left.index < right.index : left.name.lexicographicallyPrecedes(right.name)
        }
        return String(decoding: Array(sorted.map(\.text).joined(separator: "&".utf8)), as: UTF8.self)
    }

    /// One text for all names that some program takes for the same: upper and lower case, blanks, and in PHP also dots
    /// and what follows a bracket.
    private static func readName(_ name: ArraySlice<UInt8>) -> [UInt8] {
        let text = String(decoding: name, as: UTF8.self)
        let folded = NameFolding.fold(PercentEncoding.decode(text, plusIsSpace: true) ?? text)
        return folded.utf8.prefix { $0 != UInt8(ascii: "[") }.map { byte in
            byte == UInt8(ascii: ".") || byte == UInt8(ascii: " ") ? UInt8(ascii: "_") : byte
        }
    }

    private static func host(_ bytes: [UInt8]) throws(ResourceURLError) -> String {
        var bytes = bytes
        if bytes.first == UInt8(ascii: "[") {
            let inner = bytes.dropFirst().dropLast()
            let isAddress = inner.allSatisfy {
                Hex.decode("0" + String(decoding: [$0], as: UTF8.self)) != nil || $0 == UInt8(ascii: ":")
                    || $0 == UInt8(ascii: ".")
            }
            guard bytes.last == UInt8(ascii: "]"), inner.count >= 2, isAddress else { throw .host }
        } else {
            if bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
            let isName = bytes.allSatisfy { $0.isURIUnreserved && $0 != UInt8(ascii: "~") }
            guard isName, !bytes.isEmpty, bytes.count <= 253, bytes.first != UInt8(ascii: ".") else { throw .host }
        }
        return String(decoding: bytes, as: UTF8.self).lowercased()
    }
}

/// Why a URL has no canonical form.
package enum ResourceURLError: String, Error, Sendable, Hashable, CustomStringConvertible {
    /// Longer than ``CanonicalResource/maximumLength``.
    case tooLong = "is too long"
    /// No absolute `http` or `https` URL.
    case notURL = "is not an absolute http or https URL"
    /// A user name or password before the host.
    case userInfo = "names a user before the host"
    /// A `#`.
    case fragment = "has a fragment"
    /// The host has characters that no host has.
    case host = "has an invalid host"
    /// The port is not a number from 1 to 65535.
    case port = "has an invalid port"
    /// White space, a control character or one beyond ASCII.
    case forbiddenCharacter = "has a character that must be escaped"
    /// A percent sign that no two hexadecimal digits follow.
    case escape = "has a broken percent escape"
    /// Escaped bytes that are not UTF-8, for example an over-long form.
    case notUTF8 = "has an escape that is not UTF-8"
    /// `.` or `..` as a segment, escaped or not, also before a semicolon, and what some program takes for it.
    case dotSegment = "has a dot segment"
    /// `;` in the path, escaped or not, and what some program takes for it: some drop it with what follows.
    case pathParameter = "has a semicolon in its path"
    /// `%2F`, and what some program takes for it.
    case encodedSlash = "has an encoded slash"
    /// `\` or `%5C`.
    case backslash = "has a backslash"
    /// `%00` or another escaped control character.
    case encodedControl = "has an encoded control character"
    /// `%25` before two hexadecimal digits in the path.
    case doubleEncoding = "is encoded twice"

    /// What is wrong, as the end of the sentence "The URL …".
    package var description: String { rawValue }
}
