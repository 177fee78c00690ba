import AssentCore
import AssentEngine
import Foundation
import NIOCore

/// Where a connection comes from, for limits by address.
struct ClientAddress: Sendable {
    private let address: SocketAddress?

    init(_ address: SocketAddress?) { self.address = address }

    /// The address as text; `nil` for what has none.
    var text: String? { ipv4?.description ?? address?.ipAddress }

    /// The IPv4 address, also of a client that has one and came by IPv6; `nil` for any other.
    var ipv4: IPv4Address? { limitKey.flatMap(IPv4Address.init) }

    /// The IPv4 address, or the /64 network of an IPv6 address: one subscriber has all of that. `nil` for what has no
    /// address.
    var limitKey: String? {
        switch address {
        case .v4: return address?.ipAddress
        case .v6:
            // By its text: to which module the fields of the system's own form belong depends on what else is compiled.
            var bytes = [UInt8](repeating: 0, count: 16)
            guard let text = address?.ipAddress, inet_pton(AF_INET6, text, &bytes) == 1 else { return nil }
            let isMapped = bytes.prefix(10).allSatisfy { $0 == 0 } && bytes[10...11].allSatisfy { $0 == 0xFF }
            guard !isMapped else { return bytes.suffix(4).map { "\($0)" }.joined(separator: ".") }
            return Hex.encode(Array(bytes.prefix(8))) + "::/64"
        default: return nil
        }
    }
}
