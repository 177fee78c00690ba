import ArgumentParser
import AssentCore
import AssentEngine
import AssentServer
import AssentStore
import Crypto
import Foundation
import Logging
import ServiceLifecycle

/// The server with its gateway, as a process of its own whose processor time can be read. It runs until it is ended.
struct ServeGateway: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "serve-gateway", shouldDisplay: false)

    @Argument var home: String
    @Argument var upstream: String

    @Option(help: "The lines of the configuration's file that say where the database is; else a file.")
    var database = ""

    @Flag(help: "Has a route with WebSockets.")
    var live = false

    @Option(help: "The file of a secret by which a gateway elsewhere may ask.")
    var elsewhere: String?

    static let realm = "/alpha"
    static let client = "bank-app"

    /// The client of gateways elsewhere, and the origin that they may speak for.
    static let edge = (client: "edge", origin: "https://localhost:9543")
    static let redirectURI = "http://127.0.0.1/callback"

    private static let livePath = #", "https://localhost:*/live""#

    private static func liveRoute(_ upstream: String) -> String {
        #"    - {name: live, path: /live, upstream: "\#(upstream)", realm: alpha, policySet: bank, websocket: true}"#
    }

    /// The last of the realm's clients, and behind them the group that it is in.
    private static func edgeLines(secretFile: String) -> String {
        """
              \(edge.client): {secretFile: "\(secretFile)", grantTypes: [client_credentials], scopes: [enforcement]}
            enforcement:
              edge: {clients: [\(edge.client)], policySets: [bank], origins: ["\(edge.origin)"]}
        """
    }

    /// One realm, one user without a password, one client, one policy for what is asked for and one more beside it.
    private static func yaml(upstream: String, isLive: Bool, elsewhere: String?) -> String {
        """
        development: true
        publicURL: https://localhost:0/am
        listen: {host: 127.0.0.1, port: 0}
        dataDirectory: data
        transactionsPerMinute: 10000
        journeyStartsPerMinute: 1000000
        realms:
          alpha:
            defaultJourney: Confirm
            users:
              - {username: ana}
            signing:
              name: Bank of Example
              devices: 20
              freshSeconds: 3600
            journeys:
              Confirm:
                entry: approve
                transactionalOnly: true
                nodes:
                  approve:
                    type: TransactionApprovalNode
                    outcomes: {approve: success, decline: failure}
              Password:
                entry: credentials
                nodes:
                  credentials:
                    type: PageNode
                    config: {nodes: [{type: UsernameCollectorNode}, {type: PasswordCollectorNode}]}
                    outcomes: {outcome: check}
                  check: {type: DataStoreDecisionNode, outcomes: {"true": success, "false": failure}}
            clients:
              \(client):
                redirectURIs: ["\(redirectURI)"]
                scopes: [accounts]
        \(elsewhere.map(edgeLines) ?? "")
            policySets:
              bank:
                policies:
                  - name: read
                    resources: ["https://localhost:*/accounts", "https://localhost:*/transfers"\(isLive ? livePath : "")]
                    actionValues: {GET: true}
                    subject: {type: AuthenticatedUsers}
                  - name: pay
                    resources: ["https://localhost:*/transfers"]
                    actionValues: {POST: true}
                    subject: {type: AuthenticatedUsers}
                    condition: {type: Transaction, strategySpecifier: Confirm}
                    bind: [method, query, body]
        gateway:
          publicURL: https://localhost:0
          port: 0
          routes:
            - {name: open, path: /open, upstream: "\(upstream)", public: true}
            - {name: bank, upstream: "\(upstream)", realm: alpha, policySet: bank}
        \(isLive ? liveRoute(upstream) : "")

        """
    }

    @concurrent
    func run() async throws {
        let file = home + "/assent.yaml"
        let text = Self.yaml(upstream: upstream, isLive: live, elsewhere: elsewhere) + database
        try Data(text.utf8).write(to: URL(fileURLWithPath: file))
        var logger = Logger(label: "bench", factory: { StreamLogHandler.standardError(label: $0) })
        logger.logLevel = .warning
        let configuration = try ServerConfiguration.load(file: file)
        let server = try await IdentityServer(configuration: configuration, logger: logger)
        let running = Task { [logger] in try await ServiceGroup(services: [server], logger: logger).run() }
        let endpoints = try await server.endpoints
        guard let port = try await server.gatewayPort else { throw BenchFailure("there is no gateway") }
        let context = try await Self.context(configuration, logger: logger)
        let (token, session) = try await Self.signIn(configuration, endpoints: endpoints, context)
        let keys = try await Self.payloadKeys(context)
        try await context.database.close()
        let ready: JSONValue = [
            "port": .integer(port), "token": .string(token.reveal()), "session": .string(session.reveal()),
            "server": .string(endpoints.server), "payloadKeys": .array(keys.map(JSONValue.string)),
        ]
        try FileHandle.standardOutput.write(contentsOf: Data((ready.serialized() + "\n").utf8))
        try await running.value
    }

    /// The server's own database: what is made there is not what is measured.
    static func context(
        _ configuration: ServerConfiguration, logger: Logger
    ) async throws -> EngineContext {
        let data = configuration.dataDirectory
        let keyFile = configuration.masterKeyFile ?? data + "/master.key"
        let keyText = try String(contentsOfFile: keyFile, encoding: .utf8)
        guard let key = Data(base64Encoded: keyText.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            throw BenchFailure("no master key")
        }
        let location = configuration.postgreSQL.map(DatabaseLocation.postgresql)
        let database = try await (location ?? .sqlite(path: data + "/assent.sqlite")).open(clock: SystemClock())
        return EngineContext(
            database: database, clock: SystemClock(), random: SystemRandom(),
            masterKey: try MasterKey(Secret(bytes: Array(key))), logger: logger)
    }

    /// Two keys of payload encryption, as clients have them.
    private static func payloadKeys(_ context: EngineContext) async throws -> [String] {
        let (keys, now) = (PayloadKeys(context), context.clock.epochSeconds)
        var made: [String] = []
        for _ in 0..<2 {
            let key = try await keys.add(notBefore: now, notAfter: now + 365 * 86_400) { _ in
                SQLStatement.read("SELECT 1 AS one")
            }
            made.append(key.publicKey)
        }
        return made
    }

    /// A session, and an access token that it has granted.
    private static func signIn(
        _ configuration: ServerConfiguration, endpoints: Endpoints, _ context: EngineContext
    ) async throws -> (accessToken: Secret, session: Secret) {
        guard let user = try await Users(context).find(username: "ana", realm: realm),
            let clients = configuration.realms.first?.clients
        else { throw BenchFailure("the user is not there") }
        let sessions = Sessions(context)
        let begun = try await sessions.begin(userID: user.id, realm: realm, limits: SessionLimits())
        let session = try await sessions.live(token: begun.token)
        let grants = try OAuthProvider(
            context, keys: ServerKeys(context),
            configuration: OAuthProviderConfiguration(
                realm: realm, issuer: endpoints.server + "/oauth2/realms/root/realms/alpha", clients: clients))
        let verifier = SystemRandom().token()
        let challenge = Base64URL.encode(Array(SHA256.hash(data: Array(verifier.utf8))))
        let outcome = try await AuthorizationEndpoint(grants).answer(
            OAuthParameters(
                FormItems([
                    "client_id": client, "redirect_uri": redirectURI, "response_type": "code", "scope": "accounts",
                    "code_challenge": challenge, "code_challenge_method": "S256",
                ])), session: session)
        guard case .redirect(let redirect) = outcome, let code = redirect["code"] else {
            throw BenchFailure("no authorization code")
        }
        let exchange = try OAuthParameters(
            FormItems([
                "grant_type": "authorization_code", "client_id": client, "redirect_uri": redirectURI, "code": code,
                "code_verifier": verifier,
            ]))
        let reply = try await grants.tokens(
            exchange, of: try await grants.clients.client(of: exchange, authorization: nil, at: .token),
            proof: nil, claimingProof: {})
        return (reply.accessToken, begun.token)
    }
}
