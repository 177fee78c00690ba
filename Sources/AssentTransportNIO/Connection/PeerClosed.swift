import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension Channel {
    /// Whether the kernel knows already that the peer has closed this connection, although the event loop has not come
    /// to read it. Must be called on the event loop. Where the kernel cannot be asked the answer is `false`.
    var isClosedByPeer: Bool {
        #if os(Linux)
        guard let socket = self as? any SocketOptionProvider else { return false }
        // TCP_ESTABLISHED of Linux's tcp_states.h.
        var isEstablished = true
        socket.getTCPInfo().assumeIsolated().whenSuccess { isEstablished = $0.tcpi_state == 1 }
        return !isEstablished
        #else
        return false
        #endif
    }
}
