import Foundation

/// An address that a server is to listen on, before it does.
struct ListenAddress: Sendable {
    let host: String
    let port: Int

    /// Why a server could never listen there; `nil` if it could, also when another program does so now, and when that
    /// cannot be found out.
    var fault: String? {
        switch failure {
        case .unresolved: "\(host) is neither an address nor the name of one"
        case .system(EADDRNOTAVAIL): "\(host) is not an address of this machine"
        case .system(EACCES): "port \(port) needs more rights: choose one above 1023"
        case .system, nil: nil
        }
    }

    /// Whether another program listens there.
    var isTaken: Bool { failure == .system(EADDRINUSE) }

    private enum Failure: Equatable {
        case unresolved
        case system(Int32)
    }

    private var failure: Failure? {
        var hints = addrinfo()
        hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        let result = getaddrinfo(host, String(port), &hints, &found)
        guard result == 0, let first = found else { return result == EAI_NONAME ? .unresolved : nil }
        defer { freeaddrinfo(found) }
        let socket = socket(first.pointee.ai_family, first.pointee.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { return nil }
        defer { close(socket) }
        // As the server does: a port that a connection was on a moment ago is free.
        var yes: Int32 = 1
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        return bind(socket, first.pointee.ai_addr, first.pointee.ai_addrlen) == 0 ? nil : .system(errno)
    }
}
