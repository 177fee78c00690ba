package import AssentCore
import Foundation
import NIOCore

/// Which addresses a transport may connect to, whatever names lead there: those of the public Internet (RFC 6890), so
/// that somebody who chooses a URL or a name's address cannot reach what is only for this machine or this network.
package struct AddressRule: Sendable {
    /// The hosts of which any address is allowed.
    package var exempt: Set<NormalizedHost>

    /// Addresses of the public Internet, and all of these hosts.
    package init(exempt: Set<NormalizedHost> = []) {
        self.exempt = exempt
    }

    /// Whether a host may be called at an address.
    func allows(_ address: SocketAddress, of host: NormalizedHost) -> Bool {
        exempt.contains(host) || Self.isPublic(address)
    }

    /// Whether an address belongs to the public Internet.
    static func isPublic(_ address: SocketAddress) -> Bool {
        guard let text = address.ipAddress else { return false }
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 { return isPublic(Array(bytes.prefix(4))) }
        return inet_pton(AF_INET6, text, &bytes) == 1 && isPublic(bytes)
    }

    /// The same for the 4 or 16 bytes of an address.
    private static func isPublic(_ bytes: [UInt8]) -> Bool {
        if bytes.count == 4 { return !closedIPv4.contains { $0.contains(bytes) } }
        guard bytes.count == 16 else { return false }
        // An IPv4 address in another form is that address.
        for block in carryingIPv4 where block.contains(bytes) { return isPublic(Array(bytes.suffix(4))) }
        return unicastIPv6.contains(bytes) && !closedIPv6.contains { $0.contains(bytes) }
    }

    /// Addresses with a common beginning.
    private struct Block {
        let start: [UInt8]
        let length: Int

        init(_ start: [UInt8], _ length: Int) {
            self.start = start
            self.length = length
        }

        func contains(_ address: [UInt8]) -> Bool {
            (0..<length).allSatisfy { bit in
                let (byte, mask) = (bit / 8, UInt8(0x80) >> UInt8(bit % 8))
                return ((byte < start.count ? start[byte] : 0) ^ address[byte]) & mask == 0
            }
        }
    }

    /// This network, private, shared, loopback, link-local, documentation, benchmarks, relays, multicast, reserved.
    private static let closedIPv4 = [
        Block([0], 8), Block([10], 8), Block([100, 64], 10), Block([127], 8), Block([169, 254], 16),
        Block([172, 16], 12), Block([192, 0, 0], 24), Block([192, 0, 2], 24), Block([192, 88, 99], 24),
        Block([192, 168], 16), Block([198, 18], 15), Block([198, 51, 100], 24), Block([203, 0, 113], 24),
        Block([224], 4), Block([240], 4),
    ]

    /// `::ffff:0:0/96` (RFC 4291 §2.5.5.2), `64:ff9b::/96` (RFC 6052).
    private static let carryingIPv4 = [
        Block([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], 96), Block([0, 0x64, 0xFF, 0x9B], 96),
    ]

    /// All that is given out for the Internet (RFC 4291 §2.4).
    private static let unicastIPv6 = Block([0x20], 3)

    /// Protocols and tunnels (Teredo, 6to4), documentation.
    private static let closedIPv6 = [
        Block([0x20, 0x01, 0], 23), Block([0x20, 0x01, 0x0D, 0xB8], 32), Block([0x20, 0x02], 16),
        Block([0x3F, 0xFF], 20),
    ]
}

/// A name leads to an address that must not be called.
struct RefusedAddress: Error {
    /// The failure of a call.
    static func error(_ origin: Origin) -> HTTPTransportError {
        HTTPTransportError(
            .addressRefused, "\(origin.host) leads to an address that must not be called.",
            suggestion: "Name the host in the configuration if it may be called in a private network.")
    }
}

extension HTTPTransportError.Code {
    /// The host's address is not one that the transport may connect to.
    package static let addressRefused = Self(rawValue: "addressRefused")
}
