package import AssentCore
import AssentTransportNIO
import HTTPTypes
import Logging

/// What the operator's file says of the server's own calls.
package struct OutboundSettings: Sendable, Hashable {
    /// The hosts that may be called at addresses of this machine or of a private network.
    package var privateHosts: Set<NormalizedHost> = []

    /// The authorities that the certificates of called hosts must end in.
    package var authorities = TrustRoots.system

    /// Whether this machine may be called without TLS, for a server under development.
    package var allowsPlainLoopback = false

    /// How long a call may take, from the first look for an address to the last byte. The file does not change it.
    package var timeout = Duration.seconds(5)
}

/// The one place through which the server calls what a URL of its file leads to: over https, without redirects, at
/// addresses of the public Internet or of hosts that the file names, within five seconds, and 64 KiB at most.
///
/// The gateway's calls to its services are another matter: those are the operator's own, and may be in any network.
struct OutboundCalls: Sendable {
    /// Why nothing was fetched, or handed over.
    enum Failure: Error, Hashable {
        /// The URL cannot be called.
        case refusedURL
        /// The answer has another status than 200, or than 2xx for what was handed over. Redirects are not followed.
        case status(Int)
        /// There was no whole answer, or too long a one.
        case failed(HTTPTransportError.Code)
    }

    /// How many bytes an answer may have.
    static let replyBytes = 64 << 10

    private let transport: any HTTPTransport
    private let timeout: Duration

    /// Calls by a transport, which has to have the settings of ``transport(to:settings:connections:clock:logger:)``.
    init(_ transport: any HTTPTransport, timeout: Duration = OutboundSettings().timeout) {
        self.transport = transport
        self.timeout = timeout
    }

    /// Calls to these URLs and to no others, over so many connections to each origin at one time.
    ///
    /// - Throws: `NIOTransportError` when the authorities cannot be read.
    init(
        to urls: [String], settings: OutboundSettings, connections: Int = 2, clock: any WallClock, logger: Logger
    ) throws {
        self.init(
            try Self.transport(
                to: urls, settings: settings, connections: connections, clock: clock, logger: logger),
            timeout: settings.timeout)
    }

    private static func transport(
        to urls: [String], settings: OutboundSettings, connections: Int, clock: any WallClock, logger: Logger
    ) throws -> NIOTransport {
        let hosts = urls.compactMap { try? Origin($0) }.map { "\($0.host):\($0.port)" }
        var configuration = NIOTransportConfiguration(
            trustRoots: settings.authorities, pins: Dictionary(hosts.map { ($0, .unpinned) }, uniquingKeysWith: { $1 }))
        configuration.allowPlaintextLoopback = settings.allowsPlainLoopback
        configuration.addressRule = AddressRule(exempt: settings.privateHosts)
        configuration.keepsConnections = false
        configuration.maximumConnectionsPerOrigin = connections
        configuration.maximumWaitingPerOrigin = 16
        return try NIOTransport(configuration: configuration, clock: clock, logger: logger)
    }

    /// Why nothing can be fetched from a URL; `nil` when it can.
    static func fault(in url: String) -> String? {
        guard !mayCall(url) else { return nil }
        return "must be an https URL without user information and fragment, for example https://app.example/jwks"
    }

    /// Whether a URL can be called: over https or, if `plainly`, also at this machine without TLS.
    static func mayCall(_ url: String, plainly: Bool = false) -> Bool {
        guard url.utf8.count <= 2048, let origin = try? Origin(url), !url.contains("#") else { return false }
        return origin.isSecure || plainly && origin.host.isLoopback
    }

    /// Fetches what a URL leads to.
    ///
    /// - Parameters:
    ///   - url: the URL.
    ///   - accepted: the media types that the answer may have, for the field `Accept`.
    /// - Returns: the content.
    /// - Throws: ``Failure``.
    func fetch(_ url: String, accepting accepted: String) async throws(Failure) -> [UInt8] {
        guard Self.mayCall(url) else { throw .refusedURL }
        do {
            let call = try HTTPCall(.get, url: url, headerFields: [.accept: accepted], limits: limits)
            let reply = try await transport.send(call)
            guard reply.status == 200 else { throw Failure.status(reply.status) }
            return try await reply.body.collect(upTo: Self.replyBytes)
        } catch {
            throw Self.failure(error)
        }
    }

    /// Hands content over to what a URL leads to. Of the answer, only the status is looked at.
    ///
    /// - Throws: ``Failure``. It may have arrived all the same.
    func post(_ content: [UInt8], to url: String, fields: HTTPFields) async throws(Failure) {
        // The transport refuses to leave TLS out, unless its settings say otherwise.
        guard Self.mayCall(url, plainly: true) else { throw .refusedURL }
        do {
            let call = try HTTPCall(
                .post, url: url, headerFields: fields, body: HTTPBody(content), limits: limits)
            let reply = try await transport.send(call)
            guard (200..<300).contains(reply.status) else { throw Failure.status(reply.status) }
        } catch {
            throw Self.failure(error)
        }
    }

    private var limits: HTTPLimits {
        HTTPLimits(connect: timeout, read: timeout, total: timeout, replyBytes: Self.replyBytes)
    }

    private static func failure(_ error: any Error) -> Failure {
        switch error {
        case let error as Failure: error
        case let error as HTTPTransportError: .failed(error.code)
        default: .refusedURL
        }
    }
}
