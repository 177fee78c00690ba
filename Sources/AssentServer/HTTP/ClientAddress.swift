import AssentCore
import AssentEngine
import NIOCore

/// Where a connection comes from, for limits by address.
struct ClientAddress: Sendable {
    /// The address as text; `nil` for what has none.
    let text: String?

    /// The address, an IPv4 one also of a client that has it and came by IPv6; `nil` for what has none.
    let ip: IPAddress?

    /// The IPv4 address, or the /64 network of an IPv6 address: one subscriber has all of that. `nil` for what has no
    /// address.
    let limitKey: String?

    init(_ address: SocketAddress?) {
        let whole = address?.ipAddress
        ip = whole.flatMap(IPAddress.init)
        switch ip?.family {
        case .ipv4: (text, limitKey) = (ip?.description, ip?.description)
        case .ipv6: (text, limitKey) = (whole, ip.map(Self.network))
        case nil: (text, limitKey) = (whole, nil)
        }
    }

    /// The network of an IPv6 address.
    private static func network(_ address: IPAddress) -> String {
        let groups = stride(from: 0, to: 8, by: 2).map { Hex.encode(Array(address.bytes[$0...$0 + 1])) }
        return groups.joined(separator: ":") + "::/64"
    }
}
