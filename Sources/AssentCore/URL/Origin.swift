public import HTTPTypes

/// Scheme, host and port of a URL (RFC 6454): what a credential, a pin or a connection belongs to.
///
/// Two origins are equal only when all three are, the host normalised and the port always filled in. What different URL
/// readers understand differently is refused rather than guessed.
public struct Origin: Hashable, Sendable, CustomStringConvertible {
    /// `https` or `http`.
    public let scheme: String

    /// The host.
    public let host: NormalizedHost

    /// The port, also when it is the scheme's own.
    public let port: Int

    /// Host and port; the port is left out when it is the scheme's own.
    public let authority: String

    /// The origin of an absolute `https` or `http` URL, of which everything behind the authority is ignored.
    ///
    /// - Throws: ``WireError``: `tooLarge`; `malformed` for another scheme, white space, control or non-ASCII
    ///   characters, a backslash, an empty or odd host, a port that is not 1 to 65535 in plain digits; `refused` for
    ///   user information.
    public init(_ url: String) throws(WireError) {
        let (origin, _) = try Self.split(url)
        self = origin
    }

    /// The origin that an `Origin` field names (RFC 6454 §7): nothing may stand behind the authority. `null` is
    /// refused.
    ///
    /// - Throws: ``WireError`` as ``init(_:)-(String)``.
    public init(headerValue: String) throws(WireError) {
        let (origin, rest) = try Self.split(headerValue)
        guard rest.isEmpty else { throw WireError(.malformed, "an Origin field has no path") }
        self = origin
    }

    /// Where a request goes.
    ///
    /// - Throws: ``WireError`` as ``init(_:)``; `malformed` when the request has no scheme or authority.
    public init(_ request: HTTPRequest) throws(WireError) {
        guard let scheme = request.scheme, let authority = request.authority else {
            throw WireError(.malformed, "the request has no scheme or no authority")
        }
        let name = try Self.scheme(Array(scheme.utf8)[...])
        self = try Self.origin(scheme: name, authority: try Self.checked(authority)[...])
    }

    /// Whether bytes to this origin go through TLS.
    public var isSecure: Bool { scheme == "https" }

    /// Whether the port is the scheme's own.
    package var hasDefaultPort: Bool { port == Self.defaultPort(of: scheme) }

    /// The origin as an `Origin` field has it.
    public var description: String { scheme + "://" + authority }

    private init(scheme: String, host: NormalizedHost, port: Int) {
        self.scheme = scheme
        self.host = host
        self.port = port
        // Once, and not when it is asked for: each sealed call asks several times.
        authority = port == Self.defaultPort(of: scheme) ? host.description : host.description + ":" + String(port)
    }

    /// Whether scheme, host and port are the same; the authority follows from them.
    public static func == (left: Origin, right: Origin) -> Bool {
        left.port == right.port && left.host == right.host && left.scheme == right.scheme
    }

    /// Origins of one host and port mostly have one scheme, and each call looks several tables up.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(host.text)
        hasher.combine(port)
    }

    private static func defaultPort(of scheme: String) -> Int { scheme == "https" ? 443 : 80 }

    private static func split(_ url: String) throws(WireError) -> (Origin, rest: ArraySlice<UInt8>) {
        let bytes = try checked(url)
        let letters = bytes.prefix(while: \.isASCIILetter)
        let scheme = try scheme(letters)
        let rest = bytes[letters.endIndex...]
        guard rest.starts(with: "://".utf8) else { throw notAbsolute }
        let authority = rest.dropFirst(3).prefix { !endsAuthority($0) }
        return (try origin(scheme: scheme, authority: authority), bytes[authority.endIndex...])
    }

    /// The most bytes of a URL that is read.
    static let byteLimit = 16 << 10

    /// Whether a URL that is read may have this byte.
    static func isAllowed(_ byte: UInt8) -> Bool { byte.isASCIIVisible && byte != UInt8(ascii: "\\") }

    /// Whether this byte stands behind the authority of a URL.
    static func endsAuthority(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
    }

    private static func checked(_ text: String) throws(WireError) -> [UInt8] {
        let bytes = Array(text.utf8)
        guard bytes.count <= byteLimit else { throw WireError(.tooLarge, "a URL has more than 16 KiB") }
        guard bytes.allSatisfy(isAllowed) else {
            throw WireError(.malformed, "a URL has white space, control or non-ASCII characters, or a backslash")
        }
        return bytes
    }

    private static let notAbsolute = WireError(
        .malformed, "a URL must be absolute and begin with https:// or http://")

    private static func scheme(_ bytes: ArraySlice<UInt8>) throws(WireError) -> String {
        let lower = bytes.lazy.map(\.asciiLowercased)
        if lower.elementsEqual("https".utf8) { return "https" }
        guard lower.elementsEqual("http".utf8) else { throw notAbsolute }
        return "http"
    }

    private static func origin(scheme: String, authority: ArraySlice<UInt8>) throws(WireError) -> Origin {
        guard !authority.contains(UInt8(ascii: "@")) else {
            throw WireError(.refused, "a URL has user information")
        }
        var host = authority
        var port = defaultPort(of: scheme)
        let end = authority.lastIndex(of: UInt8(ascii: "]")) ?? authority.startIndex
        if let colon = authority[end...].firstIndex(of: UInt8(ascii: ":")) {
            host = authority[..<colon]
            let digits = authority[(colon + 1)...]
            guard (1...5).contains(digits.count), digits.allSatisfy(\.isASCIIDigit), digits.first != UInt8(ascii: "0")
            else { throw invalidPort }
            port = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
            guard port <= 65535 else { throw invalidPort }
        }
        let normalized = try NormalizedHost(bytes: host)
        guard normalized.kind != .ipv6 || host.first == UInt8(ascii: "[") else {
            throw WireError(.malformed, "an IPv6 address in a URL stands in brackets")
        }
        return Origin(scheme: scheme, host: normalized, port: port)
    }

    private static let invalidPort = WireError(.malformed, "a port is a number from 1 to 65535")
}
