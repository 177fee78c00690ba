import AssentCore
import AssentTesting
import Foundation
import HTTPTypes
import InMemoryLogging
import Logging
import StoreTesting
import TestSupport
import Testing

@testable import AssentServer

@Suite("Several services of one route", .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct UpstreamFailoverTests {
    private let log: InMemoryLogHandler
    private let logger: Logger
    private let clock = ManualClock()

    init() {
        var handler = InMemoryLogHandler()
        handler.logLevel = .trace
        log = handler
        logger = Logger(label: "test") { [handler] _ in handler }
    }

    /// How many attempts found nobody.
    private var missed: Int { log.entries.count { "\($0.message)" == "the protected service was not reached" } }

    private static func address(_ port: Int) -> String { "http://127.0.0.1:\(port)" }

    @Test("Another service is tried only where the first was not reached, and gets the whole request, once")
    func tried() async throws {
        let refusing = try RefusingPort()
        let service = try await TestUpstream.start()
        let settings = UpstreamSettings.patient([Self.address(refusing.port), Self.address(service.port)])
        for once in [true, false] {
            let upstream = try Upstream([settings], clock: clock, logger: logger)
            let readings = Locked(0)
            let body = HTTPBody(length: 4, isReplayable: false) {
                readings.withLock { $0 += 1 }
                let rest = Locked<[UInt8]?>(Array("abcd".utf8))
                return {
                    rest.withLock {
                        let chunk = $0
                        $0 = nil
                        return chunk
                    }
                }
            }
            let before = service.requests.count
            let reply = try await upstream.forward(.toService(.post, "/pay"), body: body, to: settings, once: once)
            #expect(reply.status == 201)
            #expect(service.requests.dropFirst(before).map(\.line) == ["POST /pay HTTP/1.1"])
            #expect(service.requests.last?.body == Array("abcd".utf8))
            #expect(service.requests.last?.values("Host") == ["127.0.0.1:\(service.port)"])
            #expect(readings.withLock { $0 } == 1)
            await upstream.shutdown()
        }
        await service.stop()
    }

    @Test("No other service gets a request that may have reached the first one", arguments: [true, false])
    func unknown(once: Bool) async throws {
        let first = try await TestUpstream.start()
        let second = try await TestUpstream.start()
        var settings = UpstreamSettings.patient([Self.address(first.port), Self.address(second.port)])
        settings.timeouts.head = 1
        let scripts: [TestUpstream.Script] = [
            TestUpstream.closing, { _, peer in peer.send("HTTP/1.1 200 OK\r\nContent-Le") },
            { _, peer in peer.send("SSH-2.0-x\r\n\r\n") }, { _, _ in },
        ]
        for method in [HTTPRequest.Method.post, .get] {
            for script in scripts {
                first.answer(with: script)
                // A new one, so that the first service is the first to be asked.
                let upstream = try Upstream([settings], clock: clock, logger: logger)
                await #expect(throws: Upstream.Failure.unknown) {
                    try await upstream.forward(.toService(method), body: nil, to: settings, once: once)
                }
                await upstream.shutdown()
            }
        }
        #expect(second.seen.value.connections == 0)
        await first.seen.wait { $0.requests.count == 8 }
        #expect(first.requests.count == 8)
        await first.stop()
        await second.stop()
    }

    @Test("A refusal of a service is its answer, and no reason to ask another one")
    func refused() async throws {
        let first = try await TestUpstream.start()
        let second = try await TestUpstream.start()
        first.answer { _, peer in peer.answer("503 Service Unavailable") }
        let settings = UpstreamSettings.patient([Self.address(first.port), Self.address(second.port)])
        let upstream = try Upstream([settings], clock: clock, logger: logger)
        let reply = try await upstream.forward(.toService(.get), body: nil, to: settings, once: false)
        #expect(reply.status == 503)
        #expect(second.seen.value.connections == 0)
        await upstream.shutdown()
        await first.stop()
        await second.stop()
    }

    @Test("A service that was not reached three times is left alone for ten seconds, then tried by one request")
    func leftOut() async throws {
        let refusing = try RefusingPort()
        let service = try await TestUpstream.start()
        let settings = UpstreamSettings.patient([Self.address(refusing.port), Self.address(service.port)])
        let upstream = try Upstream([settings], clock: clock, logger: logger)
        func ask(_ count: Int) async throws {
            for _ in 0..<count {
                let reply = try await upstream.forward(.toService(.get), body: nil, to: settings, once: true)
                #expect(reply.status == 200)
            }
        }
        try await ask(6)
        #expect(missed == 3, "it is every second one's first")
        try await ask(10)
        #expect(missed == 3)
        clock.advance(by: 9)
        try await ask(3)
        #expect(missed == 3)
        clock.advance(by: 1)
        try await ask(3)
        #expect(missed == 4)
        #expect(service.requests.count == 22)
        let warnings = log.entries.filter { $0.level == .warning }
        #expect(warnings.map { "\($0.metadata["service"] ?? "")" } == [Self.address(refusing.port)])
        await upstream.shutdown()
        await service.stop()
    }

    @Test("Where none can be reached, each is tried once, and nothing has happened")
    func none() async throws {
        let ports = [try RefusingPort(), try RefusingPort(), try RefusingPort()]
        let settings = UpstreamSettings.patient(ports.map { Self.address($0.port) })
        let upstream = try Upstream([settings], clock: clock, logger: logger)
        for round in 1...5 {
            await #expect(throws: Upstream.Failure.notForwarded) {
                try await upstream.forward(.toService(.post), body: HTTPBody("{}"), to: settings, once: true)
            }
            #expect(missed == 3 * round)
        }
        await upstream.shutdown()
    }

    @Test("A service that fails its checks is asked last until one succeeds; a check carries nobody's credentials")
    func checks() async throws {
        let first = try await TestUpstream.start()
        let second = try await TestUpstream.start()
        first.answer { request, peer in
            peer.answer(request.line.contains("/healthz") ? "503 Service Unavailable" : "200 OK")
        }
        var settings = UpstreamSettings.patient([Self.address(first.port), Self.address(second.port)])
        settings.check = .init(path: "/healthz?deep=1", everySeconds: 10, limitSeconds: 600)
        let upstream = try Upstream([settings], clock: clock, logger: logger)
        #expect(upstream.hasChecks)
        func asked() async throws -> Set<Int> {
            let before = (first.requests.count, second.requests.count)
            for _ in 0..<2 {
                _ = try await upstream.forward(.toService(.get, "/x"), body: nil, to: settings, once: true)
            }
            return Set([0, 1].filter { [first.requests.count > before.0, second.requests.count > before.1][$0] })
        }
        await upstream.check()
        #expect(try await asked() == [0, 1], "one failure is not enough")
        await upstream.check()
        #expect(first.requests.filter { $0.line.contains("/healthz") }.count == 1, "ten seconds have not passed")
        clock.advance(by: 10)
        await upstream.check()
        #expect(try await asked() == [1])
        let check = try #require(first.requests.first { $0.line.contains("/healthz") })
        #expect(check.line == "GET /healthz?deep=1 HTTP/1.1")
        for name in ["Cookie", "Authorization", "X-Remote-User"] { #expect(check.values(name).isEmpty, "\(name)") }
        first.answer(with: TestUpstream.answering)
        clock.advance(by: 10)
        await upstream.check()
        #expect(try await asked() == [0, 1])
        await upstream.shutdown()
        await first.stop()
        await second.stop()
    }

    @Test("One service alone is asked whatever was before, and is not checked")
    func alone() async throws {
        let refusing = try RefusingPort()
        var settings = UpstreamSettings.patient([Self.address(refusing.port)])
        settings.check = .init(path: "/", everySeconds: 1)
        let upstream = try Upstream([settings], clock: clock, logger: logger)
        #expect(!upstream.hasChecks)
        await upstream.check()
        for round in 1...5 {
            await #expect(throws: Upstream.Failure.notForwarded) {
                try await upstream.forward(.toService(.get), body: nil, to: settings, once: false)
            }
            #expect(missed == round)
        }
        await upstream.shutdown()
    }

    @Test("At the gateway an approved payment goes to the service that can be reached, once")
    func payment() async throws {
        try await ServerFixture.run { configuration in
            guard let down = configuration.gateway?.routes.first(where: { $0.name == "down" }) else { return }
            configuration.gateway?.routes[0].upstream.addresses.insert(contentsOf: down.upstream.addresses, at: 0)
        } _: { fixture in
            let session = try await fixture.session()
            for count in 1...2 {
                let body = #"{"amount":"\#(count)00.00"}"#
                let id = try await fixture.completedTransaction(body: body, session: session)
                let target = fixture.gateway("/nods?_txid=\(id)")
                let fields = ServerFixture.session(session) + [("Content-Type", "application/json")]
                #expect(try await fixture.send("POST", target, fields, text: body).status == 201)
                let again = try await fixture.send("POST", target, fields, text: body)
                #expect(again.status == 409 && again.json["outcome"] == ["state": "answered", "status": 201])
                #expect(fixture.upstream.requests.count == count)
                #expect(fixture.upstream.requests.last?.values("Idempotency-Key") == [id])
            }
        }
    }
}
