import AssentCore
import AssentStore
import AssentTesting
import Foundation
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("A gateway elsewhere whose engine is away, or whose replies are lost")
struct LostEngineRepliesTests {
    @Test("A take whose reply is lost is asked again, and gets the same answer: the service gets the payment once")
    func takeReplyLost() async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let id = try await alone.approved(session: session)
            alone.relay.lose("decide", .losesReply)
            let before = alone.relay.count("decide")
            #expect(try await alone.post(ServerFixture.session(session), transaction: id).status == 201)
            #expect(alone.relay.count("decide") == before + 2)
            #expect(alone.upstream.requests.count == 1)
            await alone.waitUntilHeard()
            #expect(try await alone.outcome(id, session: session) == ["state": "answered", "status": 201])
        }
    }

    @Test(
        "A take whose reply a balancer has lost is asked again too: the service gets the payment once",
        arguments: ["500 Oops", "502 Bad Gateway", "504 Gateway Timeout"])
    func lostBehindBalancer(status: String) async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let id = try await alone.approved(session: session)
            alone.relay.lose("decide", .losesReplyTo(status))
            let before = alone.relay.count("decide")
            #expect(try await alone.post(ServerFixture.session(session), transaction: id).status == 201)
            #expect(alone.relay.count("decide") == before + 2)
            #expect(alone.upstream.requests.count == 1)
            await alone.waitUntilHeard()
            #expect(try await alone.outcome(id, session: session) == ["state": "answered", "status": 201])
        }
    }

    @Test("A take both of whose replies a balancer has lost is told as not forwarded")
    func bothLostBehindBalancer() async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let id = try await alone.approved(session: session)
            alone.relay.lose("decide", .losesReplyTo("502 Bad Gateway"), .losesReplyTo("504 Gateway Timeout"))
            let reply = try await alone.post(ServerFixture.session(session), transaction: id)
            #expect(reply.status == 503)
            #expect(reply.json["forwarded"] == "no" && reply.json["code"] == "outcomeUnknown")
            #expect(alone.upstream.requests.isEmpty)
            await alone.waitUntilHeard()
            #expect(try await alone.outcome(id, session: session) == ["state": "notForwarded"])
        }
    }

    #if PostgreSQL && os(Linux)
    @Test("A take whose reply is lost with its node is asked again at the other node, which gives the same answer")
    func otherNode() async throws {
        try await TwoNodes.run { nodes in
            try await GatewayAlone.run(at: nodes.first) { alone in
                let session = try await nodes.first.session()
                let id = try await alone.approved(session: session)
                let (relay, second) = (alone.relay, nodes.second)
                relay.lose("decide", .losesReplyAnd { relay.lead(to: second) })
                let before = relay.count("decide")
                #expect(try await alone.post(ServerFixture.session(session), transaction: id).status == 201)
                #expect(relay.count("decide") == before + 2)
                #expect(alone.upstream.requests.count == 1)
                // The other node hears of the outcome, too, and nobody gets a second request through.
                await alone.waitUntilHeard()
                #expect(try await alone.outcome(id, session: session) == ["state": "answered", "status": 201])
                relay.lead(to: nodes.first)
                #expect(try await alone.outcome(id, session: session) == ["state": "answered", "status": 201])
                #expect(alone.upstream.requests.count == 1)
            }
        }
    }
    #endif

    @Test("A take both of whose replies are lost is answered 503, and the engine hears that nothing was forwarded")
    func bothLost() async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let id = try await alone.approved(session: session)
            alone.relay.lose("decide", .losesReply, .losesReply)
            let reply = try await alone.post(ServerFixture.session(session), transaction: id)
            #expect(reply.status == 503)
            #expect(reply.json["forwarded"] == "no" && reply.json["code"] == "outcomeUnknown")
            #expect(alone.upstream.requests.isEmpty)
            await alone.waitUntilHeard()
            #expect(try await alone.outcome(id, session: session) == ["state": "notForwarded"])
            #expect(alone.upstream.requests.isEmpty)
        }
    }

    @Test(
        "A take whose reply is lost, and after which the engine is away, is not called unspent: the engine hears of it",
        arguments: ["503 Busy", "500 Oops", "404 Gone"])
    func lostThenAway(status: String) async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let id = try await alone.approved(session: session)
            alone.relay.lose("decide", .losesReply, .answers(status))
            let reply = try await alone.post(ServerFixture.session(session), transaction: id)
            #expect(reply.status == 503)
            #expect(reply.json["forwarded"] == "no" && reply.json["code"] == "outcomeUnknown")
            #expect(alone.upstream.requests.isEmpty)
            await alone.waitUntilHeard()
            #expect(try await alone.outcome(id, session: session) == ["state": "notForwarded"])
        }
    }

    @Test("A take whose reply is lost, and which is refused when it is asked again, is told as not forwarded")
    func lostThenRefused() async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let id = try await alone.approved(session: session)
            let sessions = Sessions(alone.engine.server.context)
            let begun = try #require(try await sessions.live(token: Secret(session)))
            alone.relay.lose("decide", .losesReplyAnd { _ = try? await sessions.end(id: begun.id) })
            #expect(try await alone.post(ServerFixture.session(session), transaction: id).status == 401)
            await alone.waitUntilHeard()
            let row = try await alone.engine.rows("SELECT outcome FROM transactions WHERE id = \(id)").first
            #expect(try row?.optionalText("outcome") == "notForwarded")
            #expect(alone.upstream.requests.isEmpty)
        }
    }

    @Test(
        "A take whose reply is lost, and which cannot be read when it is asked again, is told as not forwarded",
        arguments: ["400 Bad Request", "409 Conflict", "413 Too Large", "415 Unsupported"])
    func lostThenUnreadable(status: String) async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let id = try await alone.approved(session: session)
            alone.relay.lose("decide", .losesReply, .answers(status))
            #expect(try await alone.post(ServerFixture.session(session), transaction: id).status >= 400)
            await alone.waitUntilHeard()
            #expect(try await alone.outcome(id, session: session) == ["state": "notForwarded"])
            #expect(alone.upstream.requests.isEmpty)
        }
    }

    @Test("A question is asked no second time once the engine would not repeat its answer")
    func tooLate() async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let id = try await alone.approved(session: session)
            let before = alone.relay.count("decide")
            let clock = alone.engine.clock
            alone.relay.lose(
                "decide", .losesReplyAnd { clock.advance(by: TimeInterval(TransactionAttempt.repetition)) })
            let reply = try await alone.post(ServerFixture.session(session), transaction: id)
            #expect(reply.status == 503 && reply.json["code"] == "outcomeUnknown")
            #expect(alone.relay.count("decide") == before + 1)
            await alone.waitUntilHeard()
            #expect(try await alone.outcome(id, session: session) == ["state": "notForwarded"])
        }
    }

    @Test("A question that never arrives spends nothing: the same request with the same transaction is good later")
    func requestsLost() async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let mine = ServerFixture.session(session)
            let id = try await alone.approved(session: session)
            alone.relay.lose("decide", .losesRequest, .losesRequest)
            #expect(try await alone.post(mine, transaction: id).status == 503)
            await alone.waitUntilHeard()
            #expect(try await alone.post(mine, transaction: id).status == 201)
            #expect(alone.upstream.requests.count == 1)
        }
    }

    @Test("The engine hears an outcome in the end, however often the report or its reply is lost")
    func outcomeLost() async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let id = try await alone.approved(session: session)
            alone.relay.lose(
                "outcome", .losesRequest, .answers("503 Busy"), .losesReply, .losesReply, .answers("500 Oops"))
            #expect(try await alone.post(ServerFixture.session(session), transaction: id).status == 201)
            await alone.waitUntilHeard()
            #expect(alone.relay.count("outcome") == 6)
            #expect(try await alone.outcome(id, session: session) == ["state": "answered", "status": 201])
            let records = try await alone.engine.audit(id).filter { $0.event == .transactionOutcome }
            #expect(records.count == 1)
        }
    }

    @Test("An outcome that the engine has not heard is told when the gateway ends")
    func shutdown() async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let id = try await alone.approved(session: session)
            alone.relay.lose("outcome", .answers("503 Busy"))
            #expect(try await alone.post(ServerFixture.session(session), transaction: id).status == 201)
            await alone.relay.calls.wait { $0.last == "outcome" }
            await alone.shutDown()
            let row = try await alone.engine.rows("SELECT outcome FROM transactions WHERE id = \(id)").first
            #expect(try row?.optionalText("outcome") == "answered")
        }
    }

    @Test("A gateway that ends before it has told: after ten minutes the engine says that nobody knows")
    func neverTold() async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let id = try await alone.approved(session: session)
            alone.relay.lose("outcome", .losesRequest, .losesRequest, .losesRequest, .losesRequest, .losesRequest)
            #expect(try await alone.post(ServerFixture.session(session), transaction: id).status == 201)
            await alone.relay.calls.wait { $0.last == "outcome" }
            await alone.shutDown()
            let transactions = Transactions(alone.engine.server.context)
            alone.engine.clock.advance(by: TimeInterval(Transactions.forwardingLimit - 1))
            #expect(try await transactions.recordLostOutcomes() == 0)
            alone.engine.clock.advance(by: 2)
            _ = try await transactions.recordLostOutcomes()
            let row = try await alone.engine.rows("SELECT outcome FROM transactions WHERE id = \(id)").first
            #expect(try row?.optionalText("outcome") == "unknown")
            #expect(alone.upstream.requests.count == 1)
        }
    }

    @Test("Without its engine the gateway lets nothing through, and with it again everything that it did before")
    func away() async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let mine = ServerFixture.session(session)
            let id = try await alone.approved(session: session)
            alone.relay.lead(to: nil)
            for reply in [
                try await alone.get("/accounts", mine), try await alone.post(mine, transaction: id),
                try await alone.post(mine),
            ] {
                #expect(reply.status == 503)
                #expect(reply.json["forwarded"] == "no")
            }
            #expect(alone.upstream.requests.isEmpty)
            #expect(try await alone.get("/open", []).status == 200)
            alone.relay.lead(to: alone.engine)
            #expect(try await alone.get("/accounts", mine).status == 200)
            await alone.waitUntilHeard()
            #expect(try await alone.post(mine, transaction: id).status == 201)
        }
    }

    @Test("A gateway goes on with an engine that was started again, and with a token that has expired")
    func restarted() async throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let first = try await ServerFixture(kept: directory)
        try await GatewayAlone.run(at: first) { alone in
            let session = try await first.session()
            let mine = ServerFixture.session(session)
            let id = try await alone.approved(session: session)
            await first.stop()
            alone.relay.lead(to: nil)
            #expect(try await alone.get("/accounts", mine).status == 503)
            let second = try await ServerFixture(kept: directory, clock: first.clock)
            alone.relay.lead(to: second)
            #expect(try await alone.get("/accounts", mine).status == 200)
            #expect(try await alone.post(mine, transaction: id).status == 201)
            let tokens = alone.relay.count("access_token")
            first.clock.advance(by: 3595)
            let later = ServerFixture.session(try await second.session())
            #expect(try await alone.get("/accounts", later).status == 200)
            #expect(alone.relay.count("access_token") == tokens + 1)
            await second.stop()
        }
    }

    @Test("A client whose secret is wrong gets no token, and is not tried for each request")
    func wrongSecret() async throws {
        let text = { (text: String) in text.replacing("edge-secret}", with: "wrong-secret}") }
        try await ServerFixture.run { engine in
            try PrivateFile.create(
                engine.directory + "/wrong-secret", Array("wrong-secret-0123456789abcdef0123456789".utf8))
            try await GatewayAlone.run(at: engine, editing: text) { alone in
                let session = ServerFixture.session(try await engine.session())
                for _ in 0..<5 {
                    let reply = try await alone.get("/accounts", session)
                    #expect(reply.status == 503 && reply.json["forwarded"] == "no")
                }
                #expect(alone.relay.calls.value == ["access_token"])
                engine.clock.advance(by: 3)
                #expect(try await alone.get("/accounts", session).status == 503)
                #expect(alone.relay.calls.value == ["access_token", "access_token"])
                // A clock that is set back makes the pause no longer.
                engine.clock.advance(by: -60)
                #expect(try await alone.get("/accounts", session).status == 503)
                #expect(alone.relay.calls.value.count == 3)
                #expect(alone.upstream.requests.isEmpty)
            }
        }
    }
}
