import AssentCore
import AssentTesting
import AsyncHTTPClient
import Foundation
import Logging
import ServiceLifecycle
import Testing

@testable import AssentServer

/// A gateway without an engine on a free port, with a service behind it, and a relay to its engine.
final class GatewayAlone: Sendable {
    let engine: ServerFixture
    let relay: EngineRelay
    let upstream: TestUpstream
    let gateway: GatewayServer
    let port: Int
    private let client = HTTPClient.forTests(connections: 64)
    private let group: ServiceGroup
    private let running: Task<Void, any Error>

    /// The origin by which clients know these gateways, whatever their ports are. The group `edge` of the fixture's
    /// file may speak for it.
    static let origin = "https://localhost:9543"

    static let clientID = "edge"

    /// The text of a gateway's file.
    static func yaml(engine: String, publicURL: String, directory: String, upstream: Int) -> String {
        """
        development: true
        tls: {certificate: \(directory)/data/server.pem, privateKey: \(directory)/data/server.key}
        engine:
          url: \(engine)
          publicURL: \(publicURL)
          authorities: \(directory)/data/authority.pem
          realms:
            alpha: {clientID: \(clientID), secretFile: edge-secret}
        gateway:
          publicURL: \(origin)
          port: 0
          routes:
            - name: bank
              upstream: http://127.0.0.1:\(upstream)
              realm: alpha
              policySet: bank
              maxBodyBytes: 4096
              allowedOrigins: ["https://app.bank.example"]
            - name: kept
              path: /files/kept
              upstream: http://127.0.0.1:\(upstream)
              realm: alpha
              policySet: bank
              cacheSeconds: 30
            - name: scoped
              path: /scoped
              upstream: http://127.0.0.1:\(upstream)
              realm: alpha
              policySet: bank
              scopes: [accounts]
            - {name: open, path: /open, upstream: "http://127.0.0.1:\(upstream)", public: true}
        """
    }

    init(
        _ engine: ServerFixture, editing: (String) -> String = { $0 },
        configuring change: (inout GatewayServerConfiguration) -> Void = { _ in }
    ) async throws {
        self.engine = engine
        relay = try await EngineRelay(engine)
        upstream = try await TestUpstream.start()
        let secret = engine.directory + "/edge-secret"
        if !FileManager.default.fileExists(atPath: secret) {
            try PrivateFile.create(secret, Array(FixtureConfiguration.clientSecret.utf8))
        }
        let text = Self.yaml(
            engine: "https://localhost:\(relay.port)/am", publicURL: engine.endpoints.server,
            directory: engine.directory, upstream: upstream.port)
        var configuration = try GatewayServerConfiguration.parse(
            editing(text), file: engine.directory + "/edge.yaml")
        configuration.bePatient(seconds: 600)
        change(&configuration)
        let logger = Logger(label: "edge") { [log = engine.log] _ in log }
        gateway = try GatewayServer(configuration: configuration, clock: engine.clock, logger: logger)
        let group = ServiceGroup(services: [gateway], logger: logger)
        self.group = group
        running = Task { try await group.run() }
        _ = try await gateway.url
        port = try await gateway.port
    }

    /// Runs `body` beside an engine and a gateway elsewhere, and stops both.
    static func run(
        editing: (String) -> String = { $0 },
        configuring change: (inout GatewayServerConfiguration) -> Void = { _ in },
        _ body: (GatewayAlone) async throws -> Void
    ) async throws {
        try await ServerFixture.run { engine in
            try await run(at: engine, editing: editing, configuring: change, body)
        }
    }

    /// Runs `body` beside a gateway elsewhere of this engine, and stops that.
    static func run(
        at engine: ServerFixture, editing: (String) -> String = { $0 },
        configuring change: (inout GatewayServerConfiguration) -> Void = { _ in },
        _ body: (GatewayAlone) async throws -> Void
    ) async throws {
        let alone = try await GatewayAlone(engine, editing: editing, configuring: change)
        do {
            try await body(alone)
        } catch {
            await alone.stop()
            throw error
        }
        await alone.stop()
    }

    func stop() async {
        try? await client.shutdown()
        await shutDown()
        await relay.stop()
        await upstream.stop()
    }

    /// Ends the gateway alone, gracefully.
    func shutDown() async {
        await group.triggerGracefulShutdown()
        _ = try? await running.value
    }

    func send(
        _ method: String, _ target: String, _ fields: [(String, String)], body: [UInt8]? = nil
    ) async throws -> Answer {
        try await client.answer(method, "https://localhost:\(port)\(target)", fields, body: body)
    }

    /// Asks for its health, where its file lets it be asked.
    func health(_ path: String) async throws -> Answer {
        let port = try await gateway.healthPort ?? 0
        return try await client.answer("GET", "https://localhost:\(port)\(path)", [], body: nil)
    }

    func get(_ target: String, _ fields: [(String, String)]) async throws -> Answer {
        try await send("GET", target, fields)
    }

    /// Posts JSON and wants advices in the header; with a transaction, where there is one.
    func post(
        _ target: String, _ fields: [(String, String)], transaction: String? = nil,
        body: String = FixtureBody.transfer
    ) async throws -> Answer {
        try await send(
            "POST", target, ServerFixture.jsonFields + fields + (transaction.map { [("X-TxID", $0)] } ?? []),
            body: Array(body.utf8))
    }

    /// The same at the path whose policy asks for an approval.
    func post(
        _ fields: [(String, String)], transaction: String? = nil, body: String = FixtureBody.transfer
    ) async throws -> Answer {
        try await post("/nods", fields, transaction: transaction, body: body)
    }

    /// Asks for a transaction here and has it approved at the engine.
    func approved(
        _ target: String = "/nods", body: String = FixtureBody.transfer, session: String
    ) async throws -> String {
        let refused = try await post(target, ServerFixture.session(session), body: body)
        let id = try ServerFixture.transactionID(refused)
        #expect(try await engine.approve(id, session: session).status == 200)
        return id
    }

    /// What the engine knows of a transaction, by the answer to who asks with it again.
    func outcome(_ id: String, session: String) async throws -> JSONValue? {
        let again = try await post(ServerFixture.session(session), transaction: id)
        #expect(again.status == 409)
        return again.json["outcome"]
    }

    /// Waits until the engine has heard of every outcome. Time passes meanwhile, which the pauses between tries need.
    func waitUntilHeard() async {
        while await gateway.unheardOutcomes > 0, !Task.isCancelled {
            if await gateway.isPausing { engine.clock.advance(by: 1) }
            await Task.yield()
        }
    }
}
