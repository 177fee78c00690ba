import AssentCore

/// An `htu` value: an HTTP URI without query and fragment, normalized as RFC 3986 §6.2.2 and §6.2.3 describe, so that
/// two writings of the same target compare equal (RFC 9449 §4.3).
///
/// One is read for each proof, so it is read byte by byte.
struct HTTPTarget: Hashable, Sendable {
    let text: String

    /// How many bytes it may have. A query before it is cut off may have any number: what reads requests bounds
    /// them.
    private static let limit = 8 << 10

    /// `nil` for anything but an absolute `http` or `https` URI. User information and dot segments have no place in a
    /// target and are refused rather than resolved.
    init?(_ uri: String) {
        if let length = Self.normalLength(uri) {
            text = length == uri.utf8.count ? uri : String(decoding: uri.utf8.prefix(length), as: UTF8.self)
            return
        }
        let bytes = Array(uri.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })
        guard bytes.count <= Self.limit, bytes.allSatisfy(\.isASCIIVisible),
            let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8)
        else { return nil }
        let scheme = bytes[..<colon].map(\.asciiLowercased)
        let isSecure = scheme.elementsEqual("https".utf8)
        guard isSecure || scheme.elementsEqual("http".utf8) else { return nil }
        let rest = bytes[(colon + 3)...]
        let slash = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
        guard let authority = Self.authority(rest[..<slash].map(\.asciiLowercased), isSecure: isSecure),
            let path = Self.path(rest[slash...])
        else { return nil }
        text = String(decoding: scheme + "://".utf8 + authority + path, as: UTF8.self)
    }

    /// How many bytes the target has, if it is in normal form as it is written, as nearly all are; `nil` if it has to
    /// be looked at more closely.
    private static func normalLength(_ uri: String) -> Int? {
        uri.utf8.withContiguousStorageIfAvailable { bytes in
            let scheme = bytes.starts(with: "https://".utf8) ? 8 : bytes.starts(with: "http://".utf8) ? 7 : 0
            let authority = bytes[scheme...].prefix { $0 != UInt8(ascii: "/") }
            let host = authority.prefix { $0 != UInt8(ascii: ":") }
            let port = authority[host.endIndex...]
            let path = bytes[authority.endIndex...].prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
            let isHost =
                !host.isEmpty && host.allSatisfy(\.isNormalHost)
                && (port.isEmpty || Self.isNormalPort(port.dropFirst(), isSecure: scheme == 8))
            let isPath =
                !path.isEmpty && path.allSatisfy { $0.isASCIIVisible && $0 != UInt8(ascii: "%") }
                && !zip(path, path.dropFirst()).contains { $0 == UInt8(ascii: "/") && $1 == UInt8(ascii: ".") }
            return scheme > 0 && isHost && isPath && path.endIndex <= limit ? path.endIndex : nil
        } ?? nil
    }

    /// Whether a port stands in a target as it is: the usual one of the scheme does not.
    private static func isNormalPort(_ port: some Collection<UInt8>, isSecure: Bool) -> Bool {
        (1...5).contains(port.count) && port.allSatisfy(\.isASCIIDigit)
            && !port.elementsEqual((isSecure ? "443" : "80").utf8)
    }

    private static func authority(_ bytes: [UInt8], isSecure: Bool) -> ArraySlice<UInt8>? {
        guard !bytes.isEmpty, !bytes.contains(UInt8(ascii: "@")), !bytes.contains(UInt8(ascii: "\\")) else {
            return nil
        }
        var host = bytes[...]
        var port: ArraySlice<UInt8> = []
        if let colon = bytes.lastIndex(of: UInt8(ascii: ":")), !bytes[colon...].contains(UInt8(ascii: "]")) {
            host = bytes[..<colon]
            port = bytes[(colon + 1)...]
        }
        let (isOpened, isClosed) = (host.first == UInt8(ascii: "["), host.last == UInt8(ascii: "]"))
        guard !host.isEmpty, port.count <= 5, port.allSatisfy(\.isASCIIDigit), isOpened == isClosed,
            isOpened || !host.contains(UInt8(ascii: ":"))
        else { return nil }
        let isUsual = port.elementsEqual((isSecure ? "443" : "80").utf8)
        return port.isEmpty || isUsual ? host : bytes[...]
    }

    private static func path(_ written: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard !written.isEmpty else { return [UInt8(ascii: "/")] }
        let path = written.contains(UInt8(ascii: "%")) ? unescaped(written)?[...] : written
        guard let path else { return nil }
        let isPlain = path.split(separator: UInt8(ascii: "/")).allSatisfy { segment in
            segment.count > 2 || !segment.allSatisfy { $0 == UInt8(ascii: ".") }
        }
        return isPlain ? path : nil
    }

    /// Each escape in upper case, and none for a character that needs none.
    private static func unescaped(_ written: ArraySlice<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = written
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
        return bytes
    }
}

extension UInt8 {
    /// Whether it stands in a host as it is in normal form.
    fileprivate var isNormalHost: Bool {
        isASCIIDigit || isASCIILetter && self == asciiLowercased || self == UInt8(ascii: "-")
            || self == UInt8(ascii: ".")
    }
}
