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
    /// A user whose payment at a gateway elsewhere is approved, and not sent yet.
    private struct Payment {
        let alone: GatewayAlone
        let session: String
        let id: String

        init(_ alone: GatewayAlone) async throws {
            self.alone = alone
            session = try await alone.engine.session()
            id = try await alone.approved(session: session)
        }

        /// Runs `body` with one, beside an engine and a gateway elsewhere.
        static func run(
            configuring change: (inout GatewayServerConfiguration) -> Void = { _ in },
            _ body: (Payment) async throws -> Void
        ) async throws {
            try await GatewayAlone.run(configuring: change) { alone in try await body(try await Payment(alone)) }
        }

        var relay: EngineRelay { alone.relay }
        var forwarded: [TestUpstream.Request] { alone.upstream.requests }

        func send() async throws -> Answer {
            try await alone.post(ServerFixture.session(session), transaction: id)
        }

        /// What the engine says of it when it has heard everything.
        func outcome() async throws -> JSONValue? {
            await alone.waitUntilHeard()
            return try await alone.outcome(id, session: session)
        }

        /// What the engine has on record.
        func recorded() async throws -> String? {
            let row = try await alone.engine.rows("SELECT outcome FROM transactions WHERE id = \(id)").first
            return try row?.optionalText("outcome")
        }

        /// It is asked for twice, the service gets it once, and the engine hears of that.
        func expectPaidOnce() async throws {
            let before = relay.count("decide")
            #expect(try await send().status == 201)
            #expect(relay.count("decide") == before + 2)
            #expect(forwarded.count == 1)
            #expect(try await outcome() == ["state": "answered", "status": 201])
        }

        /// The client hears that nobody knows, the service gets nothing, and the engine hears of that.
        func expectNotForwarded() async throws {
            let reply = try await send()
            #expect(reply.status == 503)
            #expect(reply.json["forwarded"] == "no" && reply.json["code"] == "outcomeUnknown")
            #expect(forwarded.isEmpty)
            #expect(try await outcome() == ["state": "notForwarded"])
            #expect(forwarded.isEmpty)
        }
    }

    @Test("A take whose reply is lost is asked again, and gets the same answer: the service gets the payment once")
    func takeReplyLost() async throws {
        try await Payment.run { payment in
            payment.relay.lose("decide", .losesReply)
            try await payment.expectPaidOnce()
        }
    }

    @Test(
        "A take whose reply a balancer has lost is asked again too: the service gets the payment once",
        arguments: ["500 Oops", "502 Bad Gateway", "504 Gateway Timeout"])
    func lostBehindBalancer(status: String) async throws {
        try await Payment.run { payment in
            payment.relay.lose("decide", .losesReplyTo(status))
            try await payment.expectPaidOnce()
        }
    }

    @Test("A take both of whose replies a balancer has lost is told as not forwarded")
    func bothLostBehindBalancer() async throws {
        try await Payment.run { payment in
            payment.relay.lose("decide", .losesReplyTo("502 Bad Gateway"), .losesReplyTo("504 Gateway Timeout"))
            try await payment.expectNotForwarded()
        }
    }

    #if PostgreSQL && os(Linux)
    @Test("A take whose reply is lost with its node is asked again at the other node, which gives the same answer")
    func otherNode() async throws {
        try await TwoNodes.run { nodes in
            try await GatewayAlone.run(at: nodes.first) { alone in
                let payment = try await Payment(alone)
                let (relay, second) = (alone.relay, nodes.second)
                relay.lose("decide", .losesReplyAnd { relay.lead(to: second) })
                // The other node hears of the outcome, too, and nobody gets a second request through.
                try await payment.expectPaidOnce()
                relay.lead(to: nodes.first)
                #expect(try await payment.outcome() == ["state": "answered", "status": 201])
                #expect(payment.forwarded.count == 1)
            }
        }
    }
    #endif

    @Test("A take both of whose replies are lost is answered 503, and the engine hears that nothing was forwarded")
    func bothLost() async throws {
        try await Payment.run { payment in
            payment.relay.lose("decide", .losesReply, .losesReply)
            try await payment.expectNotForwarded()
        }
    }

    @Test(
        "A take whose reply is lost, and after which the engine is away, is not called unspent: the engine hears of it",
        arguments: ["503 Busy", "500 Oops", "404 Gone"])
    func lostThenAway(status: String) async throws {
        try await Payment.run { payment in
            payment.relay.lose("decide", .losesReply, .answers(status))
            try await payment.expectNotForwarded()
        }
    }

    @Test("A take whose reply is lost, and which is refused when it is asked again, is told as not forwarded")
    func lostThenRefused() async throws {
        try await Payment.run { payment in
            let sessions = Sessions(payment.alone.engine.server.context)
            let begun = try #require(try await sessions.live(token: Secret(payment.session)))
            payment.relay.lose("decide", .losesReplyAnd { _ = try? await sessions.end(id: begun.id) })
            #expect(try await payment.send().status == 401)
            await payment.alone.waitUntilHeard()
            #expect(try await payment.recorded() == "notForwarded")
            #expect(payment.forwarded.isEmpty)
        }
    }

    @Test(
        "A take whose reply is lost, and which cannot be read when it is asked again, is told as not forwarded",
        arguments: ["400 Bad Request", "409 Conflict", "413 Too Large", "415 Unsupported"])
    func lostThenUnreadable(status: String) async throws {
        try await Payment.run { payment in
            payment.relay.lose("decide", .losesReply, .answers(status))
            let answer = try await payment.send()
            #expect(answer.status >= 400)
            #expect(try await payment.outcome() == ["state": "notForwarded"])
            #expect(payment.forwarded.isEmpty)
        }
    }

    @Test("A question is asked no second time once the engine would not repeat its answer")
    func tooLate() async throws {
        try await Payment.run { payment in
            let before = payment.relay.count("decide")
            let clock = payment.alone.engine.clock
            payment.relay.lose(
                "decide", .losesReplyAnd { clock.advance(by: TimeInterval(TransactionAttempt.repetition)) })
            let reply = try await payment.send()
            #expect(reply.status == 503 && reply.json["code"] == "outcomeUnknown")
            #expect(payment.relay.count("decide") == before + 1)
            #expect(try await payment.outcome() == ["state": "notForwarded"])
        }
    }

    @Test("A question that never arrives spends nothing: the same request with the same transaction is good later")
    func requestsLost() async throws {
        try await Payment.run { payment in
            payment.relay.lose("decide", .losesRequest, .losesRequest)
            let answer = try await payment.send()
            #expect(answer.status == 503)
            await payment.alone.waitUntilHeard()
            #expect(try await payment.send().status == 201)
            #expect(payment.forwarded.count == 1)
        }
    }

    @Test("The engine hears an outcome in the end, however often the report or its reply is lost")
    func outcomeLost() async throws {
        try await Payment.run { payment in
            payment.relay.lose(
                "outcome", .losesRequest, .answers("503 Busy"), .losesReply, .losesReply, .answers("500 Oops"))
            #expect(try await payment.send().status == 201)
            #expect(try await payment.outcome() == ["state": "answered", "status": 201])
            #expect(payment.relay.count("outcome") == 6)
            let records = try await payment.alone.engine.audit(payment.id).filter { $0.event == .transactionOutcome }
            #expect(records.count == 1)
        }
    }

    @Test("An outcome that the engine has not heard is told when the gateway ends")
    func shutdown() async throws {
        // A busy machine may need longer than the usual seconds to tell.
        try await Payment.run(configuring: { $0.reportingSeconds = Patience.seconds }) { payment in
            payment.relay.lose("outcome", .answers("503 Busy"))
            let answer = try await payment.send()
            #expect(answer.status == 201)
            await payment.relay.calls.wait { $0.last == "outcome" }
            await payment.alone.shutDown()
            #expect(try await payment.recorded() == "answered")
        }
    }

    @Test("A gateway that ends before it has told: after ten minutes the engine says that nobody knows")
    func neverTold() async throws {
        try await Payment.run { payment in
            payment.relay.lose("outcome", .losesRequest, .losesRequest, .losesRequest, .losesRequest, .losesRequest)
            #expect(try await payment.send().status == 201)
            await payment.relay.calls.wait { $0.last == "outcome" }
            await payment.alone.shutDown()
            let engine = payment.alone.engine
            let transactions = Transactions(engine.server.context)
            engine.clock.advance(by: TimeInterval(Transactions.forwardingLimit - 1))
            #expect(try await transactions.recordLostOutcomes() == 0)
            engine.clock.advance(by: 2)
            _ = try await transactions.recordLostOutcomes()
            #expect(try await payment.recorded() == "unknown")
            #expect(payment.forwarded.count == 1)
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
