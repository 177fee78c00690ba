import AssentCore
import AssentTransportNIO
import Dispatch
import HTTPTypes
import NIOCore
import NIOPosix
import Testing

@Suite("What counts once is not repeated on a stale connection")
struct SentOnceTests {
    /// A call that would be repeated if it did not count once.
    struct Kind: Sendable, CustomTestStringConvertible {
        let method: HTTPRequest.Method
        var field: String?
        var isSentOnce = false

        var testDescription: String { "\(method) \(field ?? (isSentOnce ? "sent once" : "plain"))" }

        func call(_ port: Int) -> HTTPCall {
            var fields = HTTPFields()
            if let field, let name = HTTPField.Name(field) { fields[name] = "proof" }
            var call = HTTPCall.to(
                port, scheme: "http", method: method, fields: fields, body: method == .put ? HTTPBody("pay") : nil)
            call.isSentOnce = isSentOnce
            return call
        }
    }

    static let kinds = [
        Kind(method: .put, isSentOnce: true), Kind(method: .get, isSentOnce: true), Kind(method: .put, field: "DPoP"),
        Kind(method: .delete, field: "dpop"), Kind(method: .get, field: "DPoP"), Kind(method: .get, field: "TSP-Proof"),
        Kind(method: .put, field: "DPoP", isSentOnce: true),
    ]

    @Test(
        "Once its bytes have left it is not sent again, and the error says that it may have had an effect",
        arguments: Self.kinds)
    func stale(kind: Kind) async throws {
        let server = try await TestServer.plaintext { request, peer in
            if request.number == 1 { peer.close() } else { peer.send(PoolTests.ok) }
        }
        let transport = try makePlaintextTransport()
        _ = try await transport.text(.to(server.port, scheme: "http"))
        let error = await transport.failure(kind.call(server.port))
        #expect(error?.code == .connectionClosed && error?.mayHaveHadEffect == true && error?.wasStale == true)
        #expect(server.seen.requests.count == 2 && server.seen.connections == 1)
        await transport.shutdown()
        await server.stop()
    }

    @Test("A connection that is known to be closed does not get it: it goes out on a fresh one", arguments: Self.kinds)
    func known(kind: Kind) async throws {
        let (text, seen) = try await Self.afterUnseenEnd { transport, port in
            try await transport.text(kind.call(port))
        }
        #expect(text == "ok")
        #expect(seen.requests.count == 2 && seen.connections == 2)
    }

    @Test("What the layer above replaces is written without that question, and its error says that it can be replaced")
    func replaced() async throws {
        let (error, seen) = try await Self.afterUnseenEnd { transport, port in
            var call = Kind(method: .get, isSentOnce: true).call(port)
            call.isReplacedAbove = true
            return await transport.failure(call)
        }
        #expect(error?.code == .connectionClosed && error?.wasStale == true)
        #expect(seen.requests.count == 1 && seen.connections == 1)
    }

    /// What becomes of a call on a kept connection that the server has closed, which the client's event loop has not
    /// come to see: it stands still while the server closes and the call is queued behind.
    static func afterUnseenEnd<Outcome: Sendable>(
        _ send: @escaping @Sendable (NIOTransport, Int) async throws -> Outcome
    ) async throws -> (outcome: Outcome, seen: TestServer.Counts) {
        let peers = Locked<[TestServer.Peer]>([])
        let server = try await TestServer.plaintext { _, peer in
            peers.withLock { $0.append(peer) }
            peer.send(PoolTests.ok)
        }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let transport = try NIOTransport(
            configuration: .init(pins: [:], allowPlaintextLoopback: true), eventLoopGroup: group)
        #expect(try await transport.text(.to(server.port, scheme: "http")) == "ok")
        let gate = DispatchSemaphore(value: 0)
        // Only when it stands still: until then it would see the end.
        await withCheckedContinuation { standing in
            group.next().execute {
                standing.resume()
                gate.wait()
            }
        }
        let peer = peers.withLock { $0.first }
        peer?.close()
        try await peer?.closed()
        // On the loop that stands still: what it does up to the queued call comes before it looks at its connections.
        let sent = Task(executorPreference: LoopExecutor(loop: group.next())) { try await send(transport, server.port) }
        gate.signal()
        let outcome = try await sent.value
        let seen = server.seen
        await transport.shutdown()
        await server.stop()
        try await group.shutdownGracefully()
        return (outcome, seen)
    }

    /// Runs a task on an event loop.
    private final class LoopExecutor: TaskExecutor {
        private let loop: any EventLoop

        init(loop: any EventLoop) {
            self.loop = loop
        }

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        }
    }

    @Test("A connection that served nothing before is not taken for a stale one")
    func fresh() async throws {
        let server = try await TestServer.plaintext { _, peer in peer.close() }
        let transport = try makePlaintextTransport()
        let error = await transport.failure(.to(server.port, scheme: "http"))
        #expect(error?.code == .connectionClosed && error?.wasStale == false)
        #expect(server.seen.requests.count == 1)
        await transport.shutdown()
        await server.stop()
    }

    @Test("The other idle connections of that server are given up, so that a call in its place has a fresh one")
    func others() async throws {
        let held = Locked<[TestServer.Peer]>([])
        let server = try await TestServer.plaintext { request, peer in
            switch request.number {
            case 0, 1: held.withLock { $0.append(peer) }
            case 2: peer.close()
            default: peer.send(PoolTests.ok)
            }
        }
        let transport = try makePlaintextTransport()
        async let first = transport.text(.to(server.port, scheme: "http"))
        async let second = transport.text(.to(server.port, scheme: "http"))
        await server.waitUntil { $0.scripted == 2 }
        held.withLock { $0 }.forEach { $0.send(PoolTests.ok) }
        let texts = try await [first, second]
        #expect(texts == ["ok", "ok"])
        let call = Kind(method: .get, field: "DPoP").call(server.port)
        #expect(await transport.failure(call)?.wasStale == true)
        #expect(try await transport.text(call) == "ok")
        #expect(server.seen.requests.last?.connection == 2 && server.seen.connections == 3)
        await transport.shutdown()
        await server.stop()
    }
}
