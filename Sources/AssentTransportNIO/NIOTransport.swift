public import AssentCore
import HTTPTypes
public import Logging
public import NIOCore
import NIOPosix

/// The SDK's HTTP transport: HTTP/1.1 over NIO, with TLS whose trust decisions are made before a byte of a request is
/// sent.
///
/// ```swift
/// let transport = try NIOTransport(
///     configuration: .init(pins: ["api.bank.example": .pins([primary, backup]), "status.bank.example": .unpinned]))
/// let reply = try await transport.send(try HTTPCall(.get, url: "https://status.bank.example/"))
/// await transport.shutdown()
/// ```
///
/// - TLS 1.2 or newer, ALPN `http/1.1` only. On every connection the chain is validated by a ``ServerTrustEvaluator``;
///   pins are compared on the validated path. Session keys are never logged, whatever the environment says.
/// - Redirects are not followed. Cookies, retries and credentials are for the layers above.
/// - A request is sent again by itself only when none of its bytes were handed to the network, or once when its method
///   is idempotent (RFC 9110 §9.2.2), its body can be read again, and a kept connection turned out to be stale. One
///   that ``/AssentCore/HTTPCall/isSentOnce`` or carries a proof (`DPoP`, `TSP-Proof`) is not: a proof is good for one
///   sending. In all other cases the error says that it may have had an effect.
/// - There is no revocation check (CRL, OCSP) and no proxy support.
///
/// Release it or call ``shutdown()`` when it is not needed any more. Idle connections are closed then.
public final class NIOTransport: HTTPTransport, BeginsAnywhere {
    private let pool: ConnectionPool
    private let allowPlaintextLoopback: Bool
    private let allowsPlaintext: Bool
    private let keepsConnections: Bool
    private let leastLimit: Duration?
    private let known = OriginMemory()

    /// A transport with its own connections.
    ///
    /// - Parameters:
    ///   - configuration: whom to trust, and bounds.
    ///   - trust: replaces the chain validation, for example by a platform's own; the pins are still compared, on the
    ///     path that it answers. `nil` stands for ``PinnedChainEvaluator`` with the configuration's roots, which are
    ///     not used otherwise.
    ///   - clock: says when "now" is, for the certificates' validity. Timeouts always run in real time.
    ///   - eventLoopGroup: where the connections live; it is not shut down. `nil` stands for the
    ///     process's shared one.
    ///   - logger: gets a line for each connection that could not be opened; nothing about requests.
    /// - Throws: ``NIOTransportError``.
    public init(
        configuration: NIOTransportConfiguration, trust: (any ServerTrustEvaluator)? = nil,
        clock: any WallClock = SystemClock(),
        eventLoopGroup: (any EventLoopGroup)? = nil,
        logger: Logger = Logger(label: "assent.transport", factory: { _ in SwiftLogNoOpLogHandler() })
    ) throws(NIOTransportError) {
        try configuration.validate()
        let evaluator: any ServerTrustEvaluator
        if let trust {
            evaluator = trust
        } else {
            evaluator = try PinnedChainEvaluator(roots: configuration.trustRoots, clock: clock)
        }
        let limits = PoolState.Limits(
            connections: configuration.maximumConnectionsPerOrigin, waiters: configuration.maximumWaitingPerOrigin,
            suspended: configuration.maximumSuspendedPerOrigin)
        let settings = ConnectionSettings(
            idle: configuration.idleTimeout.timeAmount, keepsConnections: configuration.keepsConnections,
            allowsPlaintext: configuration.allowsPlaintext, addressRule: configuration.addressRule,
            parser: .init(headerBytes: configuration.headerBytes, headerFields: configuration.headerFields))
        pool = ConnectionPool(
            pins: try PinTable(configuration.pins), limits: limits, settings: settings,
            tls: try TLSClient(identity: configuration.clientIdentity, evaluator: evaluator),
            group: eventLoopGroup ?? MultiThreadedEventLoopGroup.singleton, logger: logger)
        allowPlaintextLoopback = configuration.allowPlaintextLoopback
        allowsPlaintext = configuration.allowsPlaintext
        keepsConnections = configuration.keepsConnections
        leastLimit = configuration.leastLimit
    }

    deinit {
        _ = pool.shutDown(closeAll: false)
    }

    /// Sends `call` and returns as soon as the reply's header is there.
    ///
    /// - Throws: `HTTPTransportError`.
    @concurrent public func send(_ call: HTTPCall) async throws -> HTTPReply {
        let request = try RequestHead(call, to: try origin(of: call), isLast: !keepsConnections)
        let limits = leastLimit.map(call.limits.atLeast) ?? call.limits
        var deadline = try Self.deadline(of: limits)
        var attempts = 0
        var isRepeated = false
        while true {
            let lease: ConnectionPool.Lease
            do {
                lease = try await pool.lease(
                    request.origin, limits: limits, deadline: &deadline, control: call.control)
            } catch let error as HTTPTransportError where isRepeated {
                // The first sending may have had its effect.
                throw error.afterSending()
            }
            do {
                return try await lease.handle.perform(
                    request, id: lease.exchange, limits: limits, deadline: deadline, isReused: lease.isReused,
                    control: call.control)
            } catch let failure as ExchangeFailure {
                attempts += 1
                if failure.isUnsent, failure.isStale, lease.isReused, attempts <= Self.maximumAttempts { continue }
                guard failure.isStale, !failure.isUnsent else {
                    throw isRepeated ? failure.error.afterSending() : failure.error
                }
                // The others have been idle as long, also for the layer above, which may send something in its place.
                pool.discardIdle(request.origin)
                guard request.mayRepeat, !isRepeated else { throw failure.error.onStaleConnection() }
                isRepeated = true
            }
        }
    }

    private static let maximumAttempts = 16

    private static func deadline(of limits: HTTPLimits) throws(HTTPTransportError) -> NIODeadline {
        // Event loops add to a deadline, and the last one that there is would overflow.
        guard let total = limits.total else { return NIODeadline.now() + .hours(24 * 365) }
        guard total > .zero else {
            throw HTTPTransportError(
                .invalidRequest, "The call's time limit is zero or less.",
                suggestion: "Give the call a limit above zero, or none.")
        }
        return NIODeadline.now() + total.timeAmount
    }

    private func origin(of call: HTTPCall) throws(HTTPTransportError) -> Origin {
        guard call.request.scheme != nil, call.request.authority != nil else {
            throw HTTPTransportError(.invalidRequest, "The URL has no host.")
        }
        guard let origin = try? known.origin(of: call) else {
            throw HTTPTransportError(.invalidRequest, "The URL's scheme or host cannot be used.")
        }
        guard origin.isSecure || allowsPlaintext || allowPlaintextLoopback && origin.host.isLoopback else {
            throw HTTPTransportError(
                .invalidRequest, "Plain http:// is only for this machine, and only when the configuration allows it.")
        }
        return origin
    }

    /// Replaces the pins: idle connections are closed, the next calls use connections that were checked against the new
    /// ones. A connection whose server has shown none of the new pins ends at once, and a call that runs on it fails
    /// with `pinMismatch` and what is known of its effect.
    ///
    /// - Throws: ``NIOTransportError``; then nothing changes.
    public func update(pins: [String: PinRequirement]) throws(NIOTransportError) {
        pool.update(try PinTable(pins))
    }

    /// Closes all connections and waits until they are. Running calls fail, also those whose connection is still being
    /// opened; later ones are refused with `shutDown`.
    public func shutdown() async {
        for channel in pool.shutDown(closeAll: true) {
            try? await channel.closeFuture.get()
        }
    }
}
