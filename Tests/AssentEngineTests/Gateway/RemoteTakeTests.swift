import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import TestSupport
import Testing

@testable import AssentEngine

@Suite("A gateway elsewhere takes a transaction")
struct RemoteTakeTests {
    @Test("It is made from the whole body, taken by the digest, and on record as forwarded in the same statement")
    func story() async throws {
        let fixture = try await RemoteFixture()
        let id = try await fixture.approved()
        let sent = RemoteFixture.taking(id)
        #expect(try await fixture.decide(sent).word == "granted once")
        #expect(try await fixture.outcome(id) == .forwarded)
        #expect(try await fixture.audited(.transactionTake, id) == ["success -"])
        #expect(try await fixture.conclude(id, sent, .answered(status: 201)) == .recorded)
        #expect(try await fixture.outcome(id) == .answered(status: 201))
        #expect(try await fixture.audited(.transactionOutcome, id) == ["success -"])
        #expect(
            try await fixture.decide(RemoteFixture.taking(id)).word == "taken before: answered(status: 201)")
    }

    @Test("The whole body takes as its digest does, and another body's digest takes nothing")
    func otherBody() async throws {
        let fixture = try await RemoteFixture()
        let id = try await fixture.approved()
        let refused = "denied: transaction(AssentEngine.TransactionRefusal.body)"
        #expect(try await fixture.decide(RemoteFixture.taking(id, body: [1])).word == refused)
        var whole = RemoteFixture.taking(id)
        whole.content = .whole([1])
        #expect(try await fixture.decide(whole).word == refused)
        whole.content = .whole(RemoteFixture.body)
        #expect(try await fixture.decide(whole).word == "granted once")
    }

    @Test("The same question has the same answer for half a minute, and is taken once")
    func repeated() async throws {
        let fixture = try await RemoteFixture()
        let id = try await fixture.approved()
        let sent = RemoteFixture.taking(id)
        #expect(try await fixture.decide(sent).word == "granted once")
        for seconds in [0, 1, Double(TransactionAttempt.repetition) - 1] {
            fixture.provider.clock.advance(by: seconds)
            #expect(try await fixture.decide(sent).word == "granted once", "\(seconds)")
        }
        #expect(try await fixture.audited(.transactionTake, id) == ["success -"])
        fixture.provider.clock.advance(by: 1)
        #expect(try await fixture.decide(sent).word == "taken before: forwarded")
        let audited = try await fixture.audited(.transactionTake, id)
        #expect(Set(audited) == ["success -", "refused taken"])
    }

    @Test("Anything else than the same question of the same client is another request")
    func others() async throws {
        let fixture = try await RemoteFixture()
        let id = try await fixture.approved()
        let sent = RemoteFixture.taking(id)
        #expect(try await fixture.decide(sent).word == "granted once")
        var attempt = sent
        attempt.attempt = SystemRandom().token(byteCount: 16)
        var question = sent
        question.question = "another question"
        var client = sent
        client.client = "edge-two"
        for other in [attempt, question, client] {
            #expect(try await fixture.decide(other).word == "taken before: forwarded")
        }
        var body = sent
        body.content = .digest(SHA2.sha256([1]))
        #expect(try await fixture.decide(body).word == "denied: transaction(AssentEngine.TransactionRefusal.body)")
        var group = sent
        group.group = "shop"
        #expect(try await fixture.decide(group).word == "denied: transaction(AssentEngine.TransactionRefusal.maker)")
        // The control.
        #expect(try await fixture.decide(sent).word == "granted once")
    }

    @Test("What one door has asked for no other one takes: another group, the gateway, an enforcement point")
    func doors() async throws {
        let fixture = try await RemoteFixture()
        let id = try await fixture.approved()
        var other = RemoteFixture.taking(id)
        other.group = "shop"
        #expect(try await fixture.decide(other).word == "denied: transaction(AssentEngine.TransactionRefusal.maker)")
        let session = fixture.provider.session
        for maker in [TransactionMaker.gateway, .caller(session.user.id), .caller("edge"), .group("edge ")] {
            let binding = try #require(
                TransactionBinding(
                    try TransactionFixture.policySet(), try TransactionFixture.policy(),
                    TransactionCondition(specifier: "Confirm"),
                    resource: try CanonicalResource(RemoteFixture.transfers), content: TransactionFixture.content,
                    presented: PresentedSession(session), maker: maker))
            #expect(try await fixture.transactions.take(id: id, binding: binding).refusal == .maker, "\(maker)")
        }
        #expect(try await fixture.decide(RemoteFixture.taking(id)).word == "granted once")
    }

    @Test("Makers are stored as texts that are not another maker's", arguments: ["edge", "gateway", "caller x", ""])
    func makers(name: String) {
        let makers = [TransactionMaker.gateway, .group(name), .caller(name)]
        #expect(Set(makers.map(\.text)).count == 3)
        for maker in makers { #expect(TransactionMaker(stored: maker.text) == maker) }
    }

    @Test("Of 200 that take at once one is granted, and each other one is told that it was taken", arguments: [200])
    func race(tasks: Int) async throws {
        let fixture = try await RemoteFixture()
        let id = try await fixture.approved()
        let words = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<tasks {
                group.addTask { try await fixture.decide(RemoteFixture.taking(id)).word }
            }
            return try await group.reduce(into: [String]()) { $0.append($1) }
        }
        #expect(words.filter { $0 == "granted once" }.count == 1)
        #expect(words.filter { $0 == "taken before: forwarded" }.count == tasks - 1)
        let audited = try await fixture.audited(.transactionTake, id)
        #expect(audited.filter { $0 == "success -" }.count == 1)
    }

    @Test("Two nodes on one database grant one attempt once, and each repeats the answer")
    func nodes() async throws {
        let fixture = try await RemoteFixture()
        let second = try await fixture.provider.secondNode()
        let callers = Callers(
            sessions: Sessions(second.context), providers: ["/alpha": second], proofs: SenderProofs(second.context))
        let other = try RemoteFixture.access(fixture.provider, callers, Transactions(second.context))
        let id = try await fixture.approved()
        let sent = RemoteFixture.taking(id)
        #expect(try await fixture.decide(sent).word == "granted once")
        #expect(try await other.decide(try fixture.inquiry(sent)).word == "granted once")
        #expect(try await other.decide(try fixture.inquiry(RemoteFixture.taking(id))).word == "taken before: forwarded")
        let audited = try await fixture.audited(.transactionTake, id)
        #expect(audited.filter { $0 == "success -" }.count == 1)
    }

    @Test("A spent proof is not asked for again by the same question, and by no other one")
    func spentProof() async throws {
        let fixture = try await RemoteFixture()
        let (provider, owner) = (fixture.provider, try await KeyOwner(fixture))
        let (session, sent) = (owner.session, owner.sent)
        // What is asked for a body spends no proof.
        var making = try await sent(nil)
        #expect(try await fixture.decide(making).word == "needs whole body")
        making.content = .whole(RemoteFixture.body)
        let id = try #require(try await fixture.decide(making).transaction)
        #expect(try await fixture.decide(making).word == "refused: invalid_dpop_proof")
        try await fixture.approve(id, session)

        var taking = try await sent(id)
        #expect(try await fixture.decide(taking).word == "needs digest")
        taking.content = .digest(SHA2.sha256(RemoteFixture.body))
        #expect(try await fixture.decide(taking).word == "granted once")
        #expect(try await fixture.decide(taking).word == "granted once")
        var other = taking
        other.question = "another question"
        #expect(try await fixture.decide(other).word == "refused: invalid_dpop_proof")
        _ = try await Sessions(provider.context).end(id: session.id)
        #expect(try await fixture.decide(taking).word != "granted once")
    }

    @Test("The same question with its proof, while the first is on its way to its take, waits for it and is granted")
    func overtaken() async throws {
        let fixture = try await RemoteFixture()
        let owner = try await KeyOwner(fixture)
        var making = try await owner.sent(nil)
        making.content = .whole(RemoteFixture.body)
        let id = try #require(try await fixture.decide(making).transaction)
        try await fixture.approve(id, owner.session)
        var taking = try await owner.sent(id)
        taking.content = .digest(SHA2.sha256(RemoteFixture.body))
        let sent = taking
        let (isTaking, mayTake) = (Watched(false), Watched(false))
        let context = fixture.provider.context
        let slow = EngineContext(
            database: InterruptedDatabase(context.database) { statement in
                guard statement.sql.text().contains("state = 'TAKEN'") else { return false }
                isTaking.update { $0 = true }
                await mayTake.wait { $0 }
                return true
            }, clock: context.clock, random: context.random, masterKey: context.masterKey, logger: context.logger)
        let access = try RemoteFixture.access(fixture.provider, fixture.callers, Transactions(slow))
        let inquiry = try fixture.inquiry(sent)
        let first = Task {
            defer { isTaking.update { $0 = true } }
            return try await access.decide(inquiry).word
        }
        await isTaking.wait { $0 }
        let isOver = Watched(false)
        let second = Task {
            defer { isOver.update { $0 = true } }
            return try await access.decide(inquiry).word
        }
        while await access.inFlight.waiting == 0, !isOver.value { await Task.yield() }
        mayTake.update { $0 = true }
        #expect(try await first.value == "granted once")
        #expect(try await second.value == "granted once")
        #expect(try await fixture.audited(.transactionTake, id) == ["success -"])
    }

    @Test("Only the client whose attempt took it says what became of it; the same again is heard, another is not")
    func outcomes() async throws {
        let fixture = try await RemoteFixture()
        let id = try await fixture.approved()
        let sent = RemoteFixture.taking(id)
        #expect(try await fixture.conclude(id, sent, .answered(status: 201)) == .unknown)
        #expect(try await fixture.decide(sent).word == "granted once")
        #expect(try await fixture.conclude(id, sent, .answered(status: 201), client: "shop") == .unknown)
        #expect(try await fixture.conclude(id, sent, .answered(status: 201), realm: "/beta") == .unknown)
        #expect(try await fixture.conclude(id, RemoteFixture.taking(id), .answered(status: 201)) == .unknown)
        #expect(try await fixture.conclude("none", sent, .answered(status: 201)) == .unknown)
        #expect(try await fixture.outcome(id) == .forwarded)

        for _ in 1...2 { #expect(try await fixture.conclude(id, sent, .unknown) == .recorded) }
        for _ in 1...2 { #expect(try await fixture.conclude(id, sent, .answered(status: 201)) == .recorded) }
        for other in [UpstreamOutcome.answered(status: 200), .notForwarded, .unknown, .taken, .forwarded] {
            #expect(try await fixture.conclude(id, sent, other) == .contradicted)
        }
        #expect(try await fixture.outcome(id) == .answered(status: 201))
        let audited = try await fixture.audited(.transactionOutcome, id)
        #expect(audited.count == 2 && Set(audited) == ["success -", "failed -"])
        // Nobody repeats an answer whose request has ended.
        #expect(try await fixture.decide(sent).word == "taken before: answered(status: 201)")
    }

    @Test("Of 20 that say different outcomes at once one is heard")
    func contradictions() async throws {
        let fixture = try await RemoteFixture()
        let id = try await fixture.approved()
        let sent = RemoteFixture.taking(id)
        #expect(try await fixture.decide(sent).word == "granted once")
        let heard = try await withThrowingTaskGroup(of: OutcomeReception.self) { group in
            for status in 200..<220 {
                group.addTask { try await fixture.conclude(id, sent, .answered(status: status)) }
            }
            return try await group.reduce(into: [OutcomeReception]()) { $0.append($1) }
        }
        #expect(heard.filter { $0 == .recorded }.count == 1)
        #expect(heard.filter { $0 == .contradicted }.count == 19)
        #expect(try await fixture.audited(.transactionOutcome, id).count == 1)
    }

    @Test("A gateway that is lost leaves an outcome that nobody knows, and a late statement replaces that")
    func lost() async throws {
        let fixture = try await RemoteFixture()
        let id = try await fixture.approved()
        let sent = RemoteFixture.taking(id)
        #expect(try await fixture.decide(sent).word == "granted once")
        fixture.provider.clock.advance(by: Double(Transactions.forwardingLimit) + 1)
        #expect(try await fixture.transactions.recordLostOutcomes() == 1)
        #expect(try await fixture.outcome(id) == .unknown)
        #expect(try await fixture.conclude(id, sent, .unknown) == .recorded)
        #expect(try await fixture.conclude(id, sent, .answered(status: 201)) == .recorded)
        #expect(try await fixture.outcome(id) == .answered(status: 201))
    }

    @Test("The service is told by a signed token who calls, and by which request")
    func identity() async throws {
        let fixture = try await RemoteFixture()
        let id = try await fixture.approved()
        let decided = try await fixture.decide(RemoteFixture.taking(id)) {
            $0.identity = (
                service: ServiceIdentity(audience: "https://pay.internal", claims: ["email"]),
                issuer: RemoteFixture.origin
            )
        }
        let token = try #require(decided.caller?.identity)
        let part = try #require(token.reveal().split(separator: ".").dropFirst().first)
        let claims = try JSONValue.parse(try #require(Base64URL.decode(part)))
        #expect(claims["iss"]?.string == RemoteFixture.origin && claims["aud"]?.string == "https://pay.internal")
        #expect(claims["email"]?.string == "ana@example.org")
        let digest = Base64URL.encode(SHA2.sha256(RemoteFixture.body))
        #expect(claims["txn"]?["id"]?.string == id && claims["txn"]?["body_sha256"]?.string == digest)
        #expect(claims["txn"]?["method"]?.string == "POST")
    }

    @Test("A digest that was sent though no policy binds the body is not told as approved")
    func unboundBody() async throws {
        let fixture = try await RemoteFixture([try TransactionFixture.policy(bind: [.method], display: [])])
        let id = try await fixture.approved()
        let decided = try await fixture.decide(RemoteFixture.taking(id)) {
            $0.identity = (ServiceIdentity(audience: "https://pay.internal", claims: []), RemoteFixture.origin)
        }
        let token = try #require(decided.caller?.identity)
        let part = try #require(token.reveal().split(separator: ".").dropFirst().first)
        let claims = try JSONValue.parse(try #require(Base64URL.decode(part)))
        #expect(claims["txn"]?["id"]?.string == id && claims["txn"]?["body_sha256"] == nil)
    }

    /// Makes the key of the tokens for services useless.
    private static func breakKey(_ fixture: RemoteFixture) async throws {
        _ = try await ServerKeys(fixture.provider.context).publishedIdentityKeys()
        _ = try await fixture.provider.database.run(
            SQLStatement(
                """
                UPDATE server_keys SET sealed_key = \([UInt8](repeating: 0, count: 64))
                WHERE purpose = 'gateway_identity'
                """,
                expecting: .exactly(1)))
    }

    /// Asks with a token for the service.
    private static func decideNamed(
        _ sent: RemoteFixture.Sent, _ fixture: RemoteFixture
    ) async throws -> RemoteDecision {
        try await fixture.decide(sent) {
            $0.identity = (ServiceIdentity(audience: "https://pay.internal", claims: []), RemoteFixture.origin)
        }
    }

    @Test("Where nothing can be signed nothing is granted, and the gateway says that nothing was forwarded")
    func unsigned() async throws {
        let fixture = try await RemoteFixture()
        let id = try await fixture.approved()
        try await Self.breakKey(fixture)
        let sent = RemoteFixture.taking(id)
        for _ in 1...2 {
            let decided = try await Self.decideNamed(sent, fixture)
            #expect(decided.word == "denied: outcomeUnknown" && decided.caller?.identity == nil)
        }
        #expect(try await fixture.conclude(id, sent, .notForwarded) == .recorded)
        #expect(try await fixture.outcome(id) == .notForwarded)
        // It stays so, also where the same question, which could be answered now, comes again.
        for again in [sent, RemoteFixture.taking(id)] {
            #expect(try await fixture.decide(again).word == "taken before: notForwarded")
        }
    }

    @Test("An answer that cannot be signed does not say that nothing was forwarded: another node may have granted it")
    func unsignedElsewhere() async throws {
        let fixture = try await RemoteFixture()
        let id = try await fixture.approved()
        try await Self.breakKey(fixture)
        let sent = RemoteFixture.taking(id)
        // A question is answered at a second node, while its first sending is late at one that cannot sign.
        #expect(try await fixture.decide(sent).word == "granted once")
        #expect(try await Self.decideNamed(sent, fixture).word == "denied: outcomeUnknown")
        #expect(try await fixture.outcome(id) == .forwarded)
        #expect(try await fixture.conclude(id, sent, .answered(status: 201)) == .recorded)
        #expect(try await fixture.outcome(id) == .answered(status: 201))
    }
}

/// A user's session that belongs to a key, and requests with proofs of that.
private struct KeyOwner: Sendable {
    let session: LiveSession
    private let token: Secret
    private let key: any SigningKey
    private let context: EngineContext
    private let clock: ManualClock

    init(_ fixture: RemoteFixture) async throws {
        let provider = fixture.provider
        (context, clock) = (provider.context, provider.clock)
        key = try SoftwareSigningKey.generate(.es256)
        let thumbprint = try JWK(publicKeyInfo: key.publicKeyInfo).thumbprint
        token = try await Sessions(context).begin(
            userID: provider.user.id, realm: "/alpha", limits: SessionLimits(), sender: .key(thumbprint: thumbprint)
        ).token
        session = try #require(try await Sessions(context).live(token: token))
    }

    func sent(_ transaction: String?) async throws -> RemoteFixture.Sent {
        let proof = try await DPoPProof.make(
            method: "POST", uri: RemoteFixture.transfers, accessToken: token,
            nonce: SenderProofs(context).nonce(of: .gateway), key: key, clock: clock)
        var sent = RemoteFixture.Sent()
        sent.session = token
        sent.proof = PresentedProof(fields: [proof], method: "POST", url: RemoteFixture.transfers, server: .gateway)
        sent.transaction = transaction
        return sent
    }
}
