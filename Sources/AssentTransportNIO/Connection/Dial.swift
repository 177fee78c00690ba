import AssentCore
import NIOCore
import NIOPosix

/// One attempt to open a connection: name resolution, TCP, TLS, trust, within one time limit.
final class Dial: Sendable {
    private enum State {
        case connecting
        /// TCP is there; TLS perhaps not yet.
        case connected(any Channel)
        /// It was handed over or given up.
        case decided
    }

    private let state = Locked(State.connecting)
    private let finding = Locked(TLSClient.Finding())
    private let promise: EventLoopPromise<ConnectionHandle>
    private let origin: Origin
    private let permit: PoolState.Permit
    private let owner: any ConnectionOwner
    private let settings: ConnectionSettings

    init(
        origin: Origin, permit: PoolState.Permit, owner: any ConnectionOwner, settings: ConnectionSettings,
        eventLoop: any EventLoop
    ) {
        self.origin = origin
        self.permit = permit
        self.owner = owner
        self.settings = settings
        promise = eventLoop.makePromise(of: ConnectionHandle.self)
    }

    /// Gives up, as when the transport is shut down.
    ///
    /// - Returns: the channel, which is closing; `nil` when there was none yet.
    func abandon(_ error: HTTPTransportError) -> (any Channel)? { fail(error) }

    /// The pins of the keys in the chain that was validated; `nil` without TLS.
    var pins: Set<Pin>? { finding.withLock { $0.pins } }

    /// Opens the connection.
    func run(tls: TLSClient, deadline: NIODeadline) async throws -> ConnectionHandle {
        let eventLoop = promise.futureResult.eventLoop
        let timer = eventLoop.scheduleTask(deadline: deadline) {
            self.fail(HTTPTransportError(.timedOut, "No connection was open within the time limit."))
        }
        defer { timer.cancel() }
        // On the loop, so that the handlers are there before it reads: a server may speak, or close, at once.
        eventLoop.execute { self.connect(tls: tls, eventLoop: eventLoop, deadline: deadline) }
        return try await withTaskCancellationHandler {
            try await promise.futureResult.get()
        } onCancel: {
            fail(HTTPTransportError(.cancelled, "The task was cancelled."))
        }
    }

    private func connect(tls: TLSClient, eventLoop: any EventLoop, deadline: NIODeadline) {
        // Later than this attempt's own limit, which says what has happened. NIO's limit is ten seconds otherwise, also
        // for a call that may take longer.
        let limit = max(deadline - NIODeadline.now(), TimeAmount.zero) + TimeAmount.seconds(1)
        var bootstrap = ClientBootstrap(group: eventLoop).connectTimeout(limit)
        if settings.addressRule != nil {
            bootstrap = bootstrap.resolver(CheckedResolver(on: eventLoop, isAllowed: isAllowed))
        }
        let connected: EventLoopFuture<any Channel>
        if origin.host.isIPAddress {
            do {
                let address = try SocketAddress(ipAddress: origin.host.text, port: origin.port)
                guard isAllowed(address) else {
                    fail(RefusedAddress.error(origin))
                    return
                }
                connected = bootstrap.connect(to: address)
            } catch {
                fail(HTTPTransportError(.invalidRequest, "\(origin.host.text) is not an IP address."))
                return
            }
        } else {
            connected = bootstrap.connect(host: origin.host.text, port: origin.port)
        }
        connected.whenComplete { result in
            switch result {
            case .failure(let error): self.fail(ConnectFailure(error).error(self.origin))
            case .success(let channel): self.adopt(channel, tls: tls)
            }
        }
    }

    /// Whether the transport may connect to an address of the origin's host.
    @Sendable private func isAllowed(_ address: SocketAddress) -> Bool {
        settings.addressRule?.allows(address, of: origin.host) ?? true
    }

    /// The handlers are added only to the channel that won: a name may have many addresses, tried in parallel.
    private func adopt(_ channel: any Channel, tls: TLSClient) {
        let isWanted = state.withLock { state -> Bool in
            guard case .connecting = state else { return false }
            state = .connected(channel)
            return true
        }
        guard isWanted else { return channel.close(promise: nil) }
        guard settings.addressRule == nil || channel.remoteAddress.map(isAllowed) == true else {
            fail(RefusedAddress.error(origin))
            return
        }
        guard origin.isSecure || settings.allowsPlaintext || channel.remoteAddress?.isLoopback == true else {
            fail(
                HTTPTransportError(
                    .invalidRequest, "Plain http:// is only for this machine, but the host's name leads to another one."
                ))
            return
        }
        let connection = HTTPConnection(
            id: permit.connection, opening: ConnectionOpening(succeed: succeed, fail: { self.fail($0) }), owner: owner,
            settings: settings, isSecure: origin.isSecure)
        do {
            // The last handler first: the handshake starts as soon as its handler is there.
            try channel.pipeline.syncOperations.addHandler(connection)
            if origin.isSecure {
                let handler = try tls.makeHandler(for: origin, keys: permit.keys, finding: finding)
                try channel.pipeline.syncOperations.addHandler(handler, position: .first)
            }
        } catch {
            fail(HTTPTransportError(.tlsFailed, "TLS could not be started."))
        }
    }

    /// Hands the connection over; `false` when nobody waits for it any more.
    private func succeed(_ handle: ConnectionHandle) -> Bool {
        if case .decided = decide() { return false }
        promise.succeed(handle)
        return true
    }

    /// Gives up, unless it is decided already, and returns the channel that it closes.
    @discardableResult
    private func fail(_ error: HTTPTransportError) -> (any Channel)? {
        var closing: (any Channel)?
        switch decide() {
        case .decided: return nil
        case .connecting: break
        case .connected(let channel): closing = channel
        }
        closing?.close(promise: nil)
        promise.fail(finding.withLock { $0.refusal } ?? error)
        return closing
    }

    /// Ends the attempt and returns how far it had come.
    private func decide() -> State {
        state.withLock { state in
            defer { state = .decided }
            return state
        }
    }
}
