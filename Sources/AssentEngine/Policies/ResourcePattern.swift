package import AssentCore

/// Which resources a policy is about: a URL with wildcards, compared part by part as AM does.
///
/// Scheme, host, port, path and query are compared each by itself, without regard to case, and in the path also without
/// regard to escapes that are not needed (``/AssentCore/CanonicalResource/comparedPath``); a pattern without a query
/// matches no request that has one (`…/*?*` matches those); a missing port is the scheme's own, or any when the scheme
/// is a wildcard.
package struct ResourcePattern: Sendable, Hashable {
    /// The pattern as it was written.
    package let text: String

    private let scheme: WildcardPattern
    private let host: WildcardPattern
    private let port: WildcardPattern
    private let path: WildcardPattern
    private let query: WildcardPattern?

    /// The longest pattern, in bytes.
    package static let maximumLength = 2048

    /// Reads a pattern.
    ///
    /// - Throws: ``PatternError``.
    package init(_ text: String) throws(PatternError) {
        self.text = text
        let bytes = Array(text.utf8)
        guard bytes.count <= Self.maximumLength else { throw PatternError("the pattern is too long") }
        guard bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw PatternError("the pattern has a character that must be escaped")
        }
        let parts: URLParts
        do {
            parts = try URLParts(bytes)
        } catch {
            throw PatternError("a pattern begins with scheme://host")
        }
        guard !parts.scheme.isEmpty, !parts.host.isEmpty else {
            throw PatternError("a pattern begins with scheme://host")
        }
        scheme = try Self.wildcard(parts.scheme)
        host = try Self.wildcard(parts.host)
        port = try Self.wildcard(Self.port(of: parts))
        path = try Self.wildcard(parts.path.isEmpty ? [UInt8(ascii: "/")] : parts.path)
        query = try parts.query.map { query throws(PatternError) in
            try Self.wildcard(Array(CanonicalResource.sorted(String(decoding: query, as: UTF8.self)).utf8))
        }
    }

    /// Whether the pattern covers a resource.
    package func matches(_ resource: CanonicalResource) -> Bool {
        var steps = 0
        return matches(resource, steps: &steps)
    }

    func matches(_ resource: CanonicalResource, steps: inout Int) -> Bool {
        // The path first: in it most patterns differ.
        guard path.matches(resource.comparedPath.utf8, steps: &steps),
            scheme.matches(resource.scheme.utf8, steps: &steps), host.matches(resource.host.utf8, steps: &steps),
            port.matches(String(resource.port).utf8, steps: &steps)
        else { return false }
        switch (query, resource.comparedQuery) {
        case (nil, nil): return true
        case (.some(let pattern), .some(let text)): return pattern.matches(text.utf8, steps: &steps)
        default: return false
        }
    }

    /// Whether a URL of `http` or `https` matches at all. The texts that are tried for the wildcards stand for all that
    /// a canonical URL can have there.
    var matchesSomeURL: Bool {
        let fillings = ["a", "", "1", "::1", "41", "a.a"]
        for scheme in ["https", "http"] {
            for host in fillings {
                for path in fillings {
                    let query = query.map { "?" + String(decoding: $0.filled(with: "a"), as: UTF8.self) } ?? ""
                    let url =
                        "\(scheme)://\(Self.text(self.host, host)):\(Self.text(port, "443"))"
                        + Self.text(self.path, path) + query
                    if let resource = try? CanonicalResource(url), matches(resource) { return true }
                }
            }
        }
        return false
    }

    /// The parts of a resource that the pattern does not cover.
    func mismatches(_ resource: CanonicalResource) -> [String] {
        var steps = 0
        var parts: [String] = []
        if !scheme.matches(resource.scheme.utf8, steps: &steps) { parts.append("scheme") }
        if !host.matches(resource.host.utf8, steps: &steps) { parts.append("host") }
        if !port.matches("\(resource.port)".utf8, steps: &steps) { parts.append("port") }
        if !path.matches(resource.comparedPath.utf8, steps: &steps) { parts.append("path") }
        switch (query, resource.comparedQuery) {
        case (nil, nil): break
        case (.some(let pattern), .some(let text)) where pattern.matches(text.utf8, steps: &steps): break
        default: parts.append("query")
        }
        return parts
    }

    /// Whether some URL matches both patterns.
    package func overlaps(_ other: Self) -> Bool {
        guard scheme.overlaps(other.scheme), host.overlaps(other.host), port.overlaps(other.port),
            path.overlaps(other.path)
        else { return false }
        switch (query, other.query) {
        case (nil, nil): return true
        case (.some(let query), .some(let otherQuery)): return query.overlaps(otherQuery)
        default: return false
        }
    }

    private static func text(_ pattern: WildcardPattern, _ filling: String) -> String {
        String(decoding: pattern.filled(with: filling), as: UTF8.self)
    }

    private static func port(of parts: URLParts) throws(PatternError) -> [UInt8] {
        guard let port = parts.port, !port.isEmpty else {
            return switch String(decoding: parts.scheme, as: UTF8.self).lowercased() {
            case "https": Array("443".utf8)
            case "http": Array("80".utf8)
            default: [UInt8(ascii: "*")]
            }
        }
        let text = String(decoding: port, as: UTF8.self)
        guard text == "*" || UInt16(text).map({ $0 > 0 }) == true else { throw PatternError("Invalid port \(text)") }
        return port
    }

    private static func wildcard(_ bytes: [UInt8]) throws(PatternError) -> WildcardPattern {
        guard let pattern = WildcardPattern(bytes) else {
            throw PatternError("Same rule cannot have both types of wildcards.")
        }
        return pattern
    }
}

/// Why a text is not a resource pattern, in AM's words where AM has words.
package struct PatternError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What is wrong.
    package let description: String

    init(_ description: String) {
        self.description = description
    }
}
