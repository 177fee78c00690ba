import AssentCore
import AssentPayload
import AssentTesting
import Foundation
import HTTPTypes
import Testing

@testable import Assent

@Suite("Payload encryption: the transport that seals")
struct PayloadTransportTests {
    private typealias Change = @Sendable (HTTPReply) async throws -> HTTPReply

    private static let url = SealedListener.origin + "/transfers?x=1"
    /// What is sealed for the request, but does not say that it is sealed.
    private static let otherType: Change = { reply in
        HTTPReply(HTTPResponse(status: .ok, headerFields: [.contentType: "text/html"]), body: reply.body)
    }

    private func failure(_ transport: PayloadTransport, _ call: HTTPCall) async -> HTTPTransportError? {
        do {
            let reply = try await transport.send(call)
            _ = try await reply.body.collect(upTo: 1 << 20)
            return nil
        } catch {
            return error as? HTTPTransportError
        }
    }

    @Test("A call arrives as it is, of any length and also as a stream, and its reply is handed over")
    func calls() async throws {
        let listener = SealedListener()
        let transport = try listener.transport()
        for count in [0, 1, 65_535, 65_536, 200_000] {
            let content = SystemRandom().bytes(count)
            let pieces = Locked(
                stride(from: 0, to: count, by: 50_000).map { Array(content[$0..<min(count, $0 + 50_000)]) })
            let stream = HTTPBody(length: nil, isReplayable: false) {
                { pieces.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
            }
            for body in [HTTPBody(content), stream] {
                let reply = try await transport.send(
                    try HTTPCall(.post, url: Self.url, headerFields: [.contentType: "text/plain"], body: body))
                #expect(reply.status == 201)
                #expect(reply.response.headerFields[.retryAfter] == "7")
                // What has one chunk is there with its head, as a short plain reply is.
                #expect((reply.body.inMemory != nil) == (count < 2))
                #expect(try await reply.body.collect(upTo: 1 << 20) == content)
            }
        }
        #expect(listener.handshakes == 1)
        let (request, _) = try #require(listener.calls.first)
        #expect(request.path == "/transfers?x=1" && request.authority == "api.bank.example")
        #expect(request.headerFields[.contentType] == "text/plain")
    }

    @Test("A call without content arrives as it stands, with one field of cookies, and nothing that belongs to HTTP")
    func withoutContent() async throws {
        let listener = SealedListener()
        let transport = try listener.transport()
        let call = try HTTPCall(.get, url: Self.url, headerFields: [.accept: "*/*", .authorization: "Bearer token"])
        _ = try await transport.send(call)
        var other = call
        other.request.path = "?y"
        other.request.headerFields.append(HTTPField(name: .cookie, value: "a=1"))
        other.request.headerFields.append(HTTPField(name: .cookie, value: "b=2"))
        _ = try await transport.send(other)
        let sent = listener.calls.map { $0.0 }
        #expect(sent.first == call.request)
        #expect(sent.last?.path == "/?y" && sent.last?.headerFields[values: .cookie] == ["a=1; b=2"])
        #expect(sent.last?.headerFields[.accept] == "*/*" && sent.last?.headerFields.count == 3)
        var refused = call
        refused.request.headerFields[.connection] = "close"
        #expect(await failure(transport, refused)?.code == .invalidRequest)
        #expect(listener.calls.count == 2)
    }

    @Test("A reply that is a status alone is handed over, and is told of once")
    func bare() async throws {
        let listener = SealedListener()
        listener.isBare.withLock { $0 = true }
        let traces = Locked<[PayloadTrace]>([])
        let transport = try listener.transport(observing: { trace in traces.withLock { $0.append(trace) } })
        let reply = try await transport.send(try HTTPCall(.get, url: Self.url))
        let content = try await reply.body.collect(upTo: 1)
        #expect(reply.status == 201 && content.isEmpty)
        let kinds = traces.withLock { $0.map(\.kind) }
        #expect(kinds == [.handshake, .request, .reply])
    }

    @Test("Row 36 (answers): whatever is not sealed for the request is repeated once if that is safe, else unknown")
    func unsealed() async throws {
        let plain = [200, 302, 401, 403, 404, 503].map { status -> (name: String, change: Change) in
            let change: Change = { _ in .json(status, ["error": "x"]) }
            return ("plain \(status)", change)
        }
        let others: [(name: String, change: Change)] = [
            ("pe_unknown_session", { _ in .json(404, PayloadRefusal.unknownSession.body) }),
            ("pe_repeated", { _ in .json(409, PayloadRefusal.repeated.body) }),
            ("pe_busy", { _ in .json(503, PayloadRefusal.busy.body) }),
            ("flipped", { try await Self.changed($0) { $0[60] ^= 1 } }),
            ("cut off", { try await Self.changed($0) { $0.removeLast(100) } }),
            ("another session", { try await Self.changed($0) { $0[1] ^= 1 } }),
            ("a request", { try await Self.changed($0) { $0[0] = 1 } }),
            ("none", { _ in throw HTTPTransportError(.connectionClosed, "x", mayHaveHadEffect: true) }),
            (
                "a kept connection had ended",
                { _ in throw HTTPTransportError(.connectionClosed, "x").afterSending().onStaleConnection() }
            ),
        ]
        let typed: (name: String, change: Change) = ("another type", Self.otherType)
        for answer in plain + others + [typed] {
            for (method, sendings) in [(HTTPRequest.Method.get, 2), (.post, 1)] {
                let listener = SealedListener { _, path, reply in
                    path.hasSuffix("/message") ? try await answer.change(reply) : reply
                }
                let error = await failure(try listener.transport(), try HTTPCall(method, url: Self.url))
                #expect(error?.mayHaveHadEffect == true, "\(answer.name), \(method)")
                #expect(listener.calls.count == sendings, "\(answer.name), \(method)")
            }
        }
    }

    @Test("A call with a proof is left to the layer that made it; one without a connection was not sent")
    func left() async throws {
        let listener = SealedListener { _, path, reply in path.hasSuffix("/message") ? .json(200, [:]) : reply }
        var call = try HTTPCall(.get, url: Self.url)
        call.request.headerFields[.dpop] = "proof"
        let error = await failure(try listener.transport(), call)
        #expect(error?.mayBeSentWithNewProof == true)
        #expect(listener.calls.count == 1)
        let closed = SealedListener { _, path, reply in
            guard path.hasSuffix("/message") else { return reply }
            throw HTTPTransportError(.connectFailed, "x")
        }
        let unsent = await failure(try closed.transport(), try HTTPCall(.get, url: Self.url))
        #expect(unsent?.code == .connectFailed && unsent?.mayHaveHadEffect == false)
        #expect(closed.calls.count == 1)
    }

    @Test("Only what goes out as another message is left to find out by itself that its connection has ended")
    func replaced() async throws {
        for (method, proof, expected) in [
            (HTTPRequest.Method.get, nil, [true, false]), (.post, nil, [false]), (.get, "proof", [false]),
        ] as [(HTTPRequest.Method, String?, [Bool])] {
            let seen = Locked<[Bool]>([])
            let listener = SealedListener { _, path, reply in path.hasSuffix("/message") ? .json(200, [:]) : reply }
            let transport = try listener.transport(watching: { call in
                guard call.request.path?.hasSuffix("/message") == true else { return }
                seen.withLock { $0.append(call.isReplacedAbove) }
            })
            var call = try HTTPCall(method, url: Self.url)
            call.request.headerFields[.dpop] = proof
            #expect(await failure(transport, call) != nil)
            let flags = seen.withLock { $0 }
            #expect(flags == expected, "\(method), \(proof ?? "no proof")")
        }
    }

    @Test("Row 36 (handshake): one that is not confirmed, or not answered, sends nothing of the call")
    func handshakes() async throws {
        for change in [
            { (_: HTTPReply) in .json(200, [:]) }, { _ in .json(500, [:]) },
            { _ in .json(400, PayloadRefusal.unknownKey.body) }, { _ in .json(401, PayloadRefusal.badProof.body) },
        ] as [@Sendable (HTTPReply) -> HTTPReply] {
            let listener = SealedListener { _, path, reply in path.hasSuffix("/handshake") ? change(reply) : reply }
            let error = await failure(try listener.transport(), try HTTPCall(.post, url: Self.url))
            #expect(error?.code == .payloadEncryptionFailed && error?.mayHaveHadEffect == false)
            #expect(listener.calls.isEmpty)
        }
    }

    @Test("A call waits for a handshake no longer than it may take, and was not sent")
    func lateHandshake() async throws {
        let (gate, opening) = AsyncStream.makeStream(of: Void.self)
        let listener = SealedListener { _, path, reply in
            if path.hasSuffix("/handshake") { for await _ in gate { break } }
            return reply
        }
        let transport = try listener.transport()
        let limits = HTTPLimits(total: .seconds(5))
        let call = try HTTPCall(.post, url: Self.url, limits: limits)
        let late = Task { await failure(transport, call) }
        while listener.clock.sleeperCount == 0 { await Task.yield() }
        listener.clock.advance(by: 5)
        let error = await late.value
        #expect(error?.code == .timedOut && error?.mayHaveHadEffect == false)
        opening.finish()
        #expect(await failure(transport, call) == nil)
        #expect(listener.calls.count == 1 && listener.handshakes == 1)
    }

    @Test("Calls that are cancelled while they begin leave nothing behind: no later one waits in their place")
    func cancelledAtOnce() async throws {
        let (gate, opening) = AsyncStream.makeStream(of: Void.self)
        let listener = SealedListener { _, path, reply in
            if path.hasSuffix("/handshake") { for await _ in gate { break } }
            return reply
        }
        let transport = try listener.transport()
        let call = try HTTPCall(.post, url: Self.url)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<(2 * ClientSession.waitingLimit) {
                let task = Task { await failure(transport, call) }
                task.cancel()
                group.addTask { _ = await task.value }
            }
        }
        opening.finish()
        #expect(await failure(transport, call) == nil)
        #expect(listener.calls.count == 1)
    }

    @Test("A sealed reply that says another length than it has is not taken as whole", arguments: [0, 1, -1])
    func statedLength(surplus: Int) async throws {
        let listener = SealedListener()
        listener.surplus.withLock { $0 = surplus }
        let call = try HTTPCall(.post, url: Self.url, body: HTTPBody([1, 2, 3]))
        let error = await failure(try listener.transport(), call)
        #expect((error == nil) == (surplus == 0))
        #expect(error == nil || error?.mayHaveHadEffect == true)
    }

    @Test("A sealed reply without its last chunk is cut off, also where nothing of the reply itself is missing")
    func withoutLastChunk() async throws {
        let listener = SealedListener()
        listener.isCutOff.withLock { $0 = true }
        let transport = try listener.transport()
        for method in [HTTPRequest.Method.get, .post] {
            let error = await failure(transport, try HTTPCall(method, url: Self.url))
            #expect(error?.code == .payloadEncryptionFailed && error?.mayHaveHadEffect == true, "\(method)")
        }
        // Its first chunk says that the request has arrived: it is not sent again.
        #expect(listener.calls.count == 2)
    }

    @Test("After eight idle minutes there is a new session")
    func idle() async throws {
        let listener = SealedListener()
        let transport = try listener.transport()
        for (seconds, handshakes) in [(0.0, 1), (479, 1), (480, 2)] {
            listener.clock.advance(by: seconds)
            _ = try await transport.send(try HTTPCall(.get, url: Self.url))
            #expect(listener.handshakes == handshakes)
        }
    }

    private static func changed(
        _ reply: HTTPReply, _ change: (inout [UInt8]) -> Void
    ) async throws -> HTTPReply {
        var bytes = try await reply.body.collect(upTo: 1 << 20)
        change(&bytes)
        return HTTPReply(reply.response, body: HTTPBody(bytes))
    }
}
