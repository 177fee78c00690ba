import AssentCore
import AssentStore
import AssentTesting
import AsyncHTTPClient
import Foundation
import InMemoryLogging
import Logging
import NIOCore
import NIOHTTP1
import ServiceLifecycle
import StoreTesting
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

/// A whole server with its gateway on free ports, its database in a directory of its own, and a service behind the
/// gateway.
final class ServerFixture: Sendable {
    let server: IdentityServer
    let endpoints: Endpoints
    let clock: ManualClock
    let upstream: TestUpstream
    let refusing: RefusingPort
    let client: HTTPClient
    let log: InMemoryLogHandler
    let directory: String
    let gatewayPort: Int
    let serverPort: Int
    /// The users whose credentials were generated, here or at another node of the database.
    let accounts: [GeneratedAccount]
    private let keepsDirectory: Bool
    private let group: ServiceGroup
    private let running: Task<Void, any Error>

    /// The fixture of the suite, where the suite has ``ServerTrait``.
    @TaskLocal static var shared: ServerFixture?

    /// Runs `body` beside a server and stops it. The server goes by `clock`, and so does its certificate.
    static func run(
        clock: ManualClock = ManualClock(), configuring change: (inout ServerConfiguration) -> Void = { _ in },
        editing: (String) -> String = { $0 }, _ body: (ServerFixture) async throws -> Void
    ) async throws {
        let fixture = try await ServerFixture(clock: clock, editing: editing, configuring: change)
        do {
            try await body(fixture)
        } catch {
            await fixture.stop()
            throw error
        }
        // A server that stops waits for replies that are on their way.
        await fixture.upstream.stop()
        await fixture.stop()
    }

    /// A server in a directory of its own or, to be started again there, in `kept`; with a change to the text of its
    /// file; perhaps as one node of several.
    init(
        kept: String? = nil, node: FixtureNode? = nil, notifier: (any Notifier)? = nil,
        clock: ManualClock = ManualClock(), editing: (String) -> String = { $0 },
        configuring change: (inout ServerConfiguration) -> Void = { _ in }
    ) async throws {
        keepsDirectory = kept != nil
        directory = try kept ?? Self.makeDirectory()
        upstream = try await TestUpstream.start()
        refusing = try RefusingPort()
        var handler = InMemoryLogHandler()
        handler.logLevel = .trace
        log = handler
        let logger = Logger(label: "test") { [handler] _ in handler }
        self.clock = clock
        var text = editing(FixtureConfiguration.yaml(upstream: upstream.port, refusing: refusing.port))
        var place = node
        if place == nil { place = try await FixtureNode.alone(in: directory) }
        if let place { text = try place.adapted(text) }
        var configuration = try ServerConfiguration.parse(text, file: directory + "/assent.yaml")
        // The clock is the test's, and the database server's is not.
        configuration.clockDifferenceSeconds = nil
        configuration.bePatient(seconds: 600)
        change(&configuration)
        server = try await IdentityServer(
            configuration: configuration, clock: clock, notifier: notifier, logger: logger)
        let group = ServiceGroup(services: [server], logger: logger)
        self.group = group
        running = Task { try await group.run() }
        endpoints = try await server.endpoints
        gatewayPort = try #require(await server.gatewayPort)
        serverPort = try await server.serverPort
        accounts = endpoints.accounts + (node?.accounts ?? [])
        client = .forTests(connections: 64)
    }

    /// A directory that only the tests' user may look into.
    static func makeDirectory() throws -> String {
        let path = NSTemporaryDirectory() + "/assent-server-" + SystemRandom().uuid()
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        return path
    }

    /// Asks the server to end; what has begun may finish.
    func triggerShutdown() async { await group.triggerGracefulShutdown() }

    /// Waits until the server has ended.
    func waitUntilEnded() async { _ = try? await running.value }

    /// Ends the server, by a cancelled task or gracefully, and everything around it.
    func stop(cancelling: Bool = false) async {
        try? await client.shutdown()
        if cancelling { running.cancel() } else { await group.triggerGracefulShutdown() }
        await waitUntilEnded()
        await upstream.stop()
        if !keepsDirectory { try? FileManager.default.removeItem(atPath: directory) }
    }

    /// Ends the server's task.
    func cancel() { running.cancel() }

    /// Waits until the server has been told to end.
    func waitUntilDraining() async {
        while !server.connections.isDraining, !Task.isCancelled { await Task.yield() }
    }

    /// A URL of the server, by what follows its public URL.
    func server(_ path: String) -> String { root("/am" + path) }

    /// A URL of the server, by its whole path.
    func root(_ path: String) -> String { "https://localhost:\(serverPort)" + path }

    /// A URL of the gateway.
    func gateway(_ target: String) -> String { "https://localhost:\(gatewayPort)" + target }

    /// A URL below `/json` of a realm.
    func json(_ path: String, realm: String = "alpha") -> String {
        server("/json/realms/root/realms/\(realm)/\(path)")
    }

    /// A URL below `/oauth2` of a realm.
    func oauth(_ path: String, realm: String = "alpha") -> String {
        server("/oauth2/realms/root/realms/\(realm)/\(path)")
    }

    /// A URL below `/signing` of a realm.
    func signing(_ path: String, realm: String = "alpha") -> String {
        server("/signing/realms/root/realms/\(realm)/\(path)")
    }

    func send(
        _ method: String, _ url: String, _ fields: [(String, String)] = [], body: [UInt8]? = nil
    ) async throws -> Answer {
        try await client.answer(method, url, fields, body: body)
    }

    func send(
        _ method: String, _ url: String, _ fields: [(String, String)] = [], text: String
    ) async throws -> Answer {
        try await send(method, url, fields, body: Array(text.utf8))
    }

    /// Sends bytes to the gateway, or to the server, and returns what comes until the connection ends.
    func raw(_ text: String, toGateway: Bool = true) async throws -> String {
        let connection = try await rawConnection(toGateway: toGateway)
        try await connection.send(text)
        return await connection.untilClosed()
    }

    func rawConnection(toGateway: Bool = true) async throws -> RawConnection {
        try await RawConnection.open(port: toGateway ? gatewayPort : serverPort)
    }

    func rows(_ sql: SQL) async throws -> [SQLRow] {
        try await server.context.database.run(.read(sql))
    }

    func count(_ table: String) async throws -> Int64 {
        try #require(await rows("SELECT count(*) AS n FROM \(SQL(verbatim: table))").first).integer("n")
    }

    /// All that has been logged, at trace.
    var logged: [UInt8] {
        log.entries.flatMap { entry in
            Array("\(entry.message) \(entry.metadata) \(entry.error.map { "\($0)" } ?? "")\n".utf8)
        }
    }

    /// Writes to the log what must not be there, so that a search can be seen to find it.
    func plantInLog(_ text: String) {
        server.context.logger.trace("planted", metadata: ["text": "\(text)"])
    }

    func closeDatabase() async throws { try await server.database.close() }

    /// Limits the database to its present size, or to none.
    func fillDisk(_ isFull: Bool) async throws {
        try await server.database.limitSize(pages: isFull ? 1 : 1 << 20)
    }

    /// Makes the database one that may only be read, or gives it back.
    func makeReadOnly(_ isReadOnly: Bool) async throws { try await server.database.setReadOnly(isReadOnly) }

    /// All that is stored, table by table.
    func contents() async throws -> [String: [SQLRow]] {
        var contents: [String: [SQLRow]] = [:]
        for row in try await rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name") {
            let table = try row.text("name")
            contents[table] = try await rows("SELECT * FROM \(SQL(verbatim: table)) ORDER BY rowid")
        }
        return contents
    }

    func audit(_ transactionID: String) async throws -> [AuditRecord] {
        try await AuditLog(server.context).records(transactionID: transactionID)
    }
}

/// A reply.
struct Answer: Sendable {
    let status: Int
    let fields: HTTPHeaders
    let bytes: [UInt8]

    var text: String { String(decoding: bytes, as: UTF8.self) }
    var json: JSONValue { (try? JSONValue.parse(bytes)) ?? .null }

    subscript(name: String) -> String? { fields.first(name: name) }

    /// The values of a field that may occur more than once.
    func all(_ name: String) -> [String] { fields[name] }
}

/// One server, with Ana signed in, for all tests of a suite: for those that ask and change nothing that others see.
struct ServerTrait: SuiteTrait, TestScoping {
    @concurrent func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        try await ServerFixture.run { fixture in
            try await ServerFixture.$shared.withValue(fixture) { try await function() }
        }
    }
}

extension SuiteTrait where Self == ServerTrait {
    /// One server for the suite.
    static var server: Self { ServerTrait() }
}
