import AssentCore

/// The hosts that requests may name (RFC 9112 §3.2): those of the public URLs, and further ones from the file. A
/// request for another host was meant for another server, or comes by a name that somebody else has pointed here.
struct ServedHosts: Sendable, Hashable {
    /// What the sender of any other is told: mostly an operator whose proxy writes a name of its own.
    static let refusal =
        "The host that the request names is not served here. A proxy must pass the field Host on as it came."

    private let names: Set<NormalizedHost>

    /// The same as texts, in order.
    private let texts: [String]

    /// Whether this server is for its own machine, under whatever name of it.
    private let isLocal: Bool

    /// The hosts of these URLs, and these names.
    ///
    /// - Throws: `WireError` when a text is not a URL or not a host.
    init(urls: [String], names: [String] = []) throws {
        var hosts = try Set(urls.map { try Origin($0).host })
        hosts.formUnion(try names.map { try NormalizedHost($0) })
        self.names = hosts
        texts = hosts.map(\.text).sorted()
        isLocal = hosts.contains(where: \.isLoopback)
    }

    /// Whether a request may name this host, with whatever port: a proxy before the server may have another one. `nil`
    /// is a request of HTTP/1.0, which need not name any.
    func serve(_ authority: String?) -> Bool {
        guard let authority else { return true }
        // `[::1]:443` has its port behind the bracket.
        let bytes = authority.utf8
        let end = bytes.lastIndex(of: UInt8(ascii: "]")) ?? bytes.startIndex
        let host = bytes[end...].firstIndex(of: UInt8(ascii: ":")).map { authority[..<$0] } ?? authority[...]
        // Most clients write a name as it stands here, and then there is nothing to normalise.
        if texts.contains(where: { $0.utf8.elementsEqual(host.utf8) }) { return true }
        guard let named = try? NormalizedHost(host) else { return false }
        return names.contains(named) || isLocal && named.isLoopback
    }
}
