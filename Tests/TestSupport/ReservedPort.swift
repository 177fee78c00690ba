import Foundation

/// A port of 127.0.0.1 that is bound and, unless asked for, not listened on: while nobody else listens on it,
/// connections are refused, and nobody who asks for a free port gets it. Whoever sets SO_REUSEADDR may listen on it.
package final class ReservedPort: Sendable {
    package let port: Int
    private let descriptor: Int32

    /// Takes a free port, and listens on it when `listens` says so: then nobody else can.
    package init(listens: Bool = false) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var yes: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                bind(descriptor, generic, length) == 0 && (!listens || listen(descriptor, 1) == 0)
                    ? getsockname(descriptor, generic, &length) : -1
            }
        }
        guard result == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        port = Int(UInt16(bigEndian: address.sin_port))
    }

    deinit { close(descriptor) }
}
