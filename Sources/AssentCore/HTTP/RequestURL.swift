public import HTTPTypes

extension HTTPRequest {
    /// A request to an absolute URL, which is used exactly as it is written: nothing is normalised, decoded or encoded. A
    /// fragment is left out.
    ///
    /// - Throws: ``WireError`` as ``Origin/init(_:)``.
    public init(_ method: HTTPRequest.Method, url: String, headerFields: HTTPFields = [:]) throws(WireError) {
        let scheme = try Origin(url).scheme
        let bytes = Array(url.utf8)
        let authority = bytes.dropFirst(scheme.utf8.count + 3).prefix { !"/?#".utf8.contains($0) }
        let rest = bytes[authority.endIndex...].prefix { $0 != UInt8(ascii: "#") }
        let path = rest.first == UInt8(ascii: "/") ? Array(rest) : Array("/".utf8) + rest
        self.init(
            method: method, scheme: scheme, authority: String(decoding: authority, as: UTF8.self),
            path: String(decoding: path, as: UTF8.self), headerFields: headerFields)
    }

    /// The absolute URL that the request goes to, as it was written; `nil` when it has no scheme or no authority.
    public var url: String? {
        guard let scheme, let authority else { return nil }
        return "\(scheme)://\(authority)\(path ?? "/")"
    }
}
