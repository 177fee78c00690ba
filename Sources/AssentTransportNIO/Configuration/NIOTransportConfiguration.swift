public import AssentCore

/// Whom the transport trusts, and its bounds.
///
/// There is no certificate revocation check (neither CRL nor OCSP) and no proxy support.
public struct NIOTransportConfiguration: Sendable {
    /// The authorities that a chain must end in.
    public var trustRoots: TrustRoots

    /// What each host's chain must contain, by `host` or `host:port` (the more specific one wins). Case and a trailing
    /// dot make no difference. The transport refuses to call a host that is not named.
    public var pins: [String: PinRequirement]

    /// The certificate that this client presents when a server asks for one.
    public var clientIdentity: ClientIdentity?

    /// Whether `http://` may be used to this machine itself, for a server under development. Never elsewhere.
    public var allowPlaintextLoopback: Bool

    /// Whether `http://` may be used to any host: for a gateway and the services behind it, which stand in one network.
    package var allowsPlaintext = false

    /// Which addresses may be connected to; `nil` for all. For URLs that others have chosen.
    package var addressRule: AddressRule?

    /// Whether a connection serves more than one request. Without this each request says `Connection: close`.
    package var keepsConnections = true

    /// Connections to one origin at one time.
    public var maximumConnectionsPerOrigin: Int

    /// Calls that may wait for a connection to one origin; one more is refused with `tooManyRequests`.
    public var maximumWaitingPerOrigin: Int

    /// Connections to one origin that may stand beside these because their calls are suspended; one more is not
    /// suspended.
    package var maximumSuspendedPerOrigin = 16

    /// How long each limit in time of a call is at least, whatever the call says; `nil` when the calls' limits hold.
    /// Timeouts run in real time: tests set this, so that no call of theirs is given up because a machine is busy.
    package var leastLimit: Duration?

    /// How long a connection without a call is kept.
    public var idleTimeout: Duration

    /// Bytes of a reply's status line and header fields, and of its trailer fields.
    public var headerBytes: Int

    /// Header fields of a reply.
    public var headerFields: Int

    /// A configuration. Everything that is left out has the safe value.
    public init(
        trustRoots: TrustRoots = .system, pins: [String: PinRequirement], clientIdentity: ClientIdentity? = nil,
        allowPlaintextLoopback: Bool = false
    ) {
        self.trustRoots = trustRoots
        self.pins = pins
        self.clientIdentity = clientIdentity
        self.allowPlaintextLoopback = allowPlaintextLoopback
        maximumConnectionsPerOrigin = 8
        maximumWaitingPerOrigin = 128
        idleTimeout = .seconds(30)
        headerBytes = 32 << 10
        headerFields = 128
    }

    /// The same with a least time for the limits of all calls, or without one.
    package func withLeastLimit(_ least: Duration?) -> NIOTransportConfiguration {
        var configuration = self
        configuration.leastLimit = least
        return configuration
    }

    func validate() throws(NIOTransportError) {
        let counts = [maximumConnectionsPerOrigin, headerBytes, headerFields]
        guard counts.allSatisfy({ $0 > 0 }), maximumWaitingPerOrigin >= 0, maximumSuspendedPerOrigin >= 0,
            idleTimeout >= .zero
        else {
            throw NIOTransportError(.invalidLimit, "Each limit must be positive.")
        }
    }
}

/// A client certificate for mutual TLS.
public struct ClientIdentity: Sendable {
    /// The certificates in PEM, the client's own first.
    public var certificateChain: String

    /// The private key of the first certificate, in PEM.
    public var privateKey: Secret

    /// A client certificate with its key.
    public init(certificateChain: String, privateKey: Secret) {
        self.certificateChain = certificateChain
        self.privateKey = privateKey
    }
}
