import AssentCore
import AssentEngine
import Foundation
import NIOCore

/// Where a connection comes from, for limits by address.
struct ClientAddress: Sendable {
    /// The address as text; `nil` for what has none.
    let text: String?

    /// The IPv4 address, also of a client that has one and came by IPv6; `nil` for any other.
    let ipv4: IPv4Address?

    /// The IPv4 address, or the /64 network of an IPv6 address: one subscriber has all of that. `nil` for what has no
    /// address.
    let limitKey: String?

    init(_ address: SocketAddress?) {
        let whole = address?.ipAddress
        switch address {
        case .v4: limitKey = whole
        case .v6: limitKey = whole.flatMap(Self.network)
        default: limitKey = nil
        }
        ipv4 = limitKey.flatMap(IPv4Address.init)
        text = ipv4 == nil ? whole : limitKey
    }

    /// The network of an IPv6 address, or the IPv4 address that it stands for.
    private static func network(_ text: String) -> String? {
        // By its text: to which module the fields of the system's own form belong depends on what else is compiled.
        var bytes = [UInt8](repeating: 0, count: 16)
        guard inet_pton(AF_INET6, text, &bytes) == 1 else { return nil }
        let isMapped = bytes.prefix(10).allSatisfy { $0 == 0 } && bytes[10...11].allSatisfy { $0 == 0xFF }
        guard !isMapped else { return bytes.suffix(4).map { "\($0)" }.joined(separator: ".") }
        let groups = stride(from: 0, to: 8, by: 2).map { Hex.encode(Array(bytes[$0...$0 + 1])) }
        return groups.joined(separator: ":") + "::/64"
    }
}
