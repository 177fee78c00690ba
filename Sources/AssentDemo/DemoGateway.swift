import Assent
import AssentCore
import AssentEngine
import AssentJOSE
import AssentServer
import Foundation
import Logging
import ServiceLifecycle

/// A gateway without an engine (`assent serve --gateway-only`), for the story. Its address is known before the server
/// starts, which has to let it ask; it runs only while it is shown.
final class DemoGateway: Sendable {
    /// Scheme, host and port by which the app knows it.
    let url: String

    private static let clientID = "edge-gateway"

    private let key: SoftwareSigningKey
    private let relay: Relay
    private let port: Locked<Int?>

    /// Takes an address.
    static func reserve() async throws -> DemoGateway {
        let port = Locked<Int?>(nil)
        return DemoGateway(
            key: try SoftwareSigningKey.generate(.es256), relay: try await Relay.start { port.withLock { $0 } },
            port: port)
    }

    private init(key: SoftwareSigningKey, relay: Relay, port: Locked<Int?>) {
        self.key = key
        self.relay = relay
        self.port = port
        url = "https://localhost:\(relay.port)"
    }

    /// Lets it ask about the policies that the gateway beside the engine asks about. Does nothing to a configuration
    /// without such a gateway.
    ///
    /// - Throws: `WireError` or `JOSEError`.
    func admit(to configuration: inout ServerConfiguration) throws {
        guard let access = Self.access(configuration),
            let index = configuration.realms.firstIndex(where: { $0.name == access.realm })
        else { return }
        var client = OAuthClient(
            id: Self.clientID, kind: .keyed(ClientKeys(.listed(JWKSet([try JWK(publicKeyInfo: key.publicKeyInfo)])))),
            redirectURIs: [], scopes: ["enforcement"])
        client.grantTypes = [.clientCredentials]
        configuration.realms[index].clients.append(client)
        configuration.realms[index].enforcement.append(
            EnforcementGroup(
                name: "edge", clients: [Self.clientID], policySets: [access.policySet], origins: [try Origin(url)]))
    }

    /// Runs `body` beside the gateway.
    func run(of world: DemoWorld, logger: Logger, _ body: () async throws -> Void) async throws {
        let place = world.directory + "/edge"
        try FileManager.default.createDirectory(
            atPath: place, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        let pem = Data(key.privateKey.revealBytes())
            .base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        try write("-----BEGIN PRIVATE KEY-----\n\(pem)\n-----END PRIVATE KEY-----\n", to: place + "/client.key")
        try write(try text(of: world), to: place + "/edge.yaml")
        var configuration = try GatewayServerConfiguration.load(file: place + "/edge.yaml")
        if let least = world.leastLimit { configuration.bePatient(seconds: Int(least.components.seconds)) }
        let gateway = try GatewayServer(configuration: configuration, clock: world.clock, logger: logger)
        let group = ServiceGroup(services: [gateway], logger: logger)
        let running = Task { try await group.run() }
        let result: Result<Void, any Error>
        do {
            _ = try await gateway.url
            let found = try await gateway.port
            port.withLock { $0 = found }
            try await body()
            result = .success(())
        } catch {
            result = .failure(error)
        }
        await group.triggerGracefulShutdown()
        _ = try? await running.value
        try? FileManager.default.removeItem(atPath: place)
        try result.get()
    }

    func stop() async { try? await relay.stop() }

    private static func access(_ configuration: ServerConfiguration) -> (realm: String, policySet: String)? {
        for route in configuration.gateway?.routes ?? [] {
            if case .policies(let realm, let policySet) = route.access { return (realm, policySet) }
        }
        return nil
    }

    private func text(of world: DemoWorld) throws -> String {
        let configuration = world.configuration
        guard let access = Self.access(configuration), let route = configuration.gateway?.routes.first,
            let upstream = route.upstream.addresses.first
        else { throw BankProcess.Failure(description: "the configuration has no gateway with policies") }
        let files = configuration.certificateFiles
        let authority = world.endpoints.authorityFile.map { "authorities: \"\($0)\"" } ?? ""
        return """
            development: true
            cookieName: \(configuration.cookieName)
            tls: {certificate: "\(files.chain)", privateKey: "\(files.privateKey)"}
            engine:
              url: \(world.endpoints.server)
              \(authority)
              realms:
                \(access.realm): {clientID: \(Self.clientID), privateKey: client.key}
            gateway:
              publicURL: \(url)
              port: 0
              routes:
                - name: bank
                  upstream: \(upstream)
                  realm: \(access.realm)
                  policySet: \(access.policySet)
                  scopes: [accounts]
            """
    }

    private func write(_ text: String, to path: String) throws {
        guard
            FileManager.default.createFile(
                atPath: path, contents: Data(text.utf8), attributes: [.posixPermissions: 0o600])
        else { throw BankProcess.Failure(description: "\(path) cannot be written") }
    }
}
