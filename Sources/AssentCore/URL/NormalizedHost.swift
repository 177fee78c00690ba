/// A host in the one form in which two of them may be compared: lower case, no trailing dot, IP addresses in their
/// usual text.
///
/// Everything that another reader could take for a different host is refused: percent-escapes, characters beyond ASCII
/// (write the A-label, `xn--…`), short, octal and hexadecimal IPv4 addresses, IPv6 zones.
public struct NormalizedHost: Hashable, Sendable, CustomStringConvertible {
    /// What a host is.
    public enum Kind: Hashable, Sendable {
        /// A DNS name.
        case name
        /// An IPv4 address.
        case ipv4
        /// An IPv6 address.
        case ipv6
    }

    /// The host; an IPv6 address without brackets.
    public let text: String

    /// What it is.
    public let kind: Kind

    /// Normalises a host; an IPv6 address with or without brackets.
    ///
    /// - Throws: ``WireError`` with code `malformed`.
    public init(_ text: some StringProtocol) throws(WireError) {
        try self.init(bytes: Array(text.utf8)[...])
    }

    /// The same from bytes. Every call to a server comes through here several times.
    init(bytes: ArraySlice<UInt8>) throws(WireError) {
        var host = bytes
        if host.first == UInt8(ascii: "["), host.last == UInt8(ascii: "]"), host.count >= 2 {
            host = host.dropFirst().dropLast()
            guard host.contains(UInt8(ascii: ":")) else { throw Self.malformed }
        }
        if host.contains(UInt8(ascii: ":")) {
            let lower = String(decoding: host.map(\.asciiLowercased), as: UTF8.self)
            guard let groups = IPv6.groups(of: lower) else { throw Self.malformed }
            self.text = IPv6.text(of: groups)
            kind = .ipv6
            return
        }
        if host.last == UInt8(ascii: ".") { host.removeLast() }
        guard host.count <= 253, let last = Self.lastLabel(of: host) else { throw Self.malformed }
        if Self.isNumeric(last) {
            let labels = host.split(separator: UInt8(ascii: "."))
            guard labels.count == 4, labels.allSatisfy(Self.isOctet) else { throw Self.malformed }
            kind = .ipv4
        } else {
            kind = .name
        }
        text = String(decoding: host.map(\.asciiLowercased), as: UTF8.self)
    }

    /// Whether it is an IP address.
    public var isIPAddress: Bool { kind != .name }

    /// Whether it can only be this machine: `localhost`, names below it (RFC 6761 §6.3), 127.0.0.0/8 and ::1.
    public var isLoopback: Bool {
        switch kind {
        case .name: text == "localhost" || text.hasSuffix(".localhost")
        case .ipv4: text.hasPrefix("127.")
        case .ipv6: text == "::1"
        }
    }

    /// The 4 or 16 bytes of an IP address; `nil` for a name.
    package var addressBytes: [UInt8]? {
        switch kind {
        case .name: nil
        case .ipv4: text.split(separator: ".").compactMap { UInt8($0) }
        case .ipv6: IPv6.groups(of: text)?.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
        }
    }

    /// The host as a URL has it: an IPv6 address in brackets.
    public var description: String { kind == .ipv6 ? "[\(text)]" : text }

    private static let malformed = WireError(.malformed, "this is neither a host name nor an IP address")

    /// The last label of a name whose labels all are well-formed, else `nil`.
    private static func lastLabel(of host: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        var start = host.startIndex
        for index in host.indices {
            let byte = host[index]
            if byte == UInt8(ascii: ".") {
                guard (1...63).contains(index - start) else { return nil }
                start = index + 1
            } else {
                guard byte.isASCIIAlphanumeric || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
                else { return nil }
            }
        }
        return (1...63).contains(host.endIndex - start) ? host[start...] : nil
    }

    /// Readers of URLs take a host whose last label is a number for an IPv4 address (WHATWG URL §3.5).
    private static func isNumeric(_ label: ArraySlice<UInt8>) -> Bool {
        guard label.first?.isASCIIDigit == true else { return false }
        if label.allSatisfy(\.isASCIIDigit) { return true }
        return label.first == UInt8(ascii: "0") && label.dropFirst().first?.asciiLowercased == UInt8(ascii: "x")
            && label.dropFirst(2).allSatisfy { $0.hexDigitValue != nil }
    }

    private static func isOctet(_ label: ArraySlice<UInt8>) -> Bool {
        guard label.count <= 3, label.allSatisfy(\.isASCIIDigit) else { return false }
        return label.reduce(0) { $0 * 10 + Int($1 - 0x30) } <= 255 && (label.count == 1 || label.first != 0x30)
    }
}

/// IPv6 addresses as text (RFC 4291 §2.2, RFC 5952).
private enum IPv6 {
    static func groups(of text: String) -> [UInt16]? {
        guard text.utf8.count <= 45 else { return nil }
        let bytes = Array(text.utf8)
        let gaps = bytes.indices.dropLast().filter { bytes[$0] == 0x3A && bytes[$0 + 1] == 0x3A }
        guard let gap = gaps.first else {
            guard let groups = run(bytes[...]), groups.count == 8 else { return nil }
            return groups
        }
        guard gaps.count == 1, let head = run(bytes[..<gap], mayEndInIPv4: false), let tail = run(bytes[(gap + 2)...])
        else { return nil }
        guard head.count + tail.count <= 7 else { return nil }
        return head + Array(repeating: 0, count: 8 - head.count - tail.count) + tail
    }

    private static func run(_ bytes: ArraySlice<UInt8>, mayEndInIPv4: Bool = true) -> [UInt16]? {
        if bytes.isEmpty { return [] }
        let parts = bytes.split(separator: 0x3A, omittingEmptySubsequences: false)
        var groups: [UInt16] = []
        for (index, part) in parts.enumerated() {
            let text = String(decoding: part, as: UTF8.self)
            if mayEndInIPv4, index == parts.count - 1, text.contains(".") {
                guard let host = try? NormalizedHost(text), host.kind == .ipv4, host.text == text else { return nil }
                let octets = text.split(separator: ".").compactMap { UInt16($0) }
                guard octets.count == 4 else { return nil }
                groups += [octets[0] << 8 | octets[1], octets[2] << 8 | octets[3]]
            } else {
                guard (1...4).contains(part.count), part.allSatisfy(\.isASCIIAlphanumeric),
                    let group = UInt16(text, radix: 16)
                else { return nil }
                groups.append(group)
            }
        }
        return groups
    }

    static func text(of groups: [UInt16]) -> String {
        var best = 0..<0
        var start = 0
        while start < groups.count {
            var end = start
            while end < groups.count, groups[end] == 0 { end += 1 }
            if end - start > max(best.count, 1) { best = start..<end }
            start = max(end, start + 1)
        }
        let hex = groups.map { String($0, radix: 16) }
        guard !best.isEmpty else { return hex.joined(separator: ":") }
        return hex[..<best.lowerBound].joined(separator: ":") + "::" + hex[best.upperBound...].joined(separator: ":")
    }
}
