import AssentAuthorization
import AssentCore
import AssentJourney
import AssentTesting
import AssentTokens
import Foundation
import HTTPTypes
import Testing

@Suite struct PolicyTests {
    private func policy(
        _ path: String = "/", changing change: (inout AuthorizationPolicy) -> Void = { _ in },
        approve: AuthorizationPolicy.Handler? = agree
    ) throws -> AuthorizationPolicy {
        var policy = try AuthorizationPolicy(api + path, approve: approve)
        change(&policy)
        return policy
    }

    @Test("A call that brings no handler is answered by its policy's, and the reply says what was approved")
    func handler() async throws {
        let world = World()
        let client: any HTTPTransport = try await world.client(policies: [policy()])
        let reply = try await client.send(try post())
        #expect(reply.status == 201)
        #expect(
            reply.authorization
                == .approved(transactionID: txid, binding: .stated(Set(ApprovalBinding.Part.allCases))))
    }

    @Test("Replies to calls for which nobody was asked say so")
    func notAsked() async throws {
        let world = World()
        world.change { $0.gateway = { _ in .json(200, [:]) } }
        let client = try await world.client(policies: [policy()])
        #expect(try await client.send(try get()).authorization == .notAsked)
        let elsewhere = HTTPCall(try HTTPRequest(.get, url: "\(am)/oauth2/other"))
        #expect(try await client.send(elsewhere).authorization == .notOurs)
    }

    @Test("A call's own handler is asked and the policy's is not")
    func ownHandler() async throws {
        let world = World()
        let client = try await world.client(policies: [
            policy(approve: { _ in
                Issue.record("the policy's handler should not be asked")
                return .decline
            })
        ])
        #expect(try await client.send(try post(), approve: agree).status == 201)
    }

    @Test(
        "Of several policies the longest path counts; a path without a slash at its end is for itself alone",
        arguments: [
            ("/transfers", "exact"), ("/transfers?x=1", "exact"), ("/transfers/", "below"), ("/transfers/1", "below"),
            ("/transfers/big/1", "big"), ("/transfersX", "all"), ("/accounts", "all"), ("//transfers//big//1", "big"),
            ("/tr%61nsfers", "exact"),
        ])
    func longest(path: String, name: String) async throws {
        let world = World()
        world.change { $0.states = false }
        let asked = Locked<[String]>([])
        let handler = { (name: String) -> AuthorizationPolicy.Handler in
            { approval in
                asked.withLock { $0.append(name) }
                return agree(&approval)
            }
        }
        let client = try await world.client(policies: [
            policy("/", approve: handler("all")), policy("/transfers", approve: handler("exact")),
            policy("/transfers/", approve: handler("below")), policy("/transfers/big/", approve: handler("big")),
        ])
        _ = try await client.send(try post(path))
        #expect(asked.withLock { $0 } == [name])
    }

    @Test(
        "A path with steps upwards has no policy, so it is not sent",
        arguments: ["/a/../transfers", "/%2e%2E/x", "/a/..;x/b"])
    func upwards(path: String) async throws {
        let world = World()
        let client = try await world.client(policies: [policy()])
        await #expect(throws: AuthorizationError.like(.invalidRequest)) { try await client.send(try get(path)) }
        #expect(world.calls.isEmpty)
    }

    @Test("A policy for no resource, two for one address, one without time and one with a query are refused")
    func configuration() async throws {
        let world = World()
        let elsewhere = try AuthorizationPolicy("https://elsewhere.example/")
        let twice = [try policy("/a"), try policy("/%61")]
        let hurried = try policy(changing: { $0.patience = .zero })
        for policies in [[elsewhere], twice, [hurried]] {
            await #expect(throws: AuthorizationError.like(.invalidConfiguration)) {
                try await world.client(policies: policies)
            }
        }
        for url in ["\(api)/a?b=1", "\(api)/a#b", "/a", "\(api)/a/../b"] {
            #expect(throws: AuthorizationError.like(.invalidConfiguration)) { try AuthorizationPolicy(url) }
        }
    }

    @Test("A policy may insist on what the server states, where the configuration does not")
    func binding() async throws {
        let world = World()
        world.change { $0.states = false }
        let client = try await world.client(policies: [policy("/transfers", changing: { $0.requiresBinding = true })])
        await #expect(throws: AuthorizationError.like(.approvalNotBound)) { try await client.send(try post()) }
        #expect(try await client.send(try post("/other"), approve: agree).status == 201)
    }

    private static func ownWords(server: String = am) -> HTTPReply {
        HTTPReply(HTTPResponse(status: .forbidden), body: HTTPBody("\(server) \(txid)"))
    }

    private static let recognise: @Sendable (HTTPReply) async throws -> Advice? = { reply in
        guard reply.status == 403 else { return nil }
        let words = String(decoding: try await reply.body.collect(upTo: 1000), as: UTF8.self).split(separator: " ")
        let advice = try Advice(transactionID: String(words[1]))
        return try Advice(location: advice.redirectLocation(server: String(words[0]), goto: api, realm: "/"))
    }

    @Test("What a resource says in its own words is recognised, and goes through the same gate")
    func recognised() async throws {
        let world = World()
        world.change { $0.gateway = { $0.url.contains("_txid") ? .json(201, [:]) : Self.ownWords() } }
        let client = try await world.client(policies: [policy(changing: { $0.recognise = Self.recognise })])
        #expect(try await client.send(try post()).status == 201)
        world.change { $0.gateway = { _ in Self.ownWords(server: "https://evil.example/am") } }
        let steps = world.steps.count
        await #expect(throws: AuthorizationError.like(.untrustedAdvice)) { try await client.send(try post()) }
        #expect(world.steps.count == steps)
    }

    @Test("A recogniser that throws or hangs has recognised nothing, and the reply comes back whole")
    func failingRecogniser() async throws {
        struct Broken: Error {}
        let world = World()
        world.change { $0.gateway = { _ in .json(200, ["done": true]) } }
        let throwing = try await world.client(policies: [policy(changing: { $0.recognise = { _ in throw Broken() } })])
        let reply = try await throwing.send(try post())
        #expect(try await reply.body.collect(upTo: 100) == Array(#"{"done":true}"#.utf8))
        #expect(reply.authorization == .notAsked)

        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let hanging = try await world.client(policies: [
            policy(changing: {
                $0.recognise = { _ in
                    begin.yield()
                    // It does not care that it is cancelled.
                    return await withCheckedContinuation { continuation in
                        Self.abandoned.withLock { $0.append(continuation) }
                    }
                }
            })
        ])
        let call = Task { try await hanging.send(try post()).status }
        for await _ in begun { break }
        while world.clock.sleeperCount == 0 { await Task.yield() }
        world.clock.advance(by: 11)
        #expect(try await call.value == 200)
        let left = Self.abandoned.withLock { continuations in
            defer { continuations = [] }
            return continuations
        }
        for continuation in left { continuation.resume(returning: nil) }
    }

    private static let abandoned = Locked<[CheckedContinuation<Advice?, Never>]>([])

    @Test("Content that is too long to be recognised comes back whole, piece by piece")
    func longReply() async throws {
        let world = World()
        world.change {
            $0.gateway = { _ in
                HTTPReply(
                    HTTPResponse(status: .ok),
                    body: HTTPBody(length: nil, isReplayable: false) {
                        let rest = Locked((0..<5).map { [UInt8](repeating: $0, count: 10) }[...])
                        return { rest.withLock { $0.popFirst() } }
                    })
            }
        }
        let client = try await world.client(policies: [
            policy(changing: {
                $0.bufferLimit = 25
                $0.recognise = { _ in
                    Issue.record("it should not be asked")
                    return nil
                }
            })
        ])
        let body = try await client.send(try get()).body.collect(upTo: 100)
        #expect(body == (0..<5).flatMap { [UInt8](repeating: $0, count: 10) })
    }

    @Test("A policy puts the transaction's id where its resource looks for it")
    func decorated() async throws {
        let world = World()
        world.change { $0.gateway = { $0.field("X-Approval") == txid ? .json(201, [:]) : nil } }
        let client = try await world.client(policies: [
            policy(changing: {
                $0.decorate = { call, id in
                    call.request.headerFields[try #require(HTTPField.Name("X-Approval"))] = id
                    call.request.path = (call.request.path ?? "") + "?approved=1"
                }
            })
        ])
        #expect(try await client.send(try post()).status == 201)
        let last = try #require(world.calls.last)
        #expect(last.url == "\(api)/transfers?approved=1" && last.text == transfer && last.field("X-TxID") == nil)
    }

    @Test(
        "A policy that changes anything else is refused before the user is asked",
        arguments: [
            { $0.body = HTTPBody(#"{"to":"Eve"}"#) }, { $0.body = nil }, { $0.request.method = .put },
            { $0.request.path = "/other" }, { $0.request.authority = "evil.example" }, { $0.request.scheme = "http" },
            { $0.request.headerFields[.contentType] = "text/plain" },
            { $0.request.headerFields[.idempotencyKey] = "other" }, { $0.request.path = "/transfers" },
            { $0.request.path = "/transfers?id=71" }, { $0.request.path = "/transfers?x=1&id=7" },
            { $0.request.headerFields[.accept] = nil }, { $0.request.headerFields[.accept] = "text/html" },
        ] as [@Sendable (inout HTTPCall) -> Void])
    func decoratedTooMuch(change: @escaping @Sendable (inout HTTPCall) -> Void) async throws {
        let world = World()
        let client = try await world.client(policies: [policy(changing: { $0.decorate = { call, _ in change(&call) } })]
        )
        var call = try post("/transfers?id=7")
        call.request.headerFields[.accept] = "application/json"
        await #expect(throws: AuthorizationError.like(.invalidConfiguration)) { try await client.send(call) }
        #expect(world.calls.count == 1 && world.steps.isEmpty)
    }

    @Test("Content that changed while the user was asked is not sent")
    func changedContent() async throws {
        let world = World()
        let text = Locked(transfer)
        var call = try post()
        call.body = HTTPBody(length: nil, isReplayable: true) {
            let rest = Locked<[UInt8]?>(Array(text.withLock { $0 }.utf8))
            return {
                rest.withLock { bytes in
                    defer { bytes = nil }
                    return bytes
                }
            }
        }
        let client = try await world.client()
        #expect(try await client.send(call, approve: agree).status == 201)
        #expect(world.calls.last?.text == transfer)
        await #expect(throws: AuthorizationError.like(.approvalForAnotherRequest)) {
            try await client.send(call) { approval in
                text.withLock { $0 = #"{"to":"Eve","amount":"9000.00"}"# }
                return agree(&approval)
            }
        }
        #expect(world.calls.count == 3)
    }

    @Test("What an origin gets is settled before a call gets a credential")
    func settled() async throws {
        let world = World()
        world.change { $0.gateway = { _ in .json(200, [:]) } }
        let tokens = try world.tokens()
        try await tokens.install(Session(token: Secret("SESS")))
        var configuration = try AuthorizationConfiguration(resources: [api: .session])
        let isSettled = Locked(false)
        configuration.settle = { _ in isSettled.withLock { $0 = true } }
        configuration.changing = { _ in isSettled.withLock { $0 } ? nil : .session }
        let client = try AuthorizedClient(
            configuration: configuration,
            journeys: JourneyClient(
                configuration: try JourneyConfiguration(server: am), transport: world.transport, clock: world.clock),
            source: tokens, transport: world.transport, clock: world.clock, random: SeededRandom(seed: 2))
        #expect(try await client.send(try get()).status == 200)
        #expect(world.calls.count == 1 && world.calls.first?.field("Cookie") == nil)
    }

    private func stream(_ chunks: Int, of size: Int, says length: Int?, read: Locked<Int>) throws -> HTTPCall {
        var call = try post()
        call.body = HTTPBody(length: length, isReplayable: false) {
            let rest = Locked(chunks)
            return {
                rest.withLock { rest in
                    guard rest > 0 else { return nil }
                    rest -= 1
                    read.withLock { $0 += size }
                    return [UInt8](repeating: 0x20, count: size)
                }
            }
        }
        return call
    }

    @Test("A stream that can be read once is kept if it is short, and approved")
    func shortStream() async throws {
        let world = World()
        let client = try await world.client(policies: [policy()])
        let read = Locked(0)
        #expect(try await client.send(try stream(4, of: 1000, says: nil, read: read)).status == 201)
        #expect(world.calls.map(\.body.count) == [4000, 4000] && read.withLock { $0 } == 4000)
    }

    @Test(
        "A long stream, or one that lies about its length, is refused before anything is sent",
        arguments: [
            (1 << 15, 2 << 30, 0), (1 << 15, nil, 17 << 16), (1 << 15, 10, 17 << 16), (2, 10, 2 << 16), (0, 10, 0),
        ] as [(Int, Int?, Int)])
    func longStream(chunks: Int, length: Int?, mostRead: Int) async throws {
        let world = World()
        let client = try await world.client(policies: [policy()])
        let read = Locked(0)
        await #expect(throws: AuthorizationError.like(.bodyNotReplayable)) {
            try await client.send(try stream(chunks, of: 1 << 16, says: length, read: read))
        }
        #expect(world.calls.isEmpty && read.withLock { $0 } <= mostRead)
    }

    @Test("Where no policy covers the address, a stream goes out as it is")
    func uncoveredStream() async throws {
        let world = World()
        world.change { $0.gateway = { _ in .json(200, [:]) } }
        let client = try await world.client(policies: [policy("/other")])
        let read = Locked(0)
        #expect(try await client.send(try stream(2, of: 1 << 20, says: nil, read: read)).status == 200)
        #expect(world.calls.map(\.body.count) == [2 << 20])
    }
}
