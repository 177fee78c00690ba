public import AssentCore
public import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix

/// Listens on this machine's own address for the redirect that ends a sign-in in a browser (RFC 8252 §7.3).
///
/// Only a GET of the redirect URI's path, for its host, within bounds of size and time, is considered. A favicon, a
/// stray request and an answer to another sign-in get an error page and end nothing. A receiver is used once.
public final class LoopbackRedirectReceiver: RedirectReceiver {
    /// The redirect URI with the port that is listened on.
    public let redirectURI: String

    private let wait: RedirectWait
    private let listeners: [any Channel]
    private let timeout: TimeInterval
    private let open: @Sendable (String) -> Void

    /// Listens.
    ///
    /// - Parameters:
    ///   - registered: the redirect URI as it is registered: `http`, host `127.0.0.1`, `[::1]` or `localhost`. Without
    ///     a port a free one is taken, which the server must allow (RFC 8252 §7.3; for `localhost` few do); a port that
    ///     it names is the one that is listened on. For `localhost` both addresses are listened on where there are
    ///     both.
    ///   - timeout: seconds that the user has.
    ///   - open: shows the URL to the user or opens a browser. It is called once and must not wait.
    /// - Returns: a receiver that listens.
    /// - Throws: ``NIOTransportError`` with code `notLoopback` or `cannotListen`.
    public static func listening(
        at registered: String, timeout: TimeInterval = 300, open: @escaping @Sendable (String) -> Void
    ) async throws -> LoopbackRedirectReceiver {
        try await listening(at: registered, timeout: timeout, silence: 10, open: open)
    }

    /// The same, with the number of seconds after which a connection that says nothing is closed. They run in real
    /// time: tests give more, so that no browser of theirs is given up because a machine is busy.
    package static func listening(
        at registered: String, timeout: TimeInterval, silence: Int64, open: @escaping @Sendable (String) -> Void
    ) async throws -> LoopbackRedirectReceiver {
        let address = try LoopbackAddress(registered)
        let wait = RedirectWait()
        let listeners = try await address.listen { channel in
            channel.eventLoop.makeCompletedFuture {
                try channel.pipeline.syncOperations.addHandler(IdleStateHandler(allTimeout: .seconds(silence)))
                try channel.pipeline.syncOperations.configureHTTPServerPipeline(
                    withPipeliningAssistance: false, withErrorHandling: true)
                try channel.pipeline.syncOperations.addHandler(RedirectHandler(wait))
            }
        }
        let uri = address.uri(port: listeners.first?.localAddress?.port ?? 0)
        wait.begin(redirectURI: uri, path: address.path)
        return LoopbackRedirectReceiver(
            redirectURI: uri, wait: wait, listeners: listeners, timeout: timeout, open: open)
    }

    private init(
        redirectURI: String, wait: RedirectWait, listeners: [any Channel], timeout: TimeInterval,
        open: @escaping @Sendable (String) -> Void
    ) {
        self.redirectURI = redirectURI
        self.wait = wait
        self.listeners = listeners
        self.timeout = timeout
        self.open = open
    }

    deinit { close() }

    /// Opens `url` for the user and waits for the redirect. The port is closed when this returns.
    ///
    /// - Throws: `CancellationError`; ``NIOTransportError`` with code `noRedirect` when nothing came in time.
    public func receive(
        opening url: String, accepting accepts: @escaping @Sendable (String) -> Bool
    ) async throws -> String {
        defer { close() }
        let timer = listeners.first?.eventLoop.scheduleTask(in: .milliseconds(Int64(max(0, timeout) * 1000))) {
            [wait] in wait.giveUp()
        }
        defer { timer?.cancel() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                if wait.wait(continuation, accepts: accepts) { open(url) }
            }
        } onCancel: {
            wait.finish(.failure(CancellationError()))
        }
    }

    /// Takes a redirect that reached the user in another way, for example one that they copied from a browser on
    /// another machine.
    ///
    /// - Returns: whether it is the answer that is waited for; only then the wait ends.
    public func deliver(_ redirect: String) -> Bool {
        guard redirect.utf8.count <= RedirectWait.limit, wait.claim(redirect) else { return false }
        wait.finish(.success(redirect))
        return true
    }

    private func close() {
        for listener in listeners { listener.close(promise: nil) }
    }
}

/// A redirect URI of this machine's own, taken apart.
struct LoopbackAddress {
    let path: String

    private let hosts: [String]
    private let namedHost: String
    private let namedPort: Int?
    private let pathAndQuery: String

    init(_ registered: String) throws(NIOTransportError) {
        let refused = NIOTransportError(
            .notLoopback, "The redirect URI must begin with http://127.0.0.1, http://[::1] or http://localhost.")
        guard registered.hasPrefix("http://"), !registered.utf8.contains(UInt8(ascii: "#")),
            let origin = try? Origin(registered)
        else { throw refused }
        switch origin.host.text {
        case "127.0.0.1": (hosts, namedHost) = (["127.0.0.1"], "127.0.0.1")
        case "::1": (hosts, namedHost) = (["::1"], "[::1]")
        case "localhost": (hosts, namedHost) = (["127.0.0.1", "::1"], "localhost")
        default: throw refused
        }
        let rest = registered.dropFirst("http://".count)
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        guard authority.hasPrefix(namedHost) else { throw refused }
        namedPort = authority.count > namedHost.count ? origin.port : nil
        pathAndQuery = String(rest.dropFirst(authority.count))
        let path = pathAndQuery.prefix { $0 != "?" }
        self.path = path.isEmpty ? "/" : String(path)
    }

    func uri(port: Int) -> String { "http://\(namedHost):\(port)\(pathAndQuery)" }

    /// Listens on all addresses of the host, on the same port.
    func listen(
        _ initialize: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) async throws(NIOTransportError) -> [any Channel] {
        // The port that is free on the first address may be taken on the second: then other ports are tried.
        for attempt in 1...8 {
            var channels: [any Channel] = []
            do {
                for host in hosts {
                    let port = channels.first?.localAddress?.port ?? namedPort ?? 0
                    let bootstrap = ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
                        .serverChannelOption(.backlog, value: 16)
                        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
                        .childChannelInitializer(initialize)
                    do {
                        channels.append(try await bootstrap.bind(to: SocketAddress(ipAddress: host, port: port)).get())
                    } catch let error as IOError
                        where host == "::1" && hosts.count > 1
                        && (error.errnoCode == EADDRNOTAVAIL || error.errnoCode == EAFNOSUPPORT)
                    {
                        continue  // a machine without IPv6
                    }
                }
                return channels
            } catch {
                for channel in channels { channel.close(promise: nil) }
                guard namedPort == nil, attempt < 8 else {
                    throw NIOTransportError(
                        .cannotListen,
                        "Port \(namedPort.map(String.init) ?? "0") of \(namedHost) is not free."
                    )
                }
            }
        }
        throw NIOTransportError(.cannotListen, "No port of \(namedHost) is free.")
    }
}
