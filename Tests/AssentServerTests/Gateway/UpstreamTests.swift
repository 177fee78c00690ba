import AssentCore
import HTTPTypes
import Logging
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import AssentServer

@Suite("What the gateway knows when a service does not answer")
struct UpstreamTests {
    /// Sends a request to a port as for a transaction, or else, and returns why there was no reply.
    private func failure(
        _ service: String, once: Bool, headSeconds: Int = 600
    ) async throws -> Upstream.Failure? {
        var settings = UpstreamSettings.patient([service])
        settings.timeouts.head = headSeconds
        let upstream = try Upstream([settings], logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        var failure: Upstream.Failure?
        do {
            _ = try await upstream.forward(
                .toService(.post), body: HTTPBody("{}"), to: settings, once: once)
        } catch {
            failure = error as? Upstream.Failure
        }
        await upstream.shutdown()
        return failure
    }

    @Test(
        "A refused connection means that nothing was sent, by address and by name",
        arguments: ["127.0.0.1", "localhost"])
    func refused(_ host: String) async throws {
        let refusing = try RefusingPort()
        for once in [true, false] {
            #expect(try await failure("http://\(host):\(refusing.port)", once: once) == .notForwarded)
        }
    }

    @Test(
        "A PUT on a kept connection that ends is sent again, but one with a transaction is sent once",
        arguments: [(true, 1), (false, 2)])
    func put(once: Bool, sendings: Int) async throws {
        let service = try await TestUpstream.start()
        let settings = UpstreamSettings.patient(["http://127.0.0.1:\(service.port)"])
        // On one event loop, so that a request of either kind could use the connection that the first one leaves.
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let upstream = try Upstream(
            [settings], group: group, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        await withTaskExecutorPreference(EventLoopExecutor(group.next())) {
            await #expect(throws: Never.self) {
                let reply = try await upstream.forward(.toService(.get), body: nil, to: settings, once: false)
                _ = try await reply.body.collect(upTo: 1 << 20)
            }
            service.answer(with: TestUpstream.closing)
            await #expect(throws: Upstream.Failure.unknown) {
                try await upstream.forward(.toService(.put), body: HTTPBody("{}"), to: settings, once: once)
            }
        }
        await service.seen.wait { $0.requests.count == 1 + sendings }
        #expect(service.requests.filter { $0.line.hasPrefix("PUT") }.count == sendings)
        await upstream.shutdown()
        await service.stop()
        try await group.shutdownGracefully()
    }

    @Test(
        "What was on a kept connection that ends with its service may have reached it: another one gets only what reads",
        arguments: [HTTPRequest.Method.put, .delete, .get])
    func lastRequest(method: HTTPRequest.Method) async throws {
        let service = try await TestUpstream.start()
        let other = try await TestUpstream.start()
        let settings = UpstreamSettings.patient([service, other].map { "http://127.0.0.1:\($0.port)" })
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let upstream = try Upstream(
            [settings], group: group, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        await withTaskExecutorPreference(EventLoopExecutor(group.next())) {
            // Each of them has its turn, so that the third request is the first one's again.
            for _ in 0..<2 {
                await #expect(throws: Never.self) {
                    let reply = try await upstream.forward(.toService(.get), body: nil, to: settings, once: false)
                    _ = try await reply.body.collect(upTo: 1 << 20)
                }
            }
            service.hold()
            let stop = Task {
                await service.waitUntilHeld()
                await service.stop()
            }
            if method == .get {
                await #expect(throws: Never.self) {
                    let reply = try await upstream.forward(.toService(method), body: nil, to: settings, once: false)
                    #expect(reply.status == 200)
                    _ = try await reply.body.collect(upTo: 1 << 20)
                }
            } else {
                await #expect(throws: Upstream.Failure.unknown) {
                    try await upstream.forward(.toService(method), body: HTTPBody("{}"), to: settings, once: false)
                }
            }
            await stop.value
        }
        #expect(service.requests.count == 2)
        #expect(other.requests.count == (method == .get ? 2 : 1))
        await upstream.shutdown()
        await other.stop()
        try await group.shutdownGracefully()
    }

    @Test("A connection that ends without an answer, and one that stays silent, leave it open what has happened")
    func unknown() async throws {
        let service = try await TestUpstream.start()
        service.answer(with: TestUpstream.closing)
        for once in [true, false] {
            #expect(try await failure("http://127.0.0.1:\(service.port)", once: once) == .unknown)
        }
        service.answer { _, peer in peer.send("HTTP/1.1 200 OK\r\nContent-Le") }
        #expect(
            try await failure("http://127.0.0.1:\(service.port)", once: true, headSeconds: 1) == .unknown)
        service.hold()
        #expect(
            try await failure("http://127.0.0.1:\(service.port)", once: true, headSeconds: 1) == .unknown)
        service.answer { _, peer in peer.send("SSH-2.0-x\r\n\r\n") }
        #expect(try await failure("http://127.0.0.1:\(service.port)", once: true) == .unknown)
        await service.seen.wait { $0.requests.count == 5 }
        #expect(service.requests.count == 5)
        await service.stop()
    }
}

extension HTTPRequest {
    /// A request without an address, which is the service's.
    static func toService(_ method: Method, _ path: String = "/") -> HTTPRequest {
        HTTPRequest(method: method, scheme: nil, authority: nil, path: path)
    }
}
