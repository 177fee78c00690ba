import AssentCore

/// An `htu` value: an HTTP URI without query and fragment, normalized as RFC 3986 §6.2.2 and §6.2.3 describe, so that
/// two writings of the same target compare equal (RFC 9449 §4.3).
struct HTTPTarget: Hashable, Sendable {
    let text: String

    /// How many bytes it may have. A query before it is cut off may have any number: what reads requests bounds
    /// them.
    private static let limit = 8 << 10

    /// `nil` for anything but an absolute `http` or `https` URI. User information and dot segments have no place in a
    /// target and are refused rather than resolved.
    init?(_ uri: String) {
        // By its bytes: a mark behind "?" would join it to another character.
        let bytes = uri.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        guard bytes.count <= Self.limit, bytes.allSatisfy(\.isASCIIVisible) else { return nil }
        let target = Substring(bytes)
        guard let colon = target.firstIndex(of: ":"), target[colon...].hasPrefix("://") else { return nil }
        let scheme = target[..<colon].lowercased()
        guard scheme == "https" || scheme == "http" else { return nil }
        let rest = target[colon...].dropFirst(3)
        let authority = rest.prefix { $0 != "/" }
        guard let authority = Self.authority(authority.lowercased(), scheme: scheme),
            let path = Self.path(rest.dropFirst(rest.prefix { $0 != "/" }.count))
        else { return nil }
        text = "\(scheme)://\(authority)\(path)"
    }

    private static func authority(_ text: String, scheme: String) -> String? {
        guard !text.isEmpty, !text.contains("@"), !text.contains("\\") else { return nil }
        var host = text[...]
        var port: Substring = ""
        if let colon = text.lastIndex(of: ":"), !text[colon...].contains("]") {
            host = text[..<colon]
            port = text[colon...].dropFirst()
        }
        guard !host.isEmpty, port.utf8.count <= 5, port.utf8.allSatisfy(\.isASCIIDigit),
            host.hasPrefix("[") == host.hasSuffix("]"), host.hasPrefix("[") || !host.contains(":")
        else { return nil }
        let usual = scheme == "https" ? "443" : "80"
        return port.isEmpty || port == usual ? String(host) : "\(host):\(port)"
    }

    private static func path(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2, let value = Hex.decode(String(decoding: rest.prefix(2), as: UTF8.self))?.first else {
                return nil
            }
            rest = rest.dropFirst(2)
            if value.isURIUnreserved {
                bytes.append(value)
            } else {
                bytes += Array("%\(Hex.encode([value]).uppercased())".utf8)
            }
        }
        let path = String(decoding: bytes, as: UTF8.self)
        guard path.split(separator: "/").allSatisfy({ $0 != "." && $0 != ".." }) else { return nil }
        return path.isEmpty ? "/" : path
    }
}
