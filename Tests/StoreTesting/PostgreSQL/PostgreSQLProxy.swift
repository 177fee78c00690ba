#if os(Linux)
import AssentCore
package import AssentStore
import Foundation
import Glibc

/// Stands between a database and its server on a Unix socket, counts the round trips, and cuts the connection where a
/// test wants it.
package final class PostgreSQLProxy: Sendable {
    /// What happens to the next `COMMIT`.
    package enum Cut: Sendable, CaseIterable {
        /// It does not reach the server, which sees the connection end.
        case before
        /// It does not reach the server, whose connection stays as it is.
        case unseen
        /// The connection ends at once on both sides.
        case within
        /// The server has answered it, and the answer is lost.
        case after
    }

    private struct State {
        var cut: Cut?
        /// Where new connections lead; `nil` for where the first ones did.
        var place: PostgreSQLConfiguration.Host?
        var isRefusing = false
        var refusesAfterCut = false
        var isStalled = false
        /// Milliseconds that each piece of the server's waits.
        var delay: Int32 = 0
        var roundTrips = 0
        var cuts = 0
        var sockets: Set<Int32> = []
    }

    /// The Parse message of a `COMMIT` without a name, whole: the word alone is also in `READ COMMITTED`. Its type, its
    /// length, an empty name, the text and no parameters.
    private static let commit = Array("P\0\0\0\u{0E}\0COMMIT\0\0\0".utf8)

    private let directory: URL
    private let target: PostgreSQLConfiguration
    private let listener: Int32
    private let state = Locked(State())

    /// A proxy before the server of a configuration.
    package init(_ target: PostgreSQLConfiguration) throws {
        self.target = target
        directory = URL(filePath: "/tmp/assent-px-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
        listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let isListening = Self.withAddress("\(directory.path)/.s.PGSQL.5432") { [listener] in
            bind(listener, $0, $1) == 0 && listen(listener, 100) == 0
        }
        guard isListening else { throw PostgreSQLServer.Failure(description: "the proxy cannot listen") }
        // A standby runs as another user than the tests do.
        _ = chmod("\(directory.path)/.s.PGSQL.5432", 0o777)
        Thread.detachNewThread { [listener, weak self] in
            // The thread that waits closes the listener: its number could be another test's by then.
            defer { close(listener) }
            while true {
                let client = Glibc.accept(listener, nil, nil)
                guard client >= 0 else { return }
                guard let self else {
                    close(client)
                    return
                }
                self.begin(client)
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        Self.endAll(state)
        try? FileManager.default.removeItem(at: directory)
    }

    /// The configuration that leads through the proxy.
    package var configuration: PostgreSQLConfiguration {
        var configuration = target
        configuration.hosts = [.init(directory.path)]
        return configuration
    }

    /// How many times a client has sent something after the server has.
    package var roundTrips: Int { state.withLock { $0.roundTrips } }

    /// How many connections were cut at their `COMMIT`.
    package var cuts: Int { state.withLock { $0.cuts } }

    /// Cuts the connection of the next `COMMIT`. With `refusing`, no connection is accepted from then on.
    package func cutNextCommit(_ cut: Cut, refusing: Bool = false) {
        state.withLock { state in
            state.cut = cut
            state.refusesAfterCut = refusing
        }
    }

    /// Cuts all connections, and accepts none while `isRefusing`.
    package func cutAll(refusing isRefusing: Bool) {
        state.withLock { $0.isRefusing = isRefusing }
        Self.endAll(state)
    }

    /// Under the lock: what is closed is taken out before, and its number is then another test's.
    private static func endAll(_ state: Locked<State>) {
        state.withLock { state in
            for socket in state.sockets { shutdown(socket, Int32(SHUT_RDWR)) }
        }
    }

    /// Accepts connections again.
    package func accept() { state.withLock { $0.isRefusing = false } }

    /// Lets new connections lead to another server, as an address that moves does. Those that stand go on.
    package func lead(to host: PostgreSQLConfiguration.Host) { state.withLock { $0.place = host } }

    /// Holds back what the server says, as a network that has failed does, until ``accept()`` and ``resume()``.
    package func stall() { state.withLock { $0.isStalled = true } }

    /// Lets through what was held back.
    package func resume() {
        state.withLock { state in
            state.isStalled = false
            state.delay = 0
        }
    }

    /// Lets each piece of the server's wait.
    package func delay(milliseconds: Int32) { state.withLock { $0.delay = milliseconds } }

    /// Returns when what the server says may go on; `false` if the connection is cut before.
    private func waitWhileStalled() -> Bool {
        let delay = state.withLock { $0.delay }
        if delay > 0 { _ = poll(nil, 0, delay) }
        while true {
            let (isStalled, isRefusing) = state.withLock { ($0.isStalled, $0.isRefusing) }
            if isRefusing { return false }
            if !isStalled { return true }
            _ = poll(nil, 0, 10)
        }
    }

    // MARK: - One connection

    private func begin(_ client: Int32) {
        let server = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let path = state.withLock { $0.place } ?? target.hosts[0]
        let isThere = Self.withAddress("\(path.name)/.s.PGSQL.\(path.port)") { connect(server, $0, $1) == 0 }
        let isWanted = state.withLock { state in
            guard !state.isRefusing, isThere else { return false }
            state.sockets.formUnion([client, server])
            return true
        }
        guard isWanted else {
            close(client)
            close(server)
            return
        }
        Thread.detachNewThread { [weak self, state] in
            Self.serve(client, server) {
                self?.cut(at: $0, isAnswering: $1)
            } mayAnswer: {
                self?.waitWhileStalled() ?? false
            }
            state.withLock { $0.sockets.subtract([client, server]) }
            close(client)
            close(server)
        }
    }

    /// What to do with bytes of the client.
    private func cut(at bytes: [UInt8], isAnswering: Bool) -> Cut? {
        state.withLock { state in
            if isAnswering { state.roundTrips += 1 }
            guard let cut = state.cut, bytes.contains(Self.commit) else { return nil }
            state.cut = nil
            state.cuts += 1
            state.isRefusing = state.refusesAfterCut
            return cut
        }
    }

    private static func serve(
        _ client: Int32, _ server: Int32, _ decide: ([UInt8], Bool) -> Cut?, mayAnswer: () -> Bool
    ) {
        var hasServerSpoken = true
        while true {
            var places = [
                pollfd(fd: client, events: Int16(POLLIN), revents: 0),
                pollfd(fd: server, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&places, 2, -1) > 0 else { continue }
            if places[1].revents != 0 {
                guard mayAnswer(), let bytes = read(server), write(bytes, to: client) else { return }
                hasServerSpoken = true
            }
            guard places[0].revents != 0 else { continue }
            guard let bytes = read(client) else { return }
            let cut = decide(bytes, hasServerSpoken)
            hasServerSpoken = false
            switch cut {
            case nil: guard write(bytes, to: server) else { return }
            case .before: return
            case .unseen:
                shutdown(client, Int32(SHUT_RDWR))
                // Until the server, or the proxy, ends it.
                while read(server) != nil {}
                return
            case .within:
                _ = write(bytes, to: server)
                return
            case .after:
                _ = write(bytes, to: server)
                _ = read(server)
                return
            }
        }
    }

    private static func read(_ socket: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 65536)
        let count = recv(socket, &bytes, bytes.count, 0)
        return count > 0 ? Array(bytes[..<count]) : nil
    }

    private static func write(_ bytes: [UInt8], to socket: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    private static func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Bool) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let isLongEnough = withUnsafeMutableBytes(of: &address.sun_path) { place in
            guard path.utf8.count < place.count else { return false }
            place.copyBytes(from: path.utf8)
            return true
        }
        guard isLongEnough else { return false }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
#endif
