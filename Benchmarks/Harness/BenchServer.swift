import Assent
import AssentCore
import AssentEngine
import AssentPayload
import AssentPeers
import AssentStore
import AssentTokens
import AssentTransportNIO
import AssentVault
import Foundation
import NIOCore

/// The server as a process of its own, with a user who has signed in.
struct BenchServer {
    let process: ChildProcess
    let gatewayPort: Int

    /// An access token for the gateway.
    let accessToken: String

    /// The token of the user's session.
    let session: String

    /// The server's base URL.
    let url: String

    /// Its keys of payload encryption, in base64url.
    let payloadKeys: [String]

    private let directory: String

    /// Starts one in `directory`, its gateway in front of `upstream`, on a file of its own or on `database`; with
    /// WebSockets at `/live` if there are to be some, and with a gateway elsewhere if there is a secret for that. It is
    /// this program, or another build of it.
    init(
        in directory: String, upstream: String = "http://127.0.0.1:9", database: PostgreSQLConfiguration? = nil,
        hasWebSockets: Bool = false, edgeSecret: Secret? = nil, program: String? = nil
    ) throws {
        guard let executable = program ?? Bundle.main.executablePath else {
            throw BenchFailure("where is this program?")
        }
        self.directory = directory
        let place = try database.map { ["--database", try Self.lines($0, keyFile: directory + "/key")] } ?? []
        let live = hasWebSockets ? ["--live"] : []
        let edge = try edgeSecret.map {
            try Self.write($0.reveal(), to: directory + "/edge-secret")
            return ["--elsewhere", directory + "/edge-secret"]
        }
        process = try ChildProcess(
            executable, ["serve-gateway", directory, upstream] + place + live + (edge ?? []))
        guard let line = process.line(), let ready = try? JSONValue.parse(Array(line.utf8)),
            let port = ready["port"]?.integer, let token = ready["token"]?.string,
            let session = ready["session"]?.string, let url = ready["server"]?.string
        else {
            process.stop()
            throw BenchFailure("the server does not start")
        }
        gatewayPort = Int(port)
        accessToken = token
        self.session = session
        self.url = url
        payloadKeys = ready["payloadKeys"]?.array?.compactMap(\.string) ?? []
    }

    /// What the configuration's file says of a database on this machine. Makes the master key, which such a file names.
    private static func lines(_ database: PostgreSQLConfiguration, keyFile: String) throws -> String {
        guard let host = database.hosts.first else { throw BenchFailure("the database has no host") }
        try write(Data(SystemRandom().bytes(MasterKey.byteCount)).base64EncodedString(), to: keyFile)
        return """
            masterKeyFile: \(keyFile)
            database:
              postgresql:
                hosts: ["\(host.name)"]
                database: \(database.database)
                user: \(database.user)
                connections: \(database.connections)

            """
    }

    private static func write(_ secret: String, to file: String) throws {
        let isMade = FileManager.default.createFile(
            atPath: file, contents: Data((secret + "\n").utf8), attributes: [.posixPermissions: 0o600])
        guard isMade else { throw BenchFailure("\(file) cannot be written") }
    }

    /// The PEM file of its certificate, with the CA behind it.
    var chainFile: String { directory + "/data/server.pem" }

    /// Ends it.
    func stop() { process.stop() }

    /// A client's token manager, with the user signed in; its tokens belong to a key if `dpop` says so.
    func manager(
        clock: any WallClock = SystemClock(), dpop: DPoPConfiguration = .off
    ) async throws -> TokenManager {
        var configuration = try TokenConfiguration(
            issuer: url + "/oauth2/realms/root/realms/alpha", clientID: ServeGateway.client,
            redirectURI: ServeGateway.redirectURI, scopes: ["accounts"])
        configuration.dpop = dpop
        let manager = TokenManager(
            configuration: configuration, transport: try transport(), store: MemorySecretStore(), clock: clock)
        try await manager.install(Session(token: Secret(session)))
        return manager
    }

    private var network: NIOTransportConfiguration {
        NIOTransportConfiguration(
            trustRoots: .pemFile(directory + "/data/authority.pem"), pins: ["localhost": .unpinned])
    }

    /// The SDK's transport, which trusts the server's own CA.
    func transport() throws -> NIOTransport { try NIOTransport(configuration: network) }

    /// The same on a group of the benchmark's own.
    func transport(on group: any EventLoopGroup) throws -> NIOTransport {
        try NIOTransport(configuration: network, eventLoopGroup: group)
    }

    /// Where the gateway is.
    var gateway: String { "https://localhost:\(gatewayPort)" }

    /// What seals all calls to the gateway, as the SDK has it right above the pinned transport.
    func sealing(_ network: any HTTPTransport) throws -> PayloadTransport {
        let keys = try payloadKeys.map { text in
            ClientSession.Key(try PayloadKey(Base64URL.decode(text) ?? []), notAfter: .distantFuture)
        }
        let settings = PayloadSettings(
            origin: try Origin(gateway), app: "bench", version: "1.0", platform: HostPlatform.name)
        let seams = PayloadSeams(clock: SystemClock(), random: SystemRandom())
        return PayloadTransport(
            network, origins: [PayloadOrigin(settings, keys: keys, over: network, seams: seams)])
    }

    /// How many refreshes its audit log knows.
    func refreshes() async throws -> Int {
        let database = try await DatabaseLocation.sqlite(path: directory + "/data/assent.sqlite")
            .open(clock: SystemClock())
        let rows = try await database.run(
            .read("SELECT count(*) AS n FROM audit WHERE event = 'oauth.refresh' AND outcome = 'success'"))
        try await database.close()
        return Int(try rows.first?.integer("n") ?? -1)
    }
}
