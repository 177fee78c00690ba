import AssentCore
import Foundation
import NIOCore
import NIOPosix

/// Resolves a name, and gives its addresses to the connection only if all of them may be called. What was checked is
/// what is connected to: the name is not resolved again.
final class CheckedResolver: Resolver, Sendable {
    private let eventLoop: any EventLoop
    private let isAllowed: @Sendable (SocketAddress) -> Bool

    /// More addresses than a name needs.
    private static let limit = 32

    init(on eventLoop: any EventLoop, isAllowed: @escaping @Sendable (SocketAddress) -> Bool) {
        self.eventLoop = eventLoop
        self.isAllowed = isAllowed
    }

    func initiateAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        look(up: host, port: port, family: AF_INET)
    }

    func initiateAAAAQuery(host: String, port: Int) -> EventLoopFuture<[SocketAddress]> {
        look(up: host, port: port, family: AF_INET6)
    }

    /// The system's resolver cannot be interrupted. Nobody waits for it any more.
    func cancelQueries() {}

    private func look(up host: String, port: Int, family: CInt) -> EventLoopFuture<[SocketAddress]> {
        NIOThreadPool.singleton.runIfActive(eventLoop: eventLoop) { [isAllowed] in
            let addresses = try Self.addresses(of: host, port: port, family: family)
            guard addresses.allSatisfy(isAllowed) else { throw RefusedAddress() }
            return addresses
        }
    }

    private struct NoAddress: Error {}

    private static func addresses(of host: String, port: Int, family: CInt) throws -> [SocketAddress] {
        var hints = addrinfo()
        hints.ai_family = family
        #if canImport(Darwin)
        hints.ai_socktype = SOCK_STREAM
        #else
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        #endif
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &list) == 0 else { throw NoAddress() }
        defer { if let list { freeaddrinfo(list) } }
        var addresses: [SocketAddress] = []
        var next = list
        while let entry = next?.pointee, addresses.count < limit {
            next = entry.ai_next
            guard let address = entry.ai_addr else { continue }
            switch entry.ai_family {
            case AF_INET:
                addresses.append(
                    SocketAddress(
                        address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { $0.pointee }, host: host))
            case AF_INET6:
                addresses.append(
                    SocketAddress(
                        address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { $0.pointee }, host: host))
            default: continue
            }
        }
        return addresses
    }
}
