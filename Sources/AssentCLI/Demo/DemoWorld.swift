import AssentCore
import AssentEngine
import AssentServer
import Foundation
import Logging
import ServiceLifecycle

/// Everything that the story needs on this machine: the bank, the server with its gateway, the network before the
/// gateway, in a directory of its own that only this user may read.
final class DemoWorld: Sendable {
    /// Where everything is kept; removed at the end.
    let directory: String

    /// The clock of client and server.
    let clock: any WallClock

    /// Where this program and the bank are.
    let programs: URL

    let bank: BankProcess

    /// The stretch of network between the app and the gateway.
    let relay: Relay

    /// The stretch of network between the gateway and the bank, which tells what passes.
    private let bankRelay: Relay

    let endpoints: Endpoints
    let configuration: ServerConfiguration
    let account: GeneratedAccount

    private let server: IdentityServer
    private let services: ServiceGroup
    private let running: Task<Void, any Error>

    /// Where things come from.
    struct Sources: Sendable {
        /// The configuration to run, with its ports and its directory replaced.
        var configurationFile: String
        /// The directory of the bank's executable and of `assent` itself, which the user's phone runs.
        var programs: URL
        /// What else is different, once its directory is known.
        var configure: @Sendable (inout ServerConfiguration) throws -> Void = { _ in }
    }

    /// The network before the gateway, and the one behind it.
    private struct Network {
        let relay: Relay
        let bankRelay: Relay
    }

    /// The server, as it runs.
    private struct Running {
        let server: IdentityServer
        let services: ServiceGroup
        let task: Task<Void, any Error>
        let endpoints: Endpoints
        let account: GeneratedAccount
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
        endpoints = running.endpoints
        self.configuration = configuration
        account = running.account
        server = running.server
        services = running.services
        self.running = running.task
    }

    /// Starts everything on free ports. `narration` is told what the bank is asked, and what it answers.
    static func start(
        sources: Sources, clock: any WallClock, narration: Narration? = nil, logger: Logger
    ) async throws -> DemoWorld {
        let directory = try temporaryDirectory()
        do {
            var configuration = try ServerConfiguration.load(file: sources.configurationFile)
            let bank = try await BankProcess.start(
                executable: sources.programs.appending(path: "AssentExampleBank").path, directory: directory,
                owner: "ana")
            let gatewayPort = Locked<Int?>(nil)
            let relay = try await Relay.start { gatewayPort.withLock { $0 } }
            let bankRelay = try await Relay.start(observer: { narration?.tellBank($0, isReply: $1) }, to: { bank.port })
            configuration.dataDirectory = directory + "/server"
            configuration.publicURL = "https://localhost:0/am"
            configuration.port = 0
            configuration.gateway?.port = 0
            configuration.gateway?.publicURL = "https://localhost:\(relay.port)"
            configuration.gateway?.setUpstream("http://127.0.0.1:\(bankRelay.port)", ofRoute: "bank")
            try sources.configure(&configuration)
            let server = try await IdentityServer(configuration: configuration, clock: clock, logger: logger)
            let services = ServiceGroup(services: [server], logger: logger)
            let running = Task { try await services.run() }
            let endpoints: Endpoints
            do {
                endpoints = try await server.endpoints
                let port = try await server.gatewayPort
                gatewayPort.withLock { $0 = port }
            } catch {
                await bank.stop()
                running.cancel()
                try await running.value
                throw error
            }
            guard let account = endpoints.accounts.first else {
                throw BankProcess.Failure(description: "the configuration has no user with generated credentials")
            }
            return DemoWorld(
                directory: directory, clock: clock, programs: sources.programs, bank: bank,
                network: Network(relay: relay, bankRelay: bankRelay), configuration: configuration,
                running: Running(
                    server: server, services: services, task: running, endpoints: endpoints, account: account))
        } catch {
            try? FileManager.default.removeItem(atPath: directory)
            throw error
        }
    }

    /// Why the server refused a transaction, from its audit log: one entry for each refusal.
    func refusals(transactionID: String) async throws -> [String] {
        try await server.auditRecords(transactionID: transactionID).filter { $0.outcome == .refused }.map {
            $0.reason ?? ""
        }
    }

    /// Stops everything and removes the directory.
    func stop() async {
        await services.triggerGracefulShutdown()
        _ = try? await running.value
        try? await relay.stop()
        try? await bankRelay.stop()
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
