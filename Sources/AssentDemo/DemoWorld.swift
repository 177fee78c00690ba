package import Assent
package import AssentCore
import AssentEngine
package import AssentServer
package import Foundation
package import Logging
import ServiceLifecycle

/// Everything that the story needs on this machine: the bank, the server with its gateway, the network before the
/// gateway, in a directory of its own that only this user may read.
package final class DemoWorld: Sendable {
    /// Where everything is kept; removed at the end.
    package let directory: String

    /// The clock of client and server.
    let clock: any WallClock

    /// Where this program and the bank are.
    let programs: URL

    let bank: BankProcess

    /// The stretch of network between the app and the gateway.
    let relay: Relay

    /// The gateway without an engine.
    let elsewhere: DemoGateway

    /// The stretch of network between the gateway and the bank, which tells what passes.
    private let bankRelay: Relay

    /// How long each limit in time of the story's calls is at least.
    let leastLimit: Duration?

    /// Where server and gateway are.
    package let endpoints: Endpoints

    /// What the server runs with.
    package let configuration: ServerConfiguration

    /// The user of the story.
    package let account: GeneratedAccount

    /// How an app of the story knows the server.
    let app: App

    /// The server itself.
    let server: IdentityServer
    private let services: ServiceGroup
    private let running: Task<Void, any Error>

    /// Where things come from.
    package struct Sources: Sendable {
        /// The configuration to run, with its ports and its directory replaced.
        package var configurationFile: String
        /// The directory of the bank's executable and of `assent` itself, which the user's phone runs.
        package var programs: URL
        /// How an app knows a server that runs; `nil` if the configuration has no public client.
        package var app: @Sendable (Endpoints, ServerConfiguration) -> App?
        /// What else is different, once its directory is known.
        package var configure: @Sendable (inout ServerConfiguration) throws -> Void = { _ in }
        /// Where the network before the gateway leads, when that is not the gateway itself: the port of a balancer.
        package var balancerPort: Int?
        /// How long each limit in time of the story's calls is at least; `nil` when the calls' own limits hold. No
        /// machine is too slow for a test.
        package var leastLimit: Duration?

        /// Sources.
        package init(
            configurationFile: String, programs: URL, app: @escaping @Sendable (Endpoints, ServerConfiguration) -> App?
        ) {
            self.configurationFile = configurationFile
            self.programs = programs
            self.app = app
        }
    }

    /// How an app of the story knows the server.
    package struct App: Sendable {
        /// The client's file, for the programs of the story.
        let file: String
        /// The same for an app that links the SDK.
        let configuration: @Sendable (Assent.Vault) -> Assent.Configuration

        /// An app.
        package init(
            file: String, configuration: @escaping @Sendable (Assent.Vault) -> Assent.Configuration
        ) {
            self.file = file
            self.configuration = configuration
        }
    }

    /// The network before the gateway, and the one behind it.
    private struct Network {
        let relay: Relay
        let bankRelay: Relay
        let elsewhere: DemoGateway
        let leastLimit: Duration?
    }

    /// The server, as it runs.
    private struct Running {
        let server: IdentityServer
        let services: ServiceGroup
        let task: Task<Void, any Error>
        let endpoints: Endpoints
        let account: GeneratedAccount
        let app: App
    }

    private init(
        directory: String, clock: any WallClock, programs: URL, bank: BankProcess, network: Network,
        configuration: ServerConfiguration, running: Running
    ) {
        self.directory = directory
        self.clock = clock
        self.programs = programs
        self.bank = bank
        relay = network.relay
        bankRelay = network.bankRelay
        elsewhere = network.elsewhere
        leastLimit = network.leastLimit
        endpoints = running.endpoints
        self.configuration = configuration
        app = running.app
        account = running.account
        server = running.server
        services = running.services
        self.running = running.task
    }

    /// What ends the parts that run already, in the order in which they were started.
    private typealias Ends = [@Sendable () async -> Void]

    /// Starts everything on free ports. `narration` is told what the bank is asked, and what it answers. A start that
    /// fails leaves nothing behind.
    package static func start(
        sources: Sources, clock: any WallClock, narration: Narration? = nil, logger: Logger
    ) async throws -> DemoWorld {
        let directory = try temporaryDirectory()
        var ends: Ends = []
        do {
            return try await start(
                sources, in: directory, clock: clock, narration: narration, logger: logger, ends: &ends)
        } catch {
            for end in ends.reversed() { await end() }
            try? FileManager.default.removeItem(atPath: directory)
            throw error
        }
    }

    private static func start(
        _ sources: Sources, in directory: String, clock: any WallClock, narration: Narration?, logger: Logger,
        ends: inout Ends
    ) async throws -> DemoWorld {
        var configuration = try ServerConfiguration.load(file: sources.configurationFile)
        let bank = try await BankProcess.start(
            executable: sources.programs.appending(path: "AssentExampleBank").path, directory: directory, owner: "ana")
        ends.append { await bank.stop() }
        let gatewayPort = Locked<Int?>(nil)
        let network = try await network(
            bank, gatewayPort: gatewayPort, narration: narration, leastLimit: sources.leastLimit, ends: &ends)
        configuration.dataDirectory = directory + "/server"
        configuration.publicURL = "https://localhost:0/am"
        configuration.port = 0
        configuration.gateway?.port = 0
        configuration.gateway?.publicURL = "https://localhost:\(network.relay.port)"
        configuration.gateway?.setUpstream("http://127.0.0.1:\(network.bankRelay.port)", likeRoute: "bank")
        configuration.trustFiles["bank"] = try trustFiles(in: directory)
        try network.elsewhere.admit(to: &configuration)
        try sources.configure(&configuration)
        let server = try await IdentityServer(configuration: configuration, clock: clock, logger: logger)
        let services = ServiceGroup(services: [server], logger: logger)
        let running = Task { try await services.run() }
        ends.append {
            await services.triggerGracefulShutdown()
            _ = try? await running.value
        }
        let endpoints: Endpoints
        do {
            endpoints = try await server.endpoints
            let port = try await server.gatewayPort
            gatewayPort.withLock { $0 = sources.balancerPort ?? port }
        } catch {
            running.cancel()
            // Why it does not run, if it has ended by itself.
            try await running.value
            throw error
        }
        guard let account = endpoints.accounts.first else {
            throw BankProcess.Failure(description: "the configuration has no user with generated credentials")
        }
        guard let app = sources.app(endpoints, configuration) else {
            throw BankProcess.Failure(description: "the configuration has no public client")
        }
        return DemoWorld(
            directory: directory, clock: clock, programs: sources.programs, bank: bank, network: network,
            configuration: configuration,
            running: Running(
                server: server, services: services, task: running, endpoints: endpoints, account: account, app: app))
    }

    /// Listens where the app, the gateway elsewhere and the bank will be reached.
    private static func network(
        _ bank: BankProcess, gatewayPort: Locked<Int?>, narration: Narration?, leastLimit: Duration?,
        ends: inout Ends
    ) async throws -> Network {
        let relay = try await Relay.start { gatewayPort.withLock { $0 } }
        ends.append { try? await relay.stop() }
        let bankRelay = try await Relay.start(observer: { narration?.tellBank($0, isReply: $1) }, to: { bank.port })
        ends.append { try? await bankRelay.stop() }
        let elsewhere = try await DemoGateway.reserve()
        ends.append { await elsewhere.stop() }
        return Network(relay: relay, bankRelay: bankRelay, elsewhere: elsewhere, leastLimit: leastLimit)
    }

    /// Where the server finds the versions of the apps' trust file.
    var trustFiles: String { directory + Self.trustFiles }

    private static let trustFiles = "/trust"

    private static func trustFiles(in directory: String) throws -> String {
        let path = directory + trustFiles
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        return path
    }

    /// Why the server refused a transaction, from its audit log: one entry for each refusal.
    func refusals(transactionID: String) async throws -> [String] {
        try await server.auditRecords(transactionID: transactionID).filter { $0.outcome == .refused }.map {
            $0.reason ?? ""
        }
    }

    /// Stops everything and removes the directory.
    package func stop() async {
        await services.triggerGracefulShutdown()
        _ = try? await running.value
        try? await relay.stop()
        try? await bankRelay.stop()
        await elsewhere.stop()
        await bank.stop()
        try? FileManager.default.removeItem(atPath: directory)
    }

    private static func temporaryDirectory() throws -> String {
        let name = "assent-demo-" + SystemRandom().token(byteCount: 9)
        let path = FileManager.default.temporaryDirectory.appending(path: name).path
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        return path
    }
}
