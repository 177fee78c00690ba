public import Foundation

/// A cookie that a server set (RFC 6265), its value unreadable in descriptions.
public struct Cookie: Sendable, Equatable, CustomStringConvertible {
    /// The most bytes of name and value together.
    public static let byteLimit = 4096

    /// The longest life of a cookie that says how long it lives, in seconds: 400 days (RFC 6265bis §5.5).
    public static let longestLife: TimeInterval = 400 * 86_400

    /// The name.
    public let name: String

    /// The value.
    public let value: Secret

    /// The host that set it.
    public let host: NormalizedHost

    /// Whether hosts below ``host`` get it too.
    public let includesSubdomains: Bool

    /// Only this path and paths below it get the cookie; begins with `/`.
    public let path: String

    /// Whether only `https` origins get it.
    public let isSecure: Bool

    /// Whether scripts may not see it. Kept for those who hand cookies on.
    public let isHTTPOnly: Bool

    /// When it ends; `nil` for a session cookie, which lives as long as its store.
    public let expires: Date?

    /// A cookie, taken as it is.
    public init(
        name: String, value: Secret, host: NormalizedHost, includesSubdomains: Bool = false, path: String = "/",
        isSecure: Bool = true, isHTTPOnly: Bool = true, expires: Date? = nil
    ) {
        self.name = name
        self.value = value
        self.host = host
        self.includesSubdomains = includesSubdomains
        self.path = path
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        self.expires = expires
    }

    /// Name, host and path.
    public var description: String { "cookie \(name) of \(host)\(path)" }

    /// Whether a request to `path` at `origin` carries this cookie at this time.
    public func matches(_ origin: Origin, path: String, now: Date) -> Bool {
        guard origin.isSecure || !isSecure, !isExpired(now: now) else { return false }
        guard origin.host == host || includesSubdomains && Self.isSubdomain(origin.host, of: host) else { return false }
        return Self.isPath(path, within: self.path)
    }

    /// Whether its time has passed.
    public func isExpired(now: Date) -> Bool {
        expires.map { $0 <= now } ?? false
    }

    /// Whether `host` is a name below the name `parent`, with a dot between: `a.example.com` below `example.com`, but
    /// neither `aexample.com` nor an IP address.
    static func isSubdomain(_ host: NormalizedHost, of parent: NormalizedHost) -> Bool {
        host.kind == .name && parent.kind == .name && host.text.hasSuffix("." + parent.text)
    }

    /// Path matching (RFC 6265 §5.1.4), byte by byte.
    static func isPath(_ path: String, within cookiePath: String) -> Bool {
        let path = Array((path.isEmpty ? "/" : path).utf8)
        let prefix = Array(cookiePath.utf8)
        guard path.starts(with: prefix) else { return false }
        return path.count == prefix.count || prefix.last == UInt8(ascii: "/") || path[prefix.count] == UInt8(ascii: "/")
    }
}

extension Cookie {
    /// Reads a `Set-Cookie` field (RFC 6265 §5.2, with the prefixes and limits of RFC 6265bis).
    ///
    /// There is no list of public suffixes here, so a `Domain` never widens a cookie beyond the host that set it: equal
    /// to the host, it lets the host's subdomains have the cookie too (not for single labels and IP addresses); a
    /// parent of the host leaves it to the host alone; anything else refuses the cookie.
    ///
    /// - Parameters:
    ///   - setCookie: the field's value.
    ///   - origin: where the reply came from.
    ///   - path: the path of the request, without query.
    ///   - now: the time that `Max-Age` counts from.
    /// - Returns: the cookie; it may have expired already, which asks for its removal.
    /// - Throws: ``WireError``: `tooLarge`; `malformed` for characters that cannot be sent back; `refused` for a
    ///   foreign domain, a `Secure` cookie from plain HTTP, or a name prefix whose conditions do not hold.
    public static func parse(
        _ setCookie: String, from origin: Origin, path: String, now: Date
    ) throws(WireError) -> Cookie {
        guard setCookie.utf8.count <= 2 * byteLimit else {
            throw WireError(.tooLarge, "a Set-Cookie field has more than \(2 * byteLimit) bytes")
        }
        guard setCookie.utf8.allSatisfy({ $0.isASCIIPrintable || $0 == 0x09 }) else {
            throw WireError(.malformed, "a Set-Cookie field has control or non-ASCII characters")
        }
        let parts = setCookie.split(separator: ";", omittingEmptySubsequences: false).map(pair)
        guard let (name, text) = parts.first, let value = text, name.isHTTPToken, !value.contains("\t") else {
            throw WireError(.malformed, "a Set-Cookie field does not begin with name=value")
        }
        guard name.utf8.count + value.utf8.count <= byteLimit else {
            throw WireError(.tooLarge, "a cookie has more than \(byteLimit) bytes")
        }
        let attributes = Attributes(parts.dropFirst(), now: now)
        let cookie = Cookie(
            name: name, value: Secret(value), host: origin.host,
            includesSubdomains: try includesSubdomains(attributes.domain, host: origin.host),
            path: attributes.path ?? defaultPath(path), isSecure: attributes.isSecure,
            isHTTPOnly: attributes.isHTTPOnly, expires: attributes.expires)
        try cookie.check(from: origin, hasDomain: attributes.domain != nil, hasPath: attributes.path != nil)
        return cookie
    }

    private func check(from origin: Origin, hasDomain: Bool, hasPath: Bool) throws(WireError) {
        guard origin.isSecure || !isSecure else {
            throw WireError(.refused, "a Secure cookie came over plain HTTP")
        }
        let lower = name.asciiLowercased
        let isHostPrefix = lower.hasPrefix("__host-")
        guard isSecure || !(isHostPrefix || lower.hasPrefix("__secure-")) else {
            throw WireError(.refused, "a cookie's name demands Secure")
        }
        guard !isHostPrefix || !hasDomain && hasPath && path == "/" else {
            throw WireError(.refused, "a __Host- cookie has a Domain or another Path than /")
        }
    }

    private static func includesSubdomains(_ domain: String?, host: NormalizedHost) throws(WireError) -> Bool {
        guard var domain, !domain.isEmpty else { return false }
        if domain.hasPrefix(".") { domain.removeFirst() }
        guard let named = try? NormalizedHost(domain) else {
            throw WireError(.refused, "a cookie's Domain is not a host")
        }
        if named == host { return host.kind == .name && host.text.contains(".") }
        guard isSubdomain(host, of: named) else { throw WireError(.refused, "a cookie's Domain is another host") }
        return false
    }

    /// The directory of the request's path (RFC 6265 §5.1.4).
    private static func defaultPath(_ path: String) -> String {
        guard path.hasPrefix("/"), let slash = path.lastIndex(of: "/"), slash > path.startIndex else { return "/" }
        return String(path[..<slash])
    }

    /// The name of the cookie that a `Set-Cookie` field sets, without the blanks and tabs beside it, as
    /// ``parse(_:from:path:now:)`` reads it; by bytes, as others may read a field that is refused there.
    static func name(in setCookie: String) -> String {
        trimmed(Substring(setCookie.utf8.prefix { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ";") }))
    }

    private static func pair(_ part: Substring) -> (name: String, value: String?) {
        let halves = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        return (trimmed(halves[0]), halves.count > 1 ? trimmed(halves[1]) : nil)
    }

    private static func trimmed(_ text: Substring) -> String {
        let bytes = Array(text.utf8)
        let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
        guard let first = bytes.firstIndex(where: { !isBlank($0) }), let last = bytes.lastIndex(where: { !isBlank($0) })
        else { return "" }
        return String(decoding: bytes[first...last], as: UTF8.self)
    }

    /// The attributes that count; the last one of a name wins.
    private struct Attributes {
        var domain: String?
        var path: String?
        var isSecure = false
        var isHTTPOnly = false
        var expires: Date?

        init(_ parts: some Sequence<(name: String, value: String?)>, now: Date) {
            var maxAge: Date?
            for (name, value) in parts {
                guard value?.utf8.count ?? 0 <= 1024 else { continue }
                switch name.asciiLowercased {
                case "domain": domain = value
                case "path": path = value.flatMap { $0.hasPrefix("/") ? $0 : nil }
                case "secure": isSecure = true
                case "httponly": isHTTPOnly = true
                case "expires": expires = value.flatMap(CookieDate.parse) ?? expires
                case "max-age": maxAge = value.flatMap { Self.end(maxAge: $0, now: now) } ?? maxAge
                default: break
                }
            }
            expires = (maxAge ?? expires).map { min($0, now + Cookie.longestLife) }
        }

        private static func end(maxAge: String, now: Date) -> Date? {
            let digits = maxAge.hasPrefix("-") ? maxAge.dropFirst() : maxAge[...]
            guard !digits.isEmpty, digits.utf8.allSatisfy(\.isASCIIDigit) else { return nil }
            if maxAge.hasPrefix("-") || digits.utf8.allSatisfy({ $0 == UInt8(ascii: "0") }) { return .distantPast }
            return now + min(Double(digits) ?? Cookie.longestLife, Cookie.longestLife)
        }
    }
}
