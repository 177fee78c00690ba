public import HTTPTypes

extension HTTPRequest {
    /// A request to an absolute URL, which is used exactly as it is written: nothing is normalised, decoded or encoded.
    /// A fragment is left out.
    ///
    /// - Throws: ``WireError`` as ``Origin/init(_:)``.
    public init(_ method: HTTPRequest.Method, url: String, headerFields: HTTPFields = [:]) throws(WireError) {
        self.init(method, url: url, scheme: try Origin(url).scheme, headerFields: headerFields)
    }

    /// A request to a URL of which an origin was read, and therefore ASCII up to the end of its authority.
    init(_ method: HTTPRequest.Method, url: String, scheme: String, headerFields: HTTPFields) {
        let rest = url.utf8.dropFirst(scheme.utf8.count + 3)
        let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
        let authority = rest[..<(end ?? rest.endIndex)]
        let target = rest[authority.endIndex...].prefix { $0 != UInt8(ascii: "#") }
        let path = target.first == UInt8(ascii: "/") ? String(Substring(target)) : "/" + Substring(target)
        self.init(
            method: method, scheme: scheme, authority: String(Substring(authority)), path: path,
            headerFields: headerFields)
    }

    /// The absolute URL that the request goes to, as it was written; `nil` when it has no scheme or no authority.
    public var url: String? {
        guard let scheme, let authority else { return nil }
        return "\(scheme)://\(authority)\(path ?? "/")"
    }
}
