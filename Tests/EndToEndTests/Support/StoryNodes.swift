#if PostgreSQL && os(Linux)
import AssentCore
import AssentServer
import AssentStore
import AssentTransportNIO
import Foundation
import HTTPTypes
import Logging
import StoreTesting
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

/// A story's world whose server is two nodes on one PostgreSQL database, behind HAProxy.
enum StoryNodes {
    /// What the apps of a world send by.
    typealias Network = (DemoWorld, DemoClock) async throws -> any HTTPTransport

    /// What is different about a world.
    private struct Changes {
        let logger: Logger
        let edit: (String) -> String
        let configure: @Sendable (inout ServerConfiguration) throws -> Void
    }

    /// Runs `body` in a world of its own, whose file is the example's as `edit` leaves it and whose apps send by
    /// `network`, and ends it whatever happens.
    static func run(
        logger: Logger, editing edit: @escaping (String) -> String = { $0 },
        configuring: @escaping @Sendable (inout ServerConfiguration) throws -> Void = { _ in },
        over network: Network, _ body: (Story, StoryBalancer) async throws -> Void
    ) async throws {
        let directory = NSTemporaryDirectory() + "/assent-nodes-" + SystemRandom().token(byteCount: 9)
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let balancer = try await StoryBalancer(in: directory)
        let changes = Changes(logger: logger, edit: edit, configure: configuring)
        do {
            try await run(behind: balancer, in: directory, changes, over: network, body)
        } catch {
            await balancer.stop()
            throw error
        }
        await balancer.stop()
    }

    private static func run(
        behind balancer: StoryBalancer, in directory: String, _ changes: Changes, over network: Network,
        _ body: (Story, StoryBalancer) async throws -> Void
    ) async throws {
        let clock = DemoClock()
        let world = try await DemoWorld.start(
            sources: try await sources(behind: balancer, in: directory, changes), clock: clock,
            logger: changes.logger)
        do {
            balancer.lead(to: try await world.server.serverPort, .server, of: 0)
            balancer.lead(to: try await world.server.gatewayPort, .gateway, of: 0)
            try await withSecondNode(of: world, in: directory + "/second", logger: changes.logger) { second in
                balancer.lead(to: try await second.serverPort, .server, of: 1)
                balancer.lead(to: try await second.gatewayPort, .gateway, of: 1)
                try await wait(for: balancer, before: world, clock: clock, logger: changes.logger)
                let way = try await network(world, clock)
                let narration = Narration(to: Console(silent: true))
                let story = try Story(
                    world: world, clock: clock, narration: narration, logger: changes.logger, watching: { _ in way })
                try await body(story, balancer)
            }
        } catch {
            await world.stop()
            throw error
        }
        await world.stop()
    }

    private static func sources(
        behind balancer: StoryBalancer, in directory: String, _ changes: Changes
    ) async throws -> DemoWorld.Sources {
        let server = try await PostgreSQLServer.shared()
        let database = try await offPool { try server.makeDatabase() }
        let example = try World.example()
        let file = directory + "/assent.yaml"
        try changes.edit(example).write(toFile: file, atomically: false, encoding: .utf8)
        var sources = DemoWorld.Sources(configurationFile: file, programs: World.programs)
        sources.leastLimit = .seconds(Patience.seconds)
        let (port, configure) = (balancer.port(of: .server), changes.configure)
        sources.configure = { configuration in
            try World.keep(&configuration, in: database)
            configuration.bePatient(seconds: 600)
            configuration.publicURL = "https://localhost:\(port)/am"
            try configure(&configuration)
        }
        // The story cuts the network before the gateway, so that stays the first thing that apps meet.
        sources.balancerPort = balancer.port(of: .gateway)
        return sources
    }

    /// Runs `body` beside another node of a world's server. Nobody ends TLS before the nodes, so both show one
    /// certificate.
    private static func withSecondNode(
        of world: DemoWorld, in directory: String, logger: Logger, _ body: (IdentityServer) async throws -> Void
    ) async throws {
        var configuration = world.configuration
        let files = configuration.certificateFiles
        configuration.tls = .files(certificate: files.chain, privateKey: files.privateKey)
        configuration.dataDirectory = directory
        let node = try await IdentityServer(configuration: configuration, clock: world.clock, logger: logger)
        let running = Task { try await node.run() }
        let result: Result<Void, any Error>
        do {
            _ = try await node.endpoints
            try await body(node)
            result = .success(())
        } catch {
            result = .failure(error)
        }
        running.cancel()
        _ = try? await running.value
        try result.get()
    }

    /// Waits until HAProxy leads to the nodes.
    private static func wait(
        for balancer: StoryBalancer, before world: DemoWorld, clock: DemoClock, logger: Logger
    ) async throws {
        let probe = try Story.connections(to: world, clock: clock, logger: logger)
        for url in [world.endpoints.server, try #require(world.endpoints.gateway)] {
            let origin = try Origin(url)
            let request = HTTPRequest(method: .get, scheme: "https", authority: origin.authority, path: "/")
            while (try? await probe.send(HTTPCall(request))) == nil, !Task.isCancelled {
                try #require(balancer.isRunning)
                await Task.yield()
            }
        }
        await probe.shutdown()
    }

    /// A pinned way on which each call has a connection of its own, so that HAProxy sends each to the next node.
    static func eachAlone(_ world: DemoWorld, _ clock: DemoClock) throws -> NIOTransport {
        var roots = TrustRoots.system
        if let file = world.endpoints.authorityFile { roots = .pemFile(file) }
        var configuration = NIOTransportConfiguration(
            trustRoots: roots, pins: ["localhost": .pins(world.endpoints.pins)])
        configuration.keepsConnections = false
        configuration.leastLimit = world.leastLimit
        return try NIOTransport(configuration: configuration, clock: clock)
    }
}

/// Sends each call to an origin by the next of several ways, which keep connections of their own: so calls go to
/// several nodes, by connections that are there already.
struct TurnTaking: HTTPTransport {
    private let ways: [any HTTPTransport]
    private let turns = Locked<[Origin: Int]>([:])

    init(_ ways: [any HTTPTransport]) { self.ways = ways }

    @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
        let origin = try call.origin
        let turn = turns.withLock { turns in
            turns[origin, default: 0] += 1
            return turns[origin, default: 0]
        }
        return try await ways[turn % ways.count].send(call)
    }
}
#endif
