import AssentCore
import AssentPeers
import AssentTokens
import AssentTransportNIO
import AssentVault
import Foundation
import HTTPTypes
import Logging
import ServiceLifecycle
import TestSupport
import Testing

@testable import AssentServer

/// Our server with TLS, on a free port, with a database in a directory of its own.
final class OurServer: Sendable {
    /// The server of the suite, where the suite has ``OurServerTrait``.
    @TaskLocal static var current: OurServer?

    /// A client with a secret, and a resource server.
    static let webSecret = Secret(SystemRandom().token())
    static let apiSecret = Secret(SystemRandom().token())

    /// What the access tokens of the clients `app` and `web` are for.
    static let audience = "https://api.example"

    let endpoints: Endpoints
    /// It goes, so that programs with a clock of their own agree, however long a suite's tests wait for their turn.
    let clock = GoingClock()
    let transport: NIOTransport
    private let directory: String
    private let running: Task<Void, any Error>

    /// A clock that goes, and can be set: for programs that compare the server's time with theirs to the second.
    final class GoingClock: WallClock {
        private let offset: Locked<TimeInterval>

        /// A clock that is slow by so many seconds.
        init(slowBy seconds: TimeInterval = 0) { offset = Locked(-seconds) }

        var now: Date { Date() + offset.withLock { $0 } }

        /// Sets it ahead by so many seconds, or back.
        func advance(by seconds: TimeInterval) { offset.withLock { $0 += seconds } }

        /// Sets it right.
        func setRight() { offset.withLock { $0 = 0 } }

        func sleep(until deadline: Date) async throws {
            try await SystemClock().sleep(until: Date() + deadline.timeIntervalSince(now))
        }
    }

    static func run(
        clients: String = clients, apps: String = "", secrets: [String: Secret] = [:],
        clock: (any WallClock)? = nil, _ body: (OurServer) async throws -> Void
    ) async throws {
        let server = try await OurServer(clients: clients, apps: apps, secrets: secrets, clock: clock)
        defer { server.stop() }
        try await body(server)
    }

    /// A server with these clients and apps, in YAML; `secrets` are the files that they name. It goes by `clock` where
    /// one is given, and otherwise by its own.
    init(
        clients: String = clients, apps: String = "", secrets: [String: Secret] = [:],
        clock other: (any WallClock)? = nil
    ) async throws {
        directory = try Peer.temporaryDirectory()
        for (name, secret) in secrets {
            try PrivateFile.create(directory + "/" + name, secret.revealBytes())
        }
        let logger = Logger(label: "interop") { _ in SwiftLogNoOpLogHandler() }
        var configuration = try ServerConfiguration.parse(
            Self.yaml(clients, apps: apps), file: directory + "/assent.yaml")
        configuration.bePatient(seconds: 600)
        let server = try await IdentityServer(configuration: configuration, clock: other ?? clock, logger: logger)
        let group = ServiceGroup(services: [server], logger: logger)
        running = Task { try await group.run() }
        endpoints = try await server.endpoints
        transport = try NIOTransport(
            configuration: NIOTransportConfiguration(
                trustRoots: .pemFile(try #require(endpoints.authorityFile)), pins: ["localhost": .unpinned]
            ).withLeastLimit(.seconds(Patience.seconds)))
    }

    /// Lets go of everything but the server itself, which ends with the process.
    func stop() {
        try? FileManager.default.removeItem(atPath: directory)
    }

    var issuer: String { endpoints.server + "/oauth2/realms/root/realms/alpha" }

    /// A session of Ana's.
    func signIn() async throws -> Session {
        let account = try #require(endpoints.accounts.first)
        let browser = try PeerClient(transport)
        let url = endpoints.server + "/json/realms/root/realms/alpha/authenticate"
        let step = try await browser.send(.post, url, json: [:]).json
        let text = String(decoding: step.serializedBytes(), as: UTF8.self)
        let callbacks = try #require(step["callbacks"]?.array)
        #expect(callbacks.count == 2, "\(text)")
        let filled: JSONValue = [
            "authId": try #require(step["authId"]),
            "callbacks": [
                [
                    "type": "NameCallback", "output": [],
                    "input": [["name": "IDToken1", "value": .string(account.username)]],
                ],
                [
                    "type": "PasswordCallback", "output": [],
                    "input": [["name": "IDToken2", "value": .string(account.password.reveal())]],
                ],
            ],
        ]
        let done = try await browser.send(.post, url, json: filled).json
        return Session(token: Secret(try #require(done["tokenId"]?.string)))
    }

    func configuration(
        client: String = "app", redirectURI: String = "http://127.0.0.1:9999/cb",
        scopes: [String] = ["openid", "profile"]
    ) throws -> TokenConfiguration {
        try TokenConfiguration(issuer: issuer, clientID: client, redirectURI: redirectURI, scopes: scopes)
    }

    /// Tokens of a new sign-in, got by the SDK.
    func tokens(
        client: String = "app", redirectURI: String = "http://127.0.0.1:9999/cb",
        scopes: [String] = ["openid", "profile"]
    ) async throws -> TokenSet {
        try await manager(configuration(client: client, redirectURI: redirectURI, scopes: scopes)).tokens()
    }

    /// The SDK with a new session of Ana's. It goes by `clock` where one is given, and otherwise by the server's own.
    func manager(_ configuration: TokenConfiguration, clock other: (any WallClock)? = nil) async throws -> TokenManager
    {
        let manager = TokenManager(
            configuration: configuration, transport: transport, store: MemorySecretStore(), clock: other ?? clock)
        try await manager.install(try await signIn())
        return manager
    }

    /// What the Python clients are told.
    func job(client: String, authentication: String) throws -> JSONValue {
        let account = try #require(endpoints.accounts.first)
        return [
            "issuer": .string(issuer), "client_id": .string(client), "auth": .string(authentication),
            "secret": authentication == "none" ? .null : .string(Self.webSecret.reveal()),
            "redirect_uri": "http://127.0.0.1:9999/cb", "scope": "openid profile",
            "ca": .string(try #require(endpoints.authorityFile)), "server": .string(endpoints.server), "realm": "alpha",
            "username": .string(account.username), "password": .string(account.password.reveal()),
            "introspect": [
                "client_id": "api", "secret": .string(Self.apiSecret.reveal()), "auth": "basic",
            ],
        ]
    }

    private static func hash(_ secret: Secret) -> String { Base64URL.encode(SHA2.sha256(secret.revealBytes())) }

    private static func yaml(_ clients: String, apps: String) -> String {
        realm + indented(clients, by: 6) + (apps.isEmpty ? "" : "    apps:\n" + indented(apps, by: 6))
    }

    private static func indented(_ text: String, by count: Int) -> String {
        text.split(separator: "\n").map { String(repeating: " ", count: count) + $0 + "\n" }.joined()
    }

    private static let realm = """
        development: true
        publicURL: https://localhost:0/am
        listen: {host: 127.0.0.1, port: 0}
        dataDirectory: data
        passwordCost: 1024
        realms:
          alpha:
            defaultJourney: Login
            users:
              - {username: ana, credentials: generated, attributes: {givenName: Ana, name: Ana Alvarez, mail: ana@bank.example}}
            journeys:
              Login:
                entry: credentials
                nodes:
                  credentials:
                    type: PageNode
                    config: {nodes: [{type: UsernameCollectorNode}, {type: PasswordCollectorNode}]}
                    outcomes: {outcome: check}
                  check: {type: DataStoreDecisionNode, outcomes: {"true": success, "false": failure}}
            clients:

        """

    static let clients = """
        app:
          redirectURIs: ["http://127.0.0.1/cb", "http://localhost:9999/cb"]
          scopes: [openid, profile]
          audience: ["\(audience)"]
        elsewhere:
          redirectURIs: ["http://127.0.0.1/cb"]
          scopes: [openid, profile]
          audience: ["https://elsewhere.example"]
        strict:
          redirectURIs: ["http://127.0.0.1/cb"]
          scopes: [openid, profile]
          audience: ["\(audience)"]
          dpopBound: true
          dpop: {nonce: required}
        web:
          secretHash: \(hash(webSecret))
          redirectURIs: ["http://127.0.0.1/cb"]
          scopes: [openid, profile]
          audience: ["\(audience)"]
          idTokenAlgorithm: ES256
        api:
          secretHash: \(hash(apiSecret))
          grantTypes: []
          introspectsAll: true
        """
}

/// One server for all tests of a suite.
struct OurServerTrait: SuiteTrait, TestScoping {
    @concurrent func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        try await OurServer.run { server in
            try await OurServer.$current.withValue(server) { try await function() }
        }
    }
}

extension SuiteTrait where Self == OurServerTrait {
    /// One server of ours for the suite.
    static var ourServer: Self { OurServerTrait() }
}
