import AssentCore

/// The rules for redirect URIs: which a client may register, and when one that is asked for is the registered one.
enum RedirectURI {
    /// Schemes that a browser acts upon itself: no app can own them.
    private static let refusedSchemes: Set<String> = [
        "about", "blob", "content", "data", "file", "filesystem", "ftp", "javascript", "mailto", "vbscript",
        "view-source", "ws", "wss",
    ]

    /// Why `uri` cannot be registered, or `nil` when it can: `https`, `http` to a loopback address (RFC 8252 §7.3), or
    /// an app's own scheme (§7.1), absolute, without a fragment (RFC 6749 §3.1.2).
    static func fault(in uri: String) -> String? {
        guard uri.utf8.count <= 2048, uri.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            return "is too long or has characters that a URI cannot have"
        }
        if uri.contains("#") { return "has a fragment" }
        if uri.contains("*") { return "has a wildcard: redirect URIs are compared as they are" }
        guard let colon = uri.firstIndex(of: ":") else { return "has no scheme" }
        let scheme = uri[..<colon].lowercased()
        guard scheme.utf8.first.map({ $0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "z") }) == true,
            scheme.utf8.allSatisfy({ $0.isURIUnreserved || $0 == UInt8(ascii: "+") })
        else { return "has no scheme" }
        let rest = uri[uri.index(after: colon)...]
        switch scheme {
        case "https":
            return authority(of: rest).isEmpty ? "has no host" : nil
        case "http":
            return isLoopback(authority(of: rest)) ? nil : "has the scheme http, which is for loopback addresses only"
        default:
            if refusedSchemes.contains(scheme) { return "has a scheme that no app can own" }
            return rest.isEmpty ? "is nothing but a scheme" : nil
        }
    }

    /// Whether `requested` is the registered URI: the same text or the same but for the port of a loopback IP address
    /// (RFC 8252 §7.3).
    static func matches(_ requested: String, registered: String) -> Bool {
        if requested.utf8.elementsEqual(registered.utf8) { return true }
        guard let one = withoutLoopbackPort(requested), let other = withoutLoopbackPort(registered)
        else { return false }
        return one.utf8.elementsEqual(other.utf8)
    }

    /// `uri` with `parameters` added to its query.
    static func adding(_ parameters: FormItems, to uri: String) -> String {
        parameters.items.reduce(uri) { URLText.appending($1.name, $1.value, to: $0) }
    }

    private static func authority(of rest: Substring) -> Substring {
        guard rest.hasPrefix("//") else { return "" }
        return rest.dropFirst(2).prefix { $0 != "/" && $0 != "?" }
    }

    private static func isLoopback(_ authority: Substring) -> Bool {
        ["127.0.0.1", "[::1]", "localhost"].contains { host in
            guard authority.hasPrefix(host) else { return false }
            let rest = authority.dropFirst(host.count)
            return rest.isEmpty || (rest.first == ":" && isPort(rest.dropFirst()))
        }
    }

    private static func isPort(_ text: Substring) -> Bool {
        (1...5).contains(text.utf8.count) && text.utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x39 }
            && UInt16(text) != nil
    }

    private static func withoutLoopbackPort(_ uri: String) -> String? {
        for prefix in ["http://127.0.0.1", "http://[::1]"] where uri.hasPrefix(prefix) {
            var rest = uri.dropFirst(prefix.count)
            if rest.first == ":" {
                let port = rest.dropFirst().prefix { $0 != "/" && $0 != "?" }
                guard isPort(port) else { return nil }
                rest = rest.dropFirst(1 + port.count)
            }
            guard rest.isEmpty || rest.first == "/" || rest.first == "?" else { return nil }
            return prefix + rest
        }
        return nil
    }
}
