import AssentCore
import AssentServer
import AssentStore
import AssentTokens
import AssentTransportNIO
import Foundation
import HTTPTypes
import Logging
import ServiceLifecycle
import TestSupport
import TokenTableSupport

@testable import AssentEngine
@testable import AssentServer

/// Assent's server over TLS, behind a relay that ends TLS too.
final class AssentWorld: Sendable {
    let world: ProviderWorld
    private let server: IdentityServer
    private let directory: String
    private let running: Task<Void, any Error>

    init() async throws {
        directory = NSTemporaryDirectory() + "/assent-tokens-" + SystemRandom().uuid()
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        let certificates = try GeneratedCertificates.make(now: Date())
        let authorityFile = directory + "/relay.pem"
        try Data(certificates.authorityPEM.utf8).write(to: URL(filePath: authorityFile))
        let target = Locked<(port: Int, transport: NIOTransport)?>(nil)
        let relay = try await FaultRelay(tls: (certificates.chainPEM, certificates.privateKeyPEM)) { request, body in
            guard let (port, transport) = target.withLock({ $0 }) else { throw CancellationError() }
            var request = request
            request.authority = "localhost:\(port)"
            return try await transport.send(HTTPCall(request, body: body.isEmpty ? nil : HTTPBody(body)))
        }
        var configuration = try ServerConfiguration.parse(
            Self.yaml(publicURL: relay.url("/am")), file: directory + "/assent.yaml")
        configuration.bePatient(seconds: 600)
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        server = try await IdentityServer(configuration: configuration, logger: logger)
        let group = ServiceGroup(services: [server], logger: logger)
        running = Task { try await group.run() }
        let endpoints = try await server.endpoints
        let transport = try NIOTransport(
            configuration: NIOTransportConfiguration(
                trustRoots: endpoints.authorityFile.map { .pemFile($0) } ?? .system, pins: ["localhost": .unpinned]
            ).withLeastLimit(.seconds(Patience.seconds)))
        let port = try await server.serverPort
        target.withLock { $0 = (port, transport) }
        let issuer = relay.url("/am/oauth2/realms/root/realms/alpha")
        let context = server.context
        func session(_ username: String) async throws -> Session {
            guard let user = try await Users(context).find(username: username, realm: "/alpha") else {
                throw CancellationError()
            }
            // All rows share them, however long a slow machine takes for so many.
            let limits = SessionLimits(maxSession: 365 * 86_400, maxIdle: 365 * 86_400)
            return Session(
                token: try await Sessions(context).begin(userID: user.id, realm: "/alpha", limits: limits).token)
        }
        world = ProviderWorld(
            relay: relay,
            configuration: try TokenConfiguration(
                issuer: issuer, clientID: "bank-app", redirectURI: "http://127.0.0.1/callback",
                scopes: ["openid", "accounts"]),
            authorityFile: authorityFile, repeatsAnswers: true,
            sessions: (try await session("ana"), try await session("ben")))
    }

    /// Grants that are not over.
    func liveGrants() async throws -> Int {
        try await count("SELECT count(*) AS n FROM grants WHERE revoked_at IS NULL")
    }

    /// Refresh tokens that can be used.
    func liveRefreshTokens() async throws -> Int {
        try await count(
            """
            SELECT count(*) AS n FROM refresh_tokens r JOIN grants g ON g.id = r.grant_id
            WHERE r.used_at IS NULL AND g.revoked_at IS NULL
            """)
    }

    private func count(_ sql: SQL) async throws -> Int {
        Int(try await server.database.run(.read(sql)).first?.integer("n") ?? -1)
    }

    /// The server itself ends with the process, as in the server's own tests.
    func stop() async {
        await world.relay.stop()
        try? FileManager.default.removeItem(atPath: directory)
    }

    private static func yaml(publicURL: String) -> String {
        """
        development: true
        publicURL: \(publicURL)
        listen: {host: 127.0.0.1, port: 0}
        dataDirectory: data
        passwordCost: 1024
        realms:
          alpha:
            defaultJourney: Quick
            sessions: {maxMinutes: 120, idleMinutes: 30}
            users:
              - {username: ana, credentials: generated}
              - {username: ben, credentials: generated}
            journeys:
              Quick:
                entry: credentials
                nodes:
                  credentials:
                    type: PageNode
                    config: {nodes: [{type: UsernameCollectorNode}, {type: PasswordCollectorNode}]}
                    outcomes: {outcome: check}
                  check: {type: DataStoreDecisionNode, outcomes: {"true": success, "false": failure}}
            clients:
              bank-app:
                redirectURIs: ["http://127.0.0.1/callback"]
                scopes: [openid, accounts]
                accessTokenSeconds: 600
                idTokenAlgorithm: ES256
        """
    }
}
