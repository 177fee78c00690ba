import AssentCore
import NIOCore
import NIOPosix

/// One attempt to open a connection: name resolution, TCP, TLS, trust, within one time limit.
final class Dial: Sendable {
    let connectionID: UInt64
    let generation: Int

    private struct State {
        var isDone = false
        var channel: (any Channel)?
    }

    private let state = Locked(State())
    private let promise: EventLoopPromise<ConnectionHandle>
    private let origin: Origin
    private let keys: AcceptableKeys
    private let refusal = Locked<HTTPTransportError?>(nil)

    init(origin: Origin, permit: ConnectionPool.Permit, eventLoop: any EventLoop) {
        self.origin = origin
        keys = permit.keys
        connectionID = permit.connectionID
        generation = permit.generation
        promise = eventLoop.makePromise(of: ConnectionHandle.self)
    }

    /// Opens the connection.
    func run(tls: TLSClient, pool: ConnectionPool, deadline: NIODeadline) async throws -> ConnectionHandle {
        let eventLoop = promise.futureResult.eventLoop
        let timer = eventLoop.scheduleTask(deadline: deadline) {
            self.fail(HTTPTransportError(.timedOut, "no connection within the time limit"))
        }
        defer { timer.cancel() }
        connect(tls: tls, pool: pool, eventLoop: eventLoop)
        return try await withTaskCancellationHandler {
            try await promise.futureResult.get()
        } onCancel: {
            fail(HTTPTransportError(.cancelled, "the task was cancelled"))
        }
    }

    private func connect(tls: TLSClient, pool: ConnectionPool, eventLoop: any EventLoop) {
        let bootstrap = ClientBootstrap(group: eventLoop)
        let connected: EventLoopFuture<any Channel>
        if origin.host.isIPAddress {
            do {
                connected = bootstrap.connect(
                    to: try SocketAddress(ipAddress: origin.host.text, port: origin.port))
            } catch {
                return fail(HTTPTransportError(.invalidRequest, "not an address"))
            }
        } else {
            connected = bootstrap.connect(host: origin.host.text, port: origin.port)
        }
        connected.whenComplete { result in
            switch result {
            case .failure: self.fail(HTTPTransportError(.connectFailed, "no connection to \(self.origin.authority)"))
            case .success(let channel): self.adopt(channel, tls: tls, pool: pool)
            }
        }
    }

    /// The handlers are added only to the channel that won: a name may have many addresses, tried in parallel.
    private func adopt(_ channel: any Channel, tls: TLSClient, pool: ConnectionPool) {
        let isWanted = state.withLock { state -> Bool in
            if !state.isDone { state.channel = channel }
            return !state.isDone
        }
        guard isWanted else { return channel.close(promise: nil) }
        guard origin.isSecure || pool.allowsPlaintext || channel.remoteAddress?.isLoopback == true else {
            return fail(HTTPTransportError(.invalidRequest, "http:// would have left this machine"))
        }
        do {
            if origin.isSecure {
                let handler = try tls.makeHandler(for: origin, keys: keys, refusal: refusal)
                // First the last one: the handshake starts as soon as its handler is there.
                try channel.pipeline.syncOperations.addHandler(HTTPConnection(dial: self, pool: pool, isSecure: true))
                try channel.pipeline.syncOperations.addHandler(handler, position: .first)
            } else {
                try channel.pipeline.syncOperations.addHandler(HTTPConnection(dial: self, pool: pool, isSecure: false))
            }
        } catch {
            fail(HTTPTransportError(.tlsFailed, "TLS could not be started"))
        }
    }

    /// Hands the connection over; `false` when nobody waits for it any more.
    func complete(_ handle: ConnectionHandle, pool: ConnectionPool) -> Bool {
        guard finish() != nil else { return false }
        pool.opened(handle, origin)
        promise.succeed(handle)
        return true
    }

    /// Gives up, unless it is decided already.
    func fail(_ error: HTTPTransportError) {
        guard let channel = finish() else { return }
        channel?.close(promise: nil)
        promise.fail(refusal.withLock { $0 } ?? error)
    }

    private func finish() -> (any Channel)?? {
        state.withLock { state in
            guard !state.isDone else { return .none }
            state.isDone = true
            defer { state.channel = nil }
            return .some(state.channel)
        }
    }
}
