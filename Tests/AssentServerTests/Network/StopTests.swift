import AssentCore
import AssentStore
import Foundation
import InMemoryLogging
import Logging
import NIOCore
import NIOEmbedded
import StoreTesting
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("A stop")
struct StopTests {
    private static let body = #"{"amount":"200.00"}"#

    @Test("Under a storm of new connections a stop neither ends the process nor loses a reply")
    func storm() async throws {
        // In a process of its own: what this looks for would take all other tests with it.
        await #expect(processExitsWith: .success) {
            // An error that is thrown here would end the process without a word about it.
            do { try await StopTests.stopInStorms() } catch { Issue.record(error) }
        }
    }

    private static func stopInStorms() async throws {
        for round in 0..<16 {
            let fixture = try await ServerFixture(configuring: Self.waitingLong)
            let token = try await fixture.session()
            let id = try await fixture.completedTransaction(body: body, session: token)
            fixture.upstream.hold()
            async let reply = fixture.send(
                "POST", fixture.gateway("/nods?_txid=\(id)"),
                ServerFixture.session(token) + [("Content-Type", "application/json")], text: body)
            await fixture.upstream.waitUntilHeld()
            let storm = Storm(ports: [fixture.gatewayPort, fixture.serverPort])
            await storm.rages(connections: 40)
            let isGraceful = round.isMultiple(of: 2)
            if isGraceful { await fixture.triggerShutdown() } else { fixture.cancel() }
            await fixture.waitUntilDraining()
            await fixture.upstream.release()
            if isGraceful { #expect(try await reply.status == 201) } else { _ = try? await reply }
            await fixture.waitUntilEnded()
            await storm.end()
            #expect(fixture.upstream.requests.count == 1)
            await fixture.stop()
        }
    }

    /// So that a stop neither cuts nor gives up what only takes long because the machine is busy.
    private static func waitingLong(_ configuration: inout ServerConfiguration) {
        (configuration.drainSeconds, configuration.recordingSeconds) = (Patience.seconds, Patience.seconds)
    }

    @Test("Clients that keep a connection open, idle or silent from the beginning, do not delay it")
    func idle() async throws {
        try await ServerFixture.run(configuring: {
            // Neither the time of a silent connection nor that of the stop ends what would delay it.
            $0.idleSeconds = Patience.seconds
            $0.drainSeconds = Patience.seconds
        }) { fixture in
            var connections: [RawConnection] = []
            for port in [fixture.serverPort, fixture.gatewayPort] {
                let idle = try await RawConnection.open(port: port)
                try await idle.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                #expect(!(await idle.reply()).isEmpty)
                let begun = try await RawConnection.open(port: port)
                try await begun.send("GET /healthz HTTP/1.1\r\nHo")
                connections += [idle, begun, try await RawConnection.open(port: port, withTLS: false)]
            }
            await fixture.triggerShutdown()
            await fixture.waitUntilEnded()
            for connection in connections { _ = await connection.untilClosed() }
            #expect(!fixture.log.entries.contains { "\($0.message)" == "connections were cut" })
        }
    }

    @Test("A request that was begun before it and ends after it is answered, with Connection: close")
    func lastReply() async throws {
        try await ServerFixture.run(configuring: Self.waitingLong) { fixture in
            let token = try await fixture.session()
            let connection = try await fixture.rawConnection()
            let head =
                "POST /files/a HTTP/1.1\r\nHost: localhost\r\niPlanetDirectoryPro: \(token)\r\nContent-Length: 4\r\n\r\n"
            try await connection.send(head + "abcd")
            #expect(!(await connection.reply()).lowercased().contains("connection: close"))
            let before = fixture.upstream.seen.value.bytes
            try await connection.send(head + "ab")
            await fixture.upstream.seen.wait { $0.bytes > before }
            await fixture.triggerShutdown()
            await fixture.waitUntilDraining()
            try await connection.send("cd")
            let reply = await connection.untilClosed().lowercased()
            #expect(reply.hasPrefix("http/1.1 201") && reply.contains("connection: close"))
            #expect(fixture.upstream.requests.map(\.body) == [Array("abcd".utf8), Array("abcd".utf8)])
            await fixture.waitUntilEnded()
        }
    }

    @Test("A request that crosses it is waited for, half a second")
    func crossing() throws {
        let channel = EmbeddedChannel()
        let events = EventCounter()
        try channel.pipeline.syncOperations.addHandlers([QuiesceDelay(.milliseconds(500)), events])
        for _ in 0..<2 { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(499))
        #expect(events.count == 0)
        channel.embeddedEventLoop.advanceTime(by: .milliseconds(1))
        #expect(events.count == 1)
        _ = try channel.finish()
    }

    @Test("Passwords that wait to be checked are refused as soon as a stop begins")
    func waitingPasswords() async throws {
        try await ServerFixture.run(configuring: { $0.drainSeconds = 3600 }) { fixture in
            let passwords = fixture.server.passwords
            let (held, release) = (Watched(0), DispatchSemaphore(value: 0))
            let threads = PasswordPolicy.defaultParallelChecks
            for thread in 0..<threads {
                Task {
                    try await passwords.workers.run(for: PasswordCaller(address: "\(thread)", user: "")) {
                        held.update { $0 += 1 }
                        release.wait()
                    }
                }
            }
            await held.wait { $0 == threads }
            async let reply = fixture.runJourney([("authIndexType", "service"), ("authIndexValue", "Quick")]) {
                $0 == "NameCallback" ? "ana" : $0 == "PasswordCallback" ? "wrong" : nil
            }
            while passwords.load.waiting == 0 { await Task.yield() }
            await fixture.triggerShutdown()
            let refused = try await reply
            #expect(refused.status == 503 && refused["Connection"] == "close", "\(refused.text)")
            for _ in 0..<threads { release.signal() }
        }
    }

    @Test("That its listeners are cancelled is no error in the log: who cancels them says why")
    func cancelledListeners() async throws {
        try await ServerFixture.run { fixture in
            fixture.cancel()
            await fixture.waitUntilEnded()
            let said = fixture.log.entries.filter { "\($0.message)".contains("CancellationError") }
            #expect(said.allSatisfy { $0.level <= .debug }, "\(said)")
        }
    }

    @Test("What goes on though its connection was cut is waited for no longer when it is given up")
    func abandoned() async throws {
        let connections = OpenConnections(
            ConnectionLimits(descriptors: 1024), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let isOver = Watched(false)
        let served = connections.serve(NIOAsyncTestingChannel()) { await isOver.wait { $0 } }
        let waiting = Task { await connections.waitUntilServed() }
        #expect(connections.cut() == 1)
        #expect(connections.abandon() == 1)
        await waiting.value
        await connections.waitUntilServed()
        try await served.value
        isOver.update { $0 = true }
    }

    @Test("After drainSeconds it cuts what is left and says so; what was forwarded is on record as unknown")
    func deadline() async throws {
        try await ServerFixture.run(configuring: {
            $0.drainSeconds = 1
            $0.recordingSeconds = 600
        }) { fixture in
            try await expectUnknown(fixture) { await fixture.triggerShutdown() }
            #expect(
                fixture.log.entries.contains {
                    "\($0.message)" == "connections were cut" && "\($0.metadata)".contains("drainSeconds")
                })
        }
    }

    @Test("Cut short, it does not wait; what was forwarded is on record as unknown")
    func cutShort() async throws {
        try await ServerFixture.run(configuring: {
            $0.drainSeconds = 3600
            $0.recordingSeconds = 600
        }) { fixture in
            try await expectUnknown(fixture) { fixture.cancel() }
        }
    }

    private func expectUnknown(_ fixture: ServerFixture, stop: () async -> Void) async throws {
        let token = try await fixture.session()
        let fields = ServerFixture.session(token) + [("Content-Type", "application/json")]
        let id = try await fixture.completedTransaction(body: Self.body, session: token)
        fixture.upstream.hold()
        async let reply = fixture.send("POST", fixture.gateway("/nods?_txid=\(id)"), fields, text: Self.body)
        await fixture.upstream.waitUntilHeld()
        await stop()
        await fixture.waitUntilEnded()
        // The connection may end before the reply that tells what is known, or after it.
        if let reply = try? await reply { #expect(reply.status == 504) }
        #expect(fixture.upstream.requests.count == 1)
        let place: DatabaseLocation =
            TestDatabase.isPostgreSQL
            ? try await TestDatabase.location(fixture.directory)
            : .sqlite(path: fixture.directory + "/data/assent.sqlite")
        let database = try await place.open(clock: fixture.clock)
        let row = try #require(
            try await database.run(.read("SELECT outcome FROM transactions WHERE id = \(id)")).first)
        #expect(try row.text("outcome") == "unknown")
        try await database.close()
    }
}

/// Connections that come and go without end: with a request, with a handshake only, and with nothing at all.
private final class Storm: Sendable {
    private let opened = Watched(0)
    private let isOver = Locked(false)
    private let tasks: Locked<[Task<Void, Never>]>

    init(ports: [Int]) {
        tasks = Locked([])
        for index in 0..<24 {
            let port = ports[index % ports.count]
            let task = Task { [opened, isOver] in
                while !isOver.withLock({ $0 }) {
                    guard let connection = try? await RawConnection.open(port: port, withTLS: index % 3 != 0) else {
                        return
                    }
                    opened.update { $0 += 1 }
                    if index % 3 == 1 { try? await connection.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") }
                    if index % 4 == 0 { await Task.yield() }
                    await connection.close()
                }
            }
            tasks.withLock { $0.append(task) }
        }
    }

    /// Waits until so many connections have been made.
    func rages(connections: Int) async { await opened.wait { $0 >= connections } }

    func end() async {
        isOver.withLock { $0 = true }
        for task in tasks.withLock({ $0 }) { await task.value }
    }
}

/// Counts the events that reach it.
private final class EventCounter: ChannelInboundHandler {
    typealias InboundIn = Any
    var count = 0

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) { count += 1 }
}
