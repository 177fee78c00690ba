import AssentCore
import AssentTransportNIO
import HTTPTypes
import NIOCore
import Testing

@Suite("Connections are kept, bounded and never trusted to be alive")
struct PoolTests {
    static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    @Test("Calls one after the other share a connection")
    func keptAlive() async throws {
        let server = try await TestServer.plaintext()
        let transport = try makePlaintextTransport()
        for _ in 0..<20 { #expect(try await transport.text(.to(server.port, scheme: "http")) == "ok") }
        #expect(server.seen.connections == 1)
        #expect(server.seen.requests.count == 20)
        await transport.shutdown()
        await server.stop()
    }

    @Test(
        "A connection is not used again after a reply that makes it doubtful",
        arguments: [
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
            "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nok",
            "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        ])
    func doubtful(reply: String) async throws {
        let server = try await TestServer.plaintext { _, peer in peer.send(reply) }
        let transport = try makePlaintextTransport()
        for _ in 0..<2 { #expect(try await transport.text(.to(server.port, scheme: "http")) == "ok") }
        #expect(server.seen.connections == 2)
        await transport.shutdown()
        await server.stop()
    }

    @Test("Bytes that come while no reply is due are never taken for one")
    func unasked() async throws {
        let peers = Locked<[TestServer.Peer]>([])
        let server = try await TestServer.plaintext { _, peer in
            peers.withLock { $0.append(peer) }
            peer.send(Self.ok)
        }
        let transport = try makePlaintextTransport { $0.idleTimeout = .seconds(3600) }
        #expect(try await transport.text(.to(server.port, scheme: "http")) == "ok")
        peers.withLock { $0.first }?.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        await server.waitUntilAllClosed()
        #expect(try await transport.text(.to(server.port, scheme: "http")) == "ok")
        #expect(server.seen.connections == 2)
        await transport.shutdown()
        await server.stop()
    }

    @Test("Connections and waiting calls are bounded, and every call within the bounds is served")
    func bounds() async throws {
        let held = Locked<[TestServer.Peer]>([])
        let server = try await TestServer.plaintext { _, peer in held.withLock { $0.append(peer) } }
        let transport = try makePlaintextTransport {
            $0.maximumConnectionsPerOrigin = 2
            $0.maximumWaitingPerOrigin = 3
        }
        let call = HTTPCall.to(server.port, scheme: "http")
        let outcomes = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<6 {
                group.addTask {
                    do { return try await transport.text(call) } catch let error as HTTPTransportError {
                        return error.code.description
                    }
                }
            }
            await server.waitUntil { $0.requests.count == 2 }
            var outcomes: [String] = []
            // Two are at the server, three wait: the sixth is refused while nothing has been answered.
            outcomes.append(try await group.next() ?? "")
            for answered in 1...5 {
                await server.waitUntil { $0.scripted >= answered }
                held.withLock { $0.isEmpty ? nil : $0.removeFirst() }?.send(Self.ok)
                outcomes.append(try await group.next() ?? "")
            }
            return outcomes
        }
        #expect(outcomes == ["tooManyRequests", "ok", "ok", "ok", "ok", "ok"])
        #expect(server.seen.connections == 2)
        #expect(server.seen.requests.count == 5)
        await transport.shutdown()
        await server.stop()
    }

    @Test("Many calls at once each get their own reply")
    func manyAtOnce() async throws {
        let server = try await TestServer.plaintext { request, peer in
            let path = request.head.split(separator: " ")[1]
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: \(path.utf8.count)\r\n\r\n\(path)")
        }
        let transport = try makePlaintextTransport { $0.maximumWaitingPerOrigin = 1000 }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<300 {
                group.addTask {
                    let text = try await transport.text(.to(server.port, scheme: "http", path: "/\(index)"))
                    #expect(text == "/\(index)")
                }
            }
            try await group.waitForAll()
        }
        #expect(server.seen.connections <= 8)
        await transport.shutdown()
        await server.stop()
    }

    // MARK: - Stale connections

    /// A server that takes the second request and drops the connection without a word.
    private func droppingServer() async throws -> TestServer {
        try await TestServer.plaintext { request, peer in
            if request.number == 1 { peer.close() } else { peer.send(Self.ok) }
        }
    }

    @Test("A POST that was written to a connection that then closed is not sent again")
    func stalePOST() async throws {
        let server = try await droppingServer()
        let transport = try makePlaintextTransport()
        _ = try await transport.text(.to(server.port, scheme: "http"))
        let error = await transport.failure(
            .to(server.port, scheme: "http", method: .post, body: HTTPBody("pay")))
        #expect(error?.code == .connectionClosed)
        #expect(error?.mayHaveHadEffect == true)
        #expect(server.seen.requests.count == 2)
        #expect(server.seen.connections == 1)
        await transport.shutdown()
        await server.stop()
    }

    @Test("A GET, or a PUT that can be read again, is sent once more", arguments: [HTTPRequest.Method.get, .put])
    func staleIdempotent(method: HTTPRequest.Method) async throws {
        let server = try await droppingServer()
        let transport = try makePlaintextTransport()
        _ = try await transport.text(.to(server.port, scheme: "http"))
        let body = method == .put ? HTTPBody("x") : nil
        #expect(try await transport.text(.to(server.port, scheme: "http", method: method, body: body)) == "ok")
        #expect(server.seen.requests.count == 3)
        #expect(server.seen.connections == 2)
        await transport.shutdown()
        await server.stop()
    }

    @Test("A PUT that cannot be repeated, since nobody listens any more, may have had its effect")
    func staleWithoutServer() async throws {
        let server = try await TestServer.plaintext { request, peer in
            if request.number == 0 { peer.send(Self.ok) }
        }
        // Its port is nobody else's as long as it is there.
        defer { withExtendedLifetime(server) {} }
        let transport = try makePlaintextTransport()
        _ = try await transport.text(.to(server.port, scheme: "http"))
        async let failure = transport.failure(
            .to(server.port, scheme: "http", method: .put, body: HTTPBody("x")))
        await server.waitUntil { $0.requests.count == 2 }
        await server.stop()
        #expect(await failure?.mayHaveHadEffect == true)
        await transport.shutdown()
    }

    @Test("A PUT whose content can be read only once is not sent again")
    func staleStream() async throws {
        let server = try await droppingServer()
        let transport = try makePlaintextTransport()
        _ = try await transport.text(.to(server.port, scheme: "http"))
        let left = Locked(1)
        let body = HTTPBody(length: 1, isReplayable: false) {
            {
                left.withLock { left in
                    defer { left = 0 }
                    return left == 1 ? [1] : nil
                }
            }
        }
        let error = await transport.failure(.to(server.port, scheme: "http", method: .put, body: body))
        #expect(error?.mayHaveHadEffect == true)
        #expect(server.seen.requests.count == 2)
        await transport.shutdown()
        await server.stop()
    }

    @Test("A GET is sent again once, not for ever")
    func alwaysDropping() async throws {
        let server = try await TestServer.plaintext { request, peer in
            if request.number == 0 { peer.send(Self.ok) } else { peer.close() }
        }
        let transport = try makePlaintextTransport()
        _ = try await transport.text(.to(server.port, scheme: "http"))
        let error = await transport.failure(.to(server.port, scheme: "http"))
        #expect(error?.code == .connectionClosed)
        #expect(server.seen.requests.count == 3)
        await transport.shutdown()
        await server.stop()
    }

    @Test("A reply that has begun is not asked for again")
    func brokenOff() async throws {
        let server = try await TestServer.plaintext { request, peer in
            peer.send(request.number == 0 ? Self.ok : "HTTP/1.1 200 OK\r\nConte")
            if request.number == 1 { peer.close() }
        }
        let transport = try makePlaintextTransport()
        _ = try await transport.text(.to(server.port, scheme: "http"))
        #expect(await transport.failure(.to(server.port, scheme: "http"))?.code == .connectionClosed)
        #expect(server.seen.requests.count == 2)
        await transport.shutdown()
        await server.stop()
    }

    @Test("A kept connection that the server has closed is noticed before a POST is written", arguments: [false, true])
    func closedWhileIdle(cutOff: Bool) async throws {
        let peers = Locked<[TestServer.Peer]>([])
        let server = try await TestServer.plaintext { _, peer in
            peers.withLock { $0.append(peer) }
            peer.send(Self.ok)
        }
        let transport = try makePlaintextTransport()
        for _ in 0..<20 {
            #expect(
                try await transport.text(.to(server.port, scheme: "http", method: .post, body: HTTPBody("pay"))) == "ok"
            )
            let peer = peers.withLock { $0.last }
            if cutOff { peer?.channel.eventLoop.execute { peer?.cutOff() } } else { peer?.close() }
            try await peer?.closed()
        }
        #expect(server.seen.requests.count == 20)
        #expect(server.seen.connections == 20)
        await transport.shutdown()
        await server.stop()
    }

    @Test("The kernel is asked when the event loop has not come to read the end yet")
    func closedBehindTheLoop() async throws {
        let (text, seen) = try await SentOnceTests.afterUnseenEnd { transport, port in
            try await transport.text(.to(port, scheme: "http", method: .post, body: HTTPBody("pay")))
        }
        #expect(text == "ok")
        #expect(seen.requests.count == 2 && seen.connections == 2)
    }

    // MARK: - Change and end

    @Test("New pins close idle connections and apply to the next call; a running reply is not broken off")
    func newPins() async throws {
        let root = try TestPKI.root()
        let identity = try TestPKI.server(under: root)
        let peers = Locked<[TestServer.Peer]>([])
        let server = try await TestServer.tls(
            { _ in identity },
            script: { request, peer in
                if request.head.hasPrefix("GET /slow") {
                    peers.withLock { $0.append(peer) }
                } else {
                    peer.send(Self.ok)
                }
            })
        let right = ["localhost": PinRequirement.pins([try identity.pin, try TestPKI.otherPin()])]
        let wrong = ["localhost": PinRequirement.pins([try TestPKI.otherPin(), try TestPKI.otherPin(8)])]
        let transport = try makeTransport(roots: [root], pins: right)
        #expect(try await transport.text(.to(server.port)) == "ok")
        try transport.update(pins: wrong)
        await server.waitUntilAllClosed()
        #expect(await transport.failure(.to(server.port))?.code == .pinMismatch)
        #expect(server.seen.requests.count == 1)

        try transport.update(pins: right)
        async let slow = transport.text(.to(server.port, path: "/slow"))
        await server.waitUntil { $0.scripted == 2 }
        let kept = ["localhost": PinRequirement.pins([try identity.pin, try TestPKI.otherPin(8)])]
        try transport.update(pins: kept)
        peers.withLock { $0.first }?.send(Self.ok)
        #expect(try await slow == "ok")
        await server.waitUntilAllClosed()
        #expect(try await transport.text(.to(server.port)) == "ok")
        await transport.shutdown()
        await server.stop()
    }

    @Test("A removed pin ends the call that runs on a connection which rests on it, and says what is known of it")
    func removedPinEndsRunningCalls() async throws {
        let root = try TestPKI.root()
        let identity = try TestPKI.server(under: root)
        // It never answers.
        let server = try await TestServer.tls({ _ in identity }, script: { _, _ in })
        let pins = { (pin: Pin) in ["localhost": PinRequirement.pins([pin, try TestPKI.otherPin()])] }
        for method: HTTPRequest.Method in [.get, .post] {
            let transport = try makeTransport(roots: [root], pins: try pins(identity.pin))
            async let failure = transport.failure(.to(server.port, method: method))
            let sent = method == .get ? 1 : 2
            await server.waitUntil { $0.scripted == sent }
            try transport.update(pins: try pins(TestPKI.otherPin(8)))
            let error = await failure
            #expect(error?.code == .pinMismatch)
            #expect(error?.mayHaveHadEffect == true)
            await server.waitUntilAllClosed()
            await transport.shutdown()
        }
        #expect(server.seen.requests.count == 2)
        await server.stop()
    }

    /// Waits with its first answer until it is told to go on.
    private struct Gate: ServerTrustEvaluator {
        let asked = AsyncStream.makeStream(of: Void.self)
        let opened = AsyncStream.makeStream(of: Void.self)

        func evaluate(_ question: ServerTrustQuestion) async -> ServerTrustVerdict {
            asked.continuation.yield()
            for await _ in opened.stream { break }
            return .trusted(validated: question.presented)
        }
    }

    @Test("Pins that change during a handshake apply to it")
    func newPinsDuringHandshake() async throws {
        let identity = try TestPKI.server(under: TestPKI.root())
        let server = try await TestServer.tls { _ in identity }
        let gate = Gate()
        let transport = try NIOTransport(
            configuration: .init(pins: ["localhost": .singlePin(try identity.pin)]), trust: gate)
        async let error = transport.failure(.to(server.port, method: .post, body: HTTPBody("pay")))
        for await _ in gate.asked.stream { break }
        try transport.update(pins: ["localhost": .singlePin(try TestPKI.otherPin())])
        gate.opened.continuation.finish()
        #expect(await error?.code == .pinMismatch)
        await transport.shutdown()
        await server.waitUntilAllClosed()
        #expect(server.seen.connections == 2)
        #expect(server.seen.requestBytes == 0)
        await server.stop()
    }

    @Test("After shutdown nothing is called, what runs fails, and what waits too")
    func shutdown() async throws {
        let server = try await TestServer.plaintext { _, _ in }
        let transport = try makePlaintextTransport { $0.maximumConnectionsPerOrigin = 1 }
        let call = HTTPCall.to(server.port, scheme: "http")
        async let first = transport.failure(call)
        async let second = transport.failure(call)
        await server.waitUntil { $0.requests.count == 1 }
        await transport.shutdown()
        let codes = [await first?.code, await second?.code]
        #expect(codes.contains(.connectionClosed))
        #expect(codes.contains(.shutDown))
        #expect(await transport.failure(call)?.code == .shutDown)
        #expect(server.seen.requests.count == 1)
        await server.stop()
    }

    @Test("A shutdown does not make a content without a length look complete")
    func shutdownInContent() async throws {
        let server = try await TestServer.plaintext { _, peer in peer.send("HTTP/1.1 200 OK\r\n\r\npay Bob 200") }
        let transport = try makePlaintextTransport()
        let reply = try await transport.send(.to(server.port, scheme: "http"))
        await transport.shutdown()
        await #expect(throws: HTTPTransportError(.connectionClosed, "")) { try await reply.body.collect(upTo: 100) }
        await server.stop()
    }

    @Test("A transport that is released closes its idle connections")
    func released() async throws {
        let server = try await TestServer.plaintext()
        do {
            let transport = try makePlaintextTransport()
            _ = try await transport.text(.to(server.port, scheme: "http"))
        }
        await server.waitUntilAllClosed()
        await server.stop()
    }

    @Test("An idle connection is closed after its time")
    func idle() async throws {
        let server = try await TestServer.plaintext()
        let transport = try makePlaintextTransport { $0.idleTimeout = .milliseconds(20) }
        _ = try await transport.text(.to(server.port, scheme: "http"))
        await server.waitUntilAllClosed()
        await transport.shutdown()
        await server.stop()
    }
}
