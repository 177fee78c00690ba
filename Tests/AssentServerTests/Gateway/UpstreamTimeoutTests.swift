import AssentCore
import HTTPTypes
import Logging
import NIOCore
import StoreTesting
import TestSupport
import Testing

@testable import AssentServer

@Suite(
    "How long each part of a call to a service may take, and what is said then",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct UpstreamTimeoutTests {
    private static let body = #"{"amount":"200.00"}"#

    /// Runs `body` with a service and the connections to it.
    private func withService(
        _ timeouts: (inout UpstreamSettings.Timeouts) -> Void, scheme: String = "http",
        _ body: (TestUpstream, Upstream, UpstreamSettings) async throws -> Void
    ) async throws {
        let service = try await TestUpstream.start()
        var settings = UpstreamSettings.patient(["\(scheme)://127.0.0.1:\(service.port)"])
        timeouts(&settings.timeouts)
        let upstream = try Upstream([settings], logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try await body(service, upstream, settings)
        await upstream.shutdown()
        await service.stop()
    }

    /// Sends `beginning` and then a byte again and again, as long as the connection is there.
    private static func dripping(_ beginning: String) -> TestUpstream.Script {
        { _, peer in
            peer.send(beginning)
            let drip = peer.channel.eventLoop.scheduleRepeatedTask(
                initialDelay: .milliseconds(5), delay: .milliseconds(5)
            ) { _ in peer.send("a") }
            peer.channel.closeFuture.whenComplete { _ in drip.cancel() }
        }
    }

    @Test("A service without a handshake in time was not reached", arguments: [true, false])
    func connect(once: Bool) async throws {
        try await withService({ $0.connect = 1 }, scheme: "https") { service, upstream, settings in
            await #expect(throws: Upstream.Failure.notForwarded) {
                try await upstream.forward(.toService(.post), body: HTTPBody("{}"), to: settings, once: once)
            }
            #expect(service.requests.isEmpty)
        }
    }

    @Test("A header that drips in is bounded, however short the silences are", arguments: [true, false])
    func head(once: Bool) async throws {
        try await withService({ $0.head = 1 }) { service, upstream, settings in
            service.answer(with: Self.dripping("HTTP/1.1 200 OK\r\nA: "))
            await #expect(throws: Upstream.Failure.unknown) {
                try await upstream.forward(.toService(.post), body: HTTPBody("{}"), to: settings, once: once)
            }
        }
    }

    @Test("After the header silence is bounded, and content that keeps coming only by the whole time, if that is set")
    func content() async throws {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
        try await withService({ $0.silence = 5 }) { service, upstream, settings in
            service.answer { _, peer in peer.send(head + "abc") }
            let reply = try await upstream.forward(.toService(.get), body: nil, to: settings, once: true)
            let error = await #expect(throws: HTTPTransportError.self) { try await reply.body.collect(upTo: 1 << 20) }
            #expect(error?.code == .timedOut && error?.detail.contains("read") == true)
        }
        try await withService({ $0.total = 10 }) { service, upstream, settings in
            service.answer(with: Self.dripping(head))
            // On a machine that stands still the whole time can be over with the header.
            let reply = try await Patience.retry("the header comes within the whole time") {
                try await upstream.forward(.toService(.get), body: nil, to: settings, once: true)
            }
            let error = await #expect(throws: HTTPTransportError.self) { try await reply.body.collect(upTo: 1 << 20) }
            #expect(error?.code == .timedOut && error?.detail.contains("total") == true)
        }
    }

    @Test("A payment whose service gives no header in time is unknown, and nobody sends it again")
    func boundHead() async throws {
        try await ServerFixture.run { configuration in
            configuration.gateway?.routes[0].upstream.timeouts.head = 1
        } _: { fixture in
            fixture.upstream.hold()
            try await expect(fixture, status: 504, forwarded: "unknown", state: "unknown", at: "/nods")
            // A busy machine may let the service have it only after that.
            await fixture.upstream.seen.wait { !$0.requests.isEmpty }
            #expect(fixture.upstream.requests.count == 1)
        }
    }

    @Test("A payment whose service gives no connection in time was not forwarded")
    func boundConnect() async throws {
        let silent = try await TestUpstream.start()
        try await ServerFixture.run { configuration in
            configuration.gateway?.routes[0].upstream.timeouts.connect = 1
            configuration.gateway?.routes[0].upstream.addresses = ["https://127.0.0.1:\(silent.port)"]
        } _: { fixture in
            try await expect(fixture, status: 502, forwarded: "no", state: "notForwarded", at: "/nods")
        }
        #expect(silent.requests.isEmpty)
        await silent.stop()
    }

    /// Pays, and compares what is said now and when the client asks again.
    private func expect(
        _ fixture: ServerFixture, status: Int, forwarded: String, state: String, at path: String
    ) async throws {
        let session = try await fixture.session()
        let id = try await fixture.completedTransaction(path, body: Self.body, session: session)
        let fields = ServerFixture.session(session) + [("Content-Type", "application/json")]
        let target = fixture.gateway("\(path)?_txid=\(id)")
        let first = try await fixture.send("POST", target, fields, text: Self.body)
        #expect(first.status == status)
        #expect(first.json["forwarded"]?.string == forwarded && first.json["transaction"]?.string == id)
        let again = try await fixture.send("POST", target, fields, text: Self.body)
        #expect(again.status == 409)
        #expect(again.json["outcome"]?["state"]?.string == state)
    }
}
