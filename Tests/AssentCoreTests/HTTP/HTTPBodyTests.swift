import AssentCore
import AssentTesting
import HTTPTypes
import Testing

@Suite("HTTPBody")
struct HTTPBodyTests {
    private func stream(_ chunks: [[UInt8]], length: Int? = nil, pulled: Locked<Int> = Locked(0)) -> HTTPBody {
        HTTPBody(length: length, isReplayable: true) {
            let rest = Locked(chunks)
            return {
                pulled.withLock { $0 += 1 }
                return rest.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            }
        }
    }

    @Test("A body in memory can be read again and again")
    func inMemory() async throws {
        let body = HTTPBody("héllo")
        #expect(body.length == 6)
        #expect(body.isReplayable)
        for _ in 0..<2 {
            var chunks: [[UInt8]] = []
            for try await chunk in body { chunks.append(chunk) }
            #expect(chunks == [Array("héllo".utf8)])
        }
        #expect(try await body.collect(upTo: 6) == Array("héllo".utf8))
    }

    @Test("An empty body has no chunk and no bytes")
    func empty() async throws {
        for try await _ in HTTPBody.empty { Issue.record("there was a chunk") }
        #expect(try await HTTPBody.empty.collect(upTo: 0) == [])
        #expect(HTTPBody.empty.length == 0)
    }

    @Test("A stream is collected up to the limit and not a chunk further")
    func limit() async throws {
        #expect(try await stream([[1], [2, 3], [], [4]]).collect(upTo: 4) == [1, 2, 3, 4])
        let pulled = Locked(0)
        await #expect(throws: HTTPTransportError(.bodyTooLarge, "")) {
            try await stream([[1], [2, 3], [4], [5]], pulled: pulled).collect(upTo: 2)
        }
        #expect(pulled.withLock { $0 } == 2)
    }

    @Test("A body that says it is too long is not read at all")
    func declaredLength() async throws {
        let pulled = Locked(0)
        await #expect(throws: HTTPTransportError(.bodyTooLarge, "")) {
            try await stream([[1]], length: 9, pulled: pulled).collect(upTo: 8)
        }
        #expect(pulled.withLock { $0 } == 0)
        await #expect(throws: HTTPTransportError(.bodyTooLarge, "")) { try await HTTPBody([1, 2]).collect(upTo: 1) }
    }

    @Test("Too much content of a reply may come after an effect of its request, and too much of a request comes before")
    func effect() async throws {
        for body in [HTTPBody([1, 2]), stream([[1], [2]]), stream([[1], [2]], length: 2)] {
            let reply = HTTPReply(HTTPResponse(status: .created), body: body)
            let late = await #expect(throws: HTTPTransportError.self) { try await reply.body.collect(upTo: 1) }
            #expect(late?.code == .bodyTooLarge && late?.mayHaveHadEffect == true)
            var content = reply.body
            let short = try await content.peek(upTo: 0)
            #expect(short == nil)
            let peeked = content
            let again = await #expect(throws: HTTPTransportError.self) { try await peeked.collect(upTo: 1) }
            #expect(again?.mayHaveHadEffect == true)
            var changed = HTTPReply(HTTPResponse(status: .created))
            changed.body = body
            let put = changed.body
            let replaced = await #expect(throws: HTTPTransportError.self) { try await put.collect(upTo: 1) }
            #expect(replaced?.mayHaveHadEffect == true)
            let early = await #expect(throws: HTTPTransportError.self) { try await body.collect(upTo: 1) }
            #expect(early?.code == .bodyTooLarge && early?.mayHaveHadEffect == false)
        }
    }

    @Test("A stream that fails hands its error on")
    func failure() async throws {
        let body = HTTPBody(length: nil, isReplayable: false) { { throw HTTPTransportError(.connectionClosed, "cut") } }
        await #expect(throws: HTTPTransportError(.connectionClosed, "")) { try await body.collect(upTo: 10) }
    }
}

@Suite("HTTPPipeline")
struct HTTPPipelineTests {
    private struct Layer: HTTPMiddleware {
        let name: String
        let log: Locked<[String]>
        var times = 1

        func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply {
            log.withLock { $0.append("\(name) in") }
            var reply = HTTPReply(HTTPResponse(status: .noContent))
            for _ in 0..<times { reply = try await next.send(call) }
            log.withLock { $0.append("\(name) out") }
            return reply
        }
    }

    private let call = HTTPCall(HTTPRequest(method: .get, scheme: "https", authority: "h", path: "/"))

    @Test("Layers run from the first to the last and back")
    func order() async throws {
        let log = Locked<[String]>([])
        let transport = InMemoryTransport { _ in
            log.withLock { $0.append("transport") }
            return HTTPReply(HTTPResponse(status: .ok))
        }
        let pipeline = HTTPPipeline(transport, layers: [Layer(name: "a", log: log), Layer(name: "b", log: log)])
        #expect(try await pipeline.send(call).status == 200)
        #expect(log.withLock { $0 } == ["a in", "b in", "transport", "b out", "a out"])
    }

    @Test("A layer may send again, or not at all")
    func repetition() async throws {
        let log = Locked<[String]>([])
        let transport = InMemoryTransport { _ in HTTPReply(HTTPResponse(status: .ok)) }
        let twice = HTTPPipeline(transport, layers: [Layer(name: "a", log: log, times: 2), Layer(name: "b", log: log)])
        _ = try await twice.send(call)
        #expect(log.withLock { $0 } == ["a in", "b in", "b out", "b in", "b out", "a out"])
        #expect(transport.exchanges.count == 2)
        let never = HTTPPipeline(transport, layers: [Layer(name: "a", log: log, times: 0)])
        #expect(try await never.send(call).status == 204)
        #expect(transport.exchanges.count == 2)
    }

    @Test("Without layers the transport answers, and its errors pass")
    func bare() async throws {
        let transport = InMemoryTransport { _ in throw HTTPTransportError(.timedOut, "x", mayHaveHadEffect: true) }
        await #expect(throws: HTTPTransportError(.timedOut, "")) {
            try await HTTPPipeline(transport, layers: []).send(call)
        }
    }
}
