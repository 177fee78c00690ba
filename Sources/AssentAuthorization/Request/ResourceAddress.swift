import AssentCore

/// The URL that a request's path stands for. What two programs could read differently is refused and never repaired.
struct ResourceAddress {
    /// The absolute URL.
    let url: String

    /// Whether the path was one: then it decides where the request goes, and not the app's configuration.
    let isAbsolute: Bool

    /// Joins the address of the resources and a path by exactly one slash; a path with a scheme is absolute.
    ///
    /// - Parameters:
    ///   - path: the path, which may have a query.
    ///   - base: the address of the resources.
    /// - Throws: ``WireError``: `malformed` for a path that is not taken as it is written.
    init(_ path: String, base: String?) throws(WireError) {
        let isReadable = path.allBytes {
            $0.isASCIIVisible && $0 != UInt8(ascii: "\\") && $0 != UInt8(ascii: "#")
        }
        guard isReadable else {
            throw WireError(
                .malformed, "the path has a blank, a control or a non-ASCII character, a backslash or a fragment")
        }
        if Self.hasScheme(path) {
            try Self.check(URLText.withoutQuery(path))
            (url, isAbsolute) = (path, true)
            return
        }
        isAbsolute = false
        guard !path.hasPrefix("//") else { throw WireError(.malformed, "the path begins with two slashes") }
        guard let base else { throw WireError(.malformed, "the path is not absolute, and resources have no address") }
        guard !base.utf8.contains(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }) else {
            throw WireError(.malformed, "the address of the resources has a query or a fragment")
        }
        let name = URLText.withoutQuery(path)
        try Self.check(name)
        guard !name.isEmpty else {
            url = base + path
            return
        }
        let left = base.hasSuffix("/") ? base.dropLast() : base[...]
        let right = path.hasPrefix("/") ? path.dropFirst() : path[...]
        url = "\(left)/\(right)"
    }

    /// The URL with a query behind it, or behind the one that it has.
    func appending(query: String) -> String {
        guard !query.isEmpty else { return url }
        guard url.utf8.contains(UInt8(ascii: "?")) else { return "\(url)?\(query)" }
        return url.hasSuffix("?") || url.hasSuffix("&") ? url + query : "\(url)&\(query)"
    }

    /// Whether the text begins with a scheme (RFC 3986 §3.1).
    private static func hasScheme(_ path: String) -> Bool {
        let scheme = path.utf8.prefix {
            $0.isASCIIAlphanumeric || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".")
        }
        return scheme.first?.isASCIILetter == true && path.utf8[scheme.endIndex...].first == UInt8(ascii: ":")
    }

    /// Refuses segments that are dots, escaped or not, with or without parameters: they lead out of where the path
    /// seems to be. An escaped slash, backslash or NUL is one for some programs and not for others.
    private static func check(_ path: String) throws(WireError) {
        let hasEscapes = !path.allBytes { $0 != UInt8(ascii: "%") }
        guard hasEscapes || hasDottedSegment(path) else { return }
        let lowercased = hasEscapes ? path.asciiLowercased : path
        guard !hasEscapes || !["%2f", "%5c", "%00"].contains(where: { lowercased.contains($0) }) else {
            throw WireError(.malformed, "the path has an escaped slash, backslash or NUL")
        }
        for segment in lowercased.utf8.split(separator: UInt8(ascii: "/"))
        where segment.first == UInt8(ascii: ".") || segment.first == UInt8(ascii: "%") {
            let dots = String(Substring(segment.prefix { $0 != UInt8(ascii: ";") }))
            guard ![".", "..", "%2e", ".%2e", "%2e.", "%2e%2e"].contains(dots) else {
                throw WireError(.malformed, "the path has a segment of dots")
            }
        }
    }

    /// Whether a segment begins with a dot. Without escapes no other can be one of dots.
    private static func hasDottedSegment(_ path: String) -> Bool {
        var isStart = true
        let hasNone = path.allBytes { byte in
            if isStart, byte == UInt8(ascii: ".") { return false }
            isStart = byte == UInt8(ascii: "/")
            return true
        }
        return !hasNone
    }
}
