public import AssentCore
public import AssentTokens
public import AssentTransportNIO
import HTTPTypes

/// A provider with the relay in front of it, as a client of it sees it.
public struct ProviderWorld: Sendable {
    /// Where everything passes that the client sends.
    public let relay: FaultRelay

    /// The client.
    public let configuration: TokenConfiguration

    /// The PEM file of the CA to trust; `nil` without TLS.
    public let authorityFile: String?

    /// Whether the provider repeats its answer to a refresh, as Assent's server does.
    public let repeatsAnswers: Bool

    /// Sessions of two users.
    public let sessions: (mine: Session, others: Session)

    public init(
        relay: FaultRelay, configuration: TokenConfiguration, authorityFile: String? = nil, repeatsAnswers: Bool,
        sessions: (mine: Session, others: Session)
    ) {
        self.relay = relay
        self.configuration = configuration
        self.authorityFile = authorityFile
        self.repeatsAnswers = repeatsAnswers
        self.sessions = sessions
    }

    /// A transport of the client's own.
    public func transport() throws -> NIOTransport {
        try NIOTransport(
            configuration: NIOTransportConfiguration(
                trustRoots: authorityFile.map { .pemFile($0) } ?? .system, pins: ["localhost": .unpinned],
                allowPlaintextLoopback: authorityFile == nil))
    }

    public func manager(_ store: any SecretStore, readLimit: Duration? = nil) throws -> TokenManager {
        var configuration = configuration
        if let readLimit { configuration.limits.read = readLimit }
        return TokenManager(configuration: configuration, transport: try transport(), store: store)
    }

    /// Revokes a refresh token as another device would (RFC 7009).
    func revoke(_ refreshToken: Secret, at endpoint: String) async throws {
        let form = FormEncoding.encode([
            "token": refreshToken.reveal(), "token_type_hint": "refresh_token", "client_id": configuration.clientID,
        ])
        let request = try HTTPRequest(.post, url: endpoint, headerFields: [.contentType: FormEncoding.mediaType])
        let reply = try await transport().send(HTTPCall(request, body: HTTPBody(form)))
        guard (200..<300).contains(reply.status) else { throw Refused(status: reply.status) }
    }

    private struct Refused: Error { let status: Int }
}
