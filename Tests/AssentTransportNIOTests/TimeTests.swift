import AssentCore
import AssentTransportNIO
import HTTPTypes
import NIOCore
import NIOPosix
import TestSupport
import Testing

@Suite("Calls end in time, or when they are no longer wanted")
struct TimeTests {
    static let brief = Duration.milliseconds(60)

    @Test("A server that accepts and says nothing: the handshake is bounded")
    func silentHandshake() async throws {
        let server = try await TestServer.plaintext { _, _ in }
        let root = try TestPKI.root()
        let transport = try makeTransport(roots: [root], pins: ["localhost": .unpinned])
        let error = await transport.failure(.to(server.port, limits: .patient(connect: Self.brief)))
        #expect(error?.code == .timedOut)
        #expect(error?.mayHaveHadEffect == false)
        await transport.shutdown()
        await server.waitUntilAllClosed()
        await server.stop()
    }

    @Test("A server that never answers: the wait for bytes is bounded")
    func silentServer() async throws {
        let server = try await TestServer.plaintext { _, _ in }
        let transport = try makePlaintextTransport()
        let error = await transport.failure(
            .to(server.port, scheme: "http", method: .post, limits: .patient(read: Self.brief)))
        #expect(error?.code == .timedOut)
        #expect(error?.mayHaveHadEffect == true)
        await server.waitUntilAllClosed()
        await transport.shutdown()
        await server.stop()
    }

    @Test("A content that stops coming is noticed by its reader")
    func stalledContent() async throws {
        let server = try await TestServer.plaintext { _, peer in
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
        }
        let transport = try makePlaintextTransport()
        let error = await transport.failure(.to(server.port, scheme: "http", limits: .patient(read: Self.brief)))
        #expect(error?.code == .timedOut)
        await transport.shutdown()
        await server.stop()
    }

    @Test("A header that drips in, byte by byte, is bounded by the total time")
    func slowLoris() async throws {
        let server = try await TestServer.plaintext { _, peer in
            peer.send("HTTP/1.1 200 OK\r\nA: ")
            let drip = peer.channel.eventLoop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(5)) { _ in
                peer.send("a")
            }
            // Also when the call has ended before the server came to read it.
            peer.channel.closeFuture.whenComplete { _ in drip.cancel() }
        }
        let transport = try makePlaintextTransport()
        let error = await transport.failure(
            .to(server.port, scheme: "http", limits: .patient(read: .seconds(30), total: .milliseconds(150))))
        #expect(error?.code == .timedOut)
        await server.waitUntilAllClosed()
        await transport.shutdown()
        await server.stop()
    }

    @Test("A call may have no limit for the whole of it; one that may take no time is refused and not sent")
    func limits() async throws {
        let server = try await TestServer.plaintext { _, peer in
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        }
        let transport = try makePlaintextTransport()
        for total in [Duration.zero, .seconds(-1)] {
            let error = await transport.failure(.to(server.port, scheme: "http", limits: .patient(total: total)))
            #expect(error?.code == .invalidRequest && error?.mayHaveHadEffect == false)
        }
        #expect(server.seen.requests.isEmpty)
        let reply = try await transport.send(.to(server.port, scheme: "http", limits: .patient(total: nil)))
        #expect(reply.status == 200)
        await transport.shutdown()
        await server.stop()
    }

    @Test("With a least time for all limits a call has that time, and one that may take no time is still refused")
    func leastLimit() async throws {
        let server = try await TestServer.plaintext { _, peer in
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        }
        let transport = try makePlaintextTransport { $0.leastLimit = .seconds(3600) }
        // Without it, no time would be left when the call begins.
        let hurried = HTTPLimits.patient(
            connect: .nanoseconds(1), read: .nanoseconds(1), total: .nanoseconds(1))
        #expect(try await transport.send(.to(server.port, scheme: "http", limits: hurried)).status == 200)
        let error = await transport.failure(.to(server.port, scheme: "http", limits: .patient(total: .zero)))
        #expect(error?.code == .invalidRequest)
        await transport.shutdown()
        await server.stop()
    }

    @Test("A call that waits for a connection is bounded too")
    func waiting() async throws {
        let server = try await TestServer.plaintext { _, _ in }
        let transport = try makePlaintextTransport { $0.maximumConnectionsPerOrigin = 1 }
        let held = Task { try await transport.send(.to(server.port, scheme: "http")) }
        await server.waitUntil { $0.requests.count == 1 }
        let error = await transport.failure(.to(server.port, scheme: "http", limits: .patient(total: Self.brief)))
        #expect(error?.code == .timedOut)
        #expect(error?.mayHaveHadEffect == false)
        held.cancel()
        await #expect(throws: HTTPTransportError(.cancelled, "")) { try await held.value }
        await transport.shutdown()
        #expect(server.seen.requests.count == 1)
        await server.stop()
    }

    enum Stage: CaseIterable { case beforeCall, handshake, reply, content, waiting }

    @Test("Cancelling ends the call and closes its connection", arguments: Stage.allCases)
    func cancellation(stage: Stage) async throws {
        let server = try await TestServer.plaintext { _, peer in
            if stage == .content { peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello") }
        }
        let scheme = stage == .handshake ? "https" : "http"
        let transport = try NIOTransport(
            configuration: {
                var configuration = NIOTransportConfiguration(
                    pins: ["localhost": .unpinned], allowPlaintextLoopback: true)
                configuration.maximumConnectionsPerOrigin = stage == .waiting ? 1 : 8
                return configuration
            }())
        let blocker = stage == .waiting ? Task { try await transport.send(.to(server.port, scheme: "http")) } : nil
        if blocker != nil { await server.waitUntil { $0.requests.count == 1 } }
        let (got, gotFirst) = AsyncStream.makeStream(of: Void.self)
        let call = Task {
            if stage == .beforeCall { while !Task.isCancelled { await Task.yield() } }
            let reply = try await transport.send(.to(server.port, scheme: scheme))
            var bytes = reply.body.makeAsyncIterator()
            while let _ = try await bytes.next() { gotFirst.yield() }
        }
        switch stage {
        case .handshake: await server.waitUntil { $0.requestBytes > 0 }
        case .reply: await server.waitUntil { $0.requests.count == 1 }
        case .content: for await _ in got { break }
        case .beforeCall, .waiting: break
        }
        call.cancel()
        await #expect(throws: HTTPTransportError(.cancelled, "")) { try await call.value }
        blocker?.cancel()
        _ = await blocker?.result
        await server.waitUntilAllClosed()
        await transport.shutdown()
        await server.stop()
    }

    @Test("A reply whose reader goes away before the end closes its connection")
    func abandoned() async throws {
        let server = try await TestServer.plaintext { _, peer in
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
        }
        let transport = try makePlaintextTransport()
        #expect(try await transport.send(.to(server.port, scheme: "http")).status == 200)
        await server.waitUntilAllClosed()
        await transport.shutdown()
        await server.stop()
    }

    @Test("A server that closes right after the handshake")
    func closesAfterHandshake() async throws {
        let root = try TestPKI.root()
        let identity = try TestPKI.server(under: root)
        let server = try await TestServer.tls({ _ in identity }, onHandshake: { _, peer in peer.close() })
        let transport = try makeTransport(roots: [root], pins: ["localhost": .unpinned])
        let error = await transport.failure(.to(server.port, method: .post, body: HTTPBody("pay")))
        #expect([HTTPTransportError.Code.connectionClosed, .tlsFailed].contains(error?.code))
        await server.waitUntilAllClosed()
        // Whether bytes were on their way already is the network's to decide; the request was not repeated.
        #expect(server.seen.connections == 1)
        #expect(server.seen.requests.count <= 1)
        await transport.shutdown()
        await server.stop()
    }

    @Test("Shutting down ends a call whose connection is still being opened, at once")
    func shutDownWhileOpening() async throws {
        let server = try await TestServer.plaintext { _, _ in }
        let transport = try makeTransport(roots: [try TestPKI.root()], pins: ["localhost": .unpinned])
        let call = Task { await transport.failure(.to(server.port)) }
        await server.waitUntil { $0.requestBytes > 0 }
        await transport.shutdown()
        let error = await call.value
        #expect(error?.code == .shutDown && error?.mayHaveHadEffect == false)
        await server.waitUntilAllClosed()
        await server.stop()
    }

    @Test("Nothing listens there")
    func refusedConnection() async throws {
        let reserved = try ReservedPort()
        defer { withExtendedLifetime(reserved) {} }
        let transport = try makePlaintextTransport()
        let error = await transport.failure(.to(reserved.port, host: "127.0.0.1", scheme: "http"))
        #expect(error?.code == .connectFailed)
        #expect(error?.detail.contains("refused") == true)
        #expect(error?.mayHaveHadEffect == false)
        await transport.shutdown()
    }

    @Test("A name that has no address is called that, not a connection that failed")
    func unknownName() async throws {
        let transport = try NIOTransport(configuration: .init(pins: ["-nothing.invalid": .unpinned]))
        // The resolver refuses a name like this without asking anybody.
        let error = await transport.failure(.to(443, host: "-nothing.invalid"))
        #expect(error?.code == .nameNotResolved)
        #expect(error?.mayHaveHadEffect == false)
        await transport.shutdown()
    }

    // MARK: - Back-pressure

    @Test("A reader that does not read stops the server; reading on brings every byte")
    func slowReader() async throws {
        let total = 32 << 20
        let sent = Locked(0)
        let server = try await TestServer.plaintext { _, peer in
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: \(total)\r\n\r\n")
            let piece = ByteBuffer(repeating: 7, count: 64 << 10)
            @Sendable func next() {
                guard sent.withLock({ $0 }) < total else { return }
                peer.channel.writeAndFlush(piece).whenSuccess {
                    sent.withLock { $0 += 64 << 10 }
                    next()
                }
            }
            next()
        }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let transport = try NIOTransport(
            configuration: .init(pins: [:], allowPlaintextLoopback: true), eventLoopGroup: group)
        let reply = try await transport.send(.to(server.port, scheme: "http", limits: .patient(replyBytes: total)))
        // Without back-pressure the server would finish; with it, it stands still at what kernel and buffer take. Each
        // round lets both event loops pass once, so that whatever can move does.
        let loops = MultiThreadedEventLoopGroup.singleton
        var last = 0
        var still = 0
        while still < 100, last < total {
            try await group.next().submit {}.get()
            for loop in loops.makeIterator() { try await loop.submit {}.get() }
            let now = sent.withLock { $0 }
            still = now == last && now > 0 ? still + 1 : 0
            last = now
        }
        #expect(last < total)
        var received = 0
        for try await chunk in reply.body { received += chunk.count }
        #expect(received == total)
        await transport.shutdown()
        await server.stop()
        try await group.shutdownGracefully()
    }

    @Test("A server that does not read stops the producer of the request's content")
    func slowServer() async throws {
        let pulled = Locked(0)
        let server = try await TestServer.neverReading()
        let transport = try makePlaintextTransport()
        let body = HTTPBody(length: nil, isReplayable: false) {
            {
                pulled.withLock { $0 += 1 }
                return [UInt8](repeating: 1, count: 64 << 10)
            }
        }
        let error = await transport.failure(
            .to(
                server.port, host: "127.0.0.1", scheme: "http", method: .post, body: body,
                limits: .patient(read: .milliseconds(300))))
        #expect(error?.code == .timedOut)
        #expect(error?.mayHaveHadEffect == true)
        // What kernel buffers take; without back-pressure it would go on for as long as the memory lasts.
        #expect(pulled.withLock { $0 } < 1000)
        await transport.shutdown()
        await server.stop()
    }
}
