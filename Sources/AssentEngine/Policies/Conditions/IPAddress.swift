import AssentCore

/// An address of the Internet Protocol. An IPv6 address that stands for an IPv4 one (RFC 4291 §2.5.5.2) is that one.
package struct IPAddress: Sendable, Hashable, CustomStringConvertible {
    /// The two families, by the names of AM's conditions.
    package enum Family: String, Sendable, Hashable {
        /// Addresses of 4 bytes.
        case ipv4 = "IPv4"
        /// Addresses of 16 bytes.
        case ipv6 = "IPv6"
    }

    /// The 4 or 16 bytes.
    package let bytes: [UInt8]

    /// The address in its usual text (RFC 5952).
    package let description: String

    /// The family.
    package var family: Family { bytes.count == 4 ? .ipv4 : .ipv6 }

    /// Reads an address without brackets, zone and port; `nil` for anything else, also for leading zeros.
    package init?(_ text: String) {
        if let bytes = Self.quad(text) {
            (self.bytes, description) = (bytes, text)
            return
        }
        guard !text.hasPrefix("["), !text.hasSuffix("."), let host = try? NormalizedHost(text),
            let bytes = host.addressBytes
        else { return nil }
        let isMapped = bytes.count == 16 && bytes.prefix(10).allSatisfy { $0 == 0 } && bytes[10...11] == [0xFF, 0xFF]
        self.bytes = isMapped ? Array(bytes.suffix(4)) : bytes
        description = isMapped ? bytes.suffix(4).map { "\($0)" }.joined(separator: ".") : host.text
    }

    /// The bytes of an IPv4 address; `nil` for anything else. Each request to a server has one.
    private static func quad(_ text: String) -> [UInt8]? {
        guard (7...15).contains(text.utf8.count) else { return nil }
        var bytes: [UInt8] = []
        var part: UInt8?
        for character in text.utf8 {
            if character == UInt8(ascii: "."), let read = part, bytes.count < 3 {
                bytes.append(read)
                part = nil
                continue
            }
            guard character.isASCIIDigit, part != 0 else { return nil }
            let (tens, isTooLarge) = (part ?? 0).multipliedReportingOverflow(by: 10)
            let (sum, isStillTooLarge) = tens.addingReportingOverflow(character - UInt8(ascii: "0"))
            guard !isTooLarge, !isStillTooLarge else { return nil }
            part = sum
        }
        guard let part, bytes.count == 3 else { return nil }
        return bytes + [part]
    }
}

/// Addresses with a common beginning (RFC 4632 §3.1, RFC 4291 §2.3).
package struct NetworkPrefix: Sendable, Hashable {
    /// As it is written in the file.
    package let text: String

    /// How many bits the addresses have in common.
    package let length: Int

    /// The first of the addresses.
    package let first: IPAddress

    /// Reads an address or a prefix, for example `192.0.2.7` or `2001:db8::/32`; `nil` for anything else, also when
    /// bits are set behind the prefix.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), let first = IPAddress(String(parts[0])) else { return nil }
        let bits = first.bytes.count * 8
        let length = parts.count == 1 ? bits : Self.number(parts[1])
        guard let length, (0...bits).contains(length) else { return nil }
        guard (length..<bits).allSatisfy({ first.bytes[$0 / 8] & (0x80 >> UInt8($0 % 8)) == 0 }) else { return nil }
        (self.text, self.length, self.first) = (text, length, first)
    }

    /// Whether an address is one of them.
    package func contains(_ address: IPAddress) -> Bool {
        guard address.family == first.family else { return false }
        return (0..<length).allSatisfy {
            (first.bytes[$0 / 8] ^ address.bytes[$0 / 8]) & (0x80 >> UInt8($0 % 8)) == 0
        }
    }

    private static func number(_ text: Substring) -> Int? {
        (1...3).contains(text.utf8.count) && text.utf8.allSatisfy(\.isASCIIDigit) ? Int(text) : nil
    }
}

/// Some addresses of one family.
package enum AddressRange: Sendable, Hashable {
    /// From the first to the second, both included.
    case between(IPAddress, IPAddress)
    /// Those with a common beginning.
    case prefix(NetworkPrefix)

    /// A range from one address to another of the same family, which does not come before it; `nil` for anything else.
    package init?(from start: IPAddress, to end: IPAddress) {
        guard start.family == end.family, !end.bytes.lexicographicallyPrecedes(start.bytes) else { return nil }
        self = .between(start, end)
    }

    /// Whether an address is one of them.
    package func contains(_ address: IPAddress) -> Bool {
        switch self {
        case .between(let start, let end):
            address.family == start.family && !address.bytes.lexicographicallyPrecedes(start.bytes)
                && !end.bytes.lexicographicallyPrecedes(address.bytes)
        case .prefix(let prefix): prefix.contains(address)
        }
    }
}
