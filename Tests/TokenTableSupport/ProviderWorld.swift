package import AssentCore
package import AssentTokens
package import AssentTransportNIO
import HTTPTypes
import TestSupport

/// A provider with the relay in front of it, as a client of it sees it.
package struct ProviderWorld: Sendable {
    /// Where everything passes that the client sends.
    package let relay: FaultRelay

    /// The client.
    package let configuration: TokenConfiguration

    /// The PEM file of the CA to trust; `nil` without TLS.
    package let authorityFile: String?

    /// Whether the provider repeats its answer to a refresh, as Assent's server does.
    package let repeatsAnswers: Bool

    /// Whether the provider refuses a spent refresh token as RFC 6749 says.
    package let saysInvalidGrant: Bool

    /// Sessions of two sign-ins.
    package let sessions: (mine: Session, others: Session)

    package init(
        relay: FaultRelay, configuration: TokenConfiguration, authorityFile: String? = nil, repeatsAnswers: Bool,
        saysInvalidGrant: Bool = true, sessions: (mine: Session, others: Session)
    ) {
        self.relay = relay
        self.configuration = configuration
        self.authorityFile = authorityFile
        self.repeatsAnswers = repeatsAnswers
        self.saysInvalidGrant = saysInvalidGrant
        self.sessions = sessions
    }

    /// A transport of the client's own, which waits longer than any machine needs.
    package func transport() throws -> NIOTransport { try transport(leastLimit: .seconds(Patience.seconds)) }

    /// The same which gives each limit in time of a call at least so long; `nil` when the calls' own limits hold.
    package func transport(leastLimit: Duration?) throws -> NIOTransport {
        try NIOTransport(
            configuration: NIOTransportConfiguration(
                trustRoots: authorityFile.map { .pemFile($0) } ?? .system, pins: ["localhost": .unpinned],
                allowPlaintextLoopback: authorityFile == nil
            ).withLeastLimit(leastLimit))
    }

    package func manager(
        _ store: any SecretStore, _ transport: (any HTTPTransport)? = nil
    ) throws -> TokenManager {
        TokenManager(configuration: configuration, transport: try transport ?? self.transport(), store: store)
    }

    /// Uses a refresh token up, as somebody who has stolen it.
    package func spend(_ refreshToken: Secret, at tokenEndpoint: String) async throws {
        let form = FormEncoding.encode([
            "grant_type": "refresh_token", "refresh_token": refreshToken.reveal(), "client_id": configuration.clientID,
        ])
        let request = try HTTPRequest(.post, url: tokenEndpoint, headerFields: [.contentType: FormEncoding.mediaType])
        let reply = try await transport().send(HTTPCall(request, body: HTTPBody(form)))
        guard reply.status == 200 else { throw Refused(status: reply.status) }
    }

    private struct Refused: Error { let status: Int }
}
