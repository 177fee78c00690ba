import AssentCore
import AssentEnforcement
import AssentServer
import AssentTesting
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import NIOCore
import Testing

@testable import AssentEngine
@testable import AssentHummingbird

@Suite("A service's own door takes access tokens, which the engine verifies")
struct ServiceDoorTests {
    /// A service behind the middleware, which asks the fixture's engine as the client `edge`.
    private final class Service: Sendable {
        static let origin = "https://localhost:9543"

        let fixture: ServerFixture
        let reporting: OutcomeReporting
        /// What the handlers were called with.
        let calls = Locked<[EnforcedAccess]>([])
        /// How many questions were asked, and how many of the next answers are lost.
        let questions: Locked<Int>
        let lostAnswers: Locked<Int>
        private let engine: EnforcementClient

        init(_ fixture: ServerFixture) throws {
            let (questions, lostAnswers) = (Locked(0), Locked(0))
            let transport = InMemoryTransport { exchange in
                let path = exchange.request.path ?? ""
                let answer = try await fixture.send(
                    "POST", fixture.root(path), exchange.request.headerFields.map { ($0.name.rawName, $0.value) },
                    body: exchange.body)
                if path.hasSuffix("/decide") {
                    questions.withLock { $0 += 1 }
                    let isLost = lostAnswers.withLock { lost in
                        defer { lost = max(0, lost - 1) }
                        return lost > 0
                    }
                    if isLost { throw HTTPTransportError(.connectionClosed, "Cut.", mayHaveHadEffect: true) }
                }
                return .json(answer.status, answer.json)
            }
            let server = try PolicyServer(fixture.endpoints.server, realm: "alpha")
            let account = ClientAccount(
                server, clientID: "edge", secret: Secret(FixtureConfiguration.clientSecret), transport: transport,
                clock: fixture.clock)
            self.fixture = fixture
            (self.questions, self.lostAnswers) = (questions, lostAnswers)
            engine = EnforcementClient(server, credentials: account, transport: transport, clock: fixture.clock)
            reporting = OutcomeReporting(clock: fixture.clock)
        }

        func send(
            _ method: HTTPRequest.Method, _ target: String, _ fields: [(String, String)],
            binding: BoundContent? = .json, _ change: (inout EnforcedRoute) -> Void = { _ in }
        ) async throws -> TestResponse {
            var route = EnforcedRoute(policySet: "bank")
            change(&route)
            let protected = try PolicyMiddleware<BasicEnforcedContext>(
                engine, route, origin: Self.origin, binding: binding, reporting: reporting)
            let router = Router(context: BasicEnforcedContext.self)
            router.group("accounts").add(middleware: protected).get { _, context in try self.called(context) }
            router.group("nods").add(middleware: protected).post { _, context in try self.called(context) }
            var headers = HTTPFields()
            for (name, value) in fields {
                if let name = HTTPField.Name(name) { headers.append(HTTPField(name: name, value: value)) }
            }
            let all = headers
            let body = method == .post ? ByteBuffer(string: FixtureBody.transfer) : nil
            return try await Application(router: router).test(.router) { client in
                try await client.execute(uri: target, method: method, headers: all, body: body)
            }
        }

        private func called(_ context: BasicEnforcedContext) throws -> Response {
            let access = try context.allowed()
            calls.withLock { $0.append(access) }
            return Response(status: .created)
        }

        /// Pays, with an approval where there is one.
        func pay(
            _ fields: [(String, String)], transaction: String? = nil, binding: BoundContent? = .json
        ) async throws -> TestResponse {
            try await send(
                .post, "/nods" + (transaction.map { "?_txid=" + $0 } ?? ""),
                [("Content-Type", "application/json")] + fields, binding: binding)
        }

        /// A transaction that the user has approved.
        func approved(_ fields: [(String, String)], session: String) async throws -> String {
            let refused = try await pay(fields)
            #expect(refused.status == .unauthorized)
            let challenge = try #require(refused.headers[.wwwAuthenticate])
            let id = try #require(try Advice(challenge: challenge)?.transactionID)
            #expect(try await fixture.approve(id, session: session).status == 200)
            return id
        }

        /// The fields of a request with a token and a proof about it, after a change to what the proof is about.
        func proved(
            _ token: String, by key: ProofKey, _ change: (inout ProofKey.Subject) -> Void = { _ in }
        ) async throws -> [(String, String)] {
            var subject = ProofKey.Subject(
                url: Self.origin + "/accounts", token: token, nonce: fixture.nonce(of: .gateway),
                issuedAt: fixture.clock.epochSeconds)
            change(&subject)
            return ServerFixture.dpop(token, try await key.proof(subject))
        }
    }

    private static func text(_ reply: TestResponse) -> String {
        String(decoding: reply.body.readableBytesView, as: UTF8.self)
    }

    private static func error(_ reply: TestResponse) throws -> String? {
        try reply.headers[.wwwAuthenticate].map(Challenge.parse)?.first?["error"]
    }

    @Test("Approved with a token, a payment is made once; its handler gets user, claims and scopes, the engine the end")
    func story() async throws {
        try await ServerFixture.run { fixture in
            let service = try Service(fixture)
            let session = try await fixture.session()
            let bearer = ServerFixture.bearer(try await fixture.tokens(session: session).access)
            let id = try await service.approved(bearer, session: session)
            #expect(service.calls.withLock { $0.isEmpty })
            #expect(try await service.pay(bearer, transaction: id).status == .created)
            let again = try await service.pay(bearer, transaction: id)
            #expect(again.status == .conflict)
            #expect(Self.text(again).contains(#""outcome":{"state":"answered","status":201}"#))
            #expect(
                service.calls.withLock { $0 } == [
                    EnforcedAccess(
                        user: EnforcedUser(name: "ana", realm: "/alpha"), transactionID: id,
                        scopes: ["accounts", "openid", "profile"])
                ])
            let claims = try await service.send(.get, "/accounts", ServerFixture.session(session)) {
                $0.claims = ["email"]
            }
            #expect(claims.status == .created)
            #expect(
                service.calls.withLock { $0.last }
                    == EnforcedAccess(
                        user: EnforcedUser(name: "ana", realm: "/alpha"), claims: ["email": ["ana@bank.example"]]))
        }
    }

    @Test("A proof is for the service's own URL, whatever Host says, and for one request")
    func proofs() async throws {
        try await ServerFixture.run { fixture in
            let service = try Service(fixture)
            let (mine, thief) = (try ProofKey(), try ProofKey())
            let token = try await fixture.boundToken(session: try await fixture.session(), to: mine)
            let seen = try await service.proved(token, by: mine)
            #expect(try await service.send(.get, "/accounts", seen).status == .created)
            let evil = [("Host", "evil.example")]
            let another = try await service.proved(token, by: mine)
            for (fields, error) in [
                (seen, "invalid_dpop_proof"), (ServerFixture.bearer(token), "invalid_token"),
                (ServerFixture.dpop(token), "invalid_dpop_proof"),
                (try await service.proved(token, by: thief), "invalid_token"),
                (
                    evil + (try await service.proved(token, by: mine) { $0.url = "https://evil.example/accounts" }),
                    "invalid_dpop_proof"
                ),
                (
                    try await service.proved(token, by: mine) { $0.url = "https://localhost/accounts" },
                    "invalid_dpop_proof"
                ),
                (
                    try await service.proved(token, by: mine) { $0.url = Service.origin + "/nods" },
                    "invalid_dpop_proof"
                ),
                (try await service.proved(token, by: mine) { $0.method = "POST" }, "invalid_dpop_proof"),
                (another + another.filter { $0.0 == "DPoP" }, "invalid_dpop_proof"),
            ] as [([(String, String)], String)] {
                let reply = try await service.send(.get, "/accounts", fields)
                #expect(reply.status == .unauthorized, "\(error)")
                #expect(try Self.error(reply) == error)
            }
            let bare = try await service.send(
                .get, "/accounts", try await service.proved(token, by: mine) { $0.nonce = nil })
            #expect(try Self.error(bare) == "use_dpop_nonce")
            let nonce = try #require(bare.headers[.dpopNonce])
            #expect(bare.headers[.cacheControl]?.contains("no-store") == true)
            #expect(service.calls.withLock { $0.count } == 1)
            let fresh = try await service.proved(token, by: mine) { $0.nonce = nonce }
            #expect(try await service.send(.get, "/accounts", evil + fresh).status == .created)
        }
    }

    @Test("A token that is not good here lets nobody in, and a session beside it does not replace it")
    func refused() async throws {
        try await ServerFixture.run { fixture in
            let service = try Service(fixture)
            let session = try await fixture.session()
            let good = try await fixture.tokens(session: session).access
            let narrow = try await fixture.tokens(session: session, scope: "openid profile").access
            let foreign = try await fixture.tokens(session: session, client: "partner-app").access
            for (fields, status, error) in [
                (ServerFixture.bearer("x"), 401, "invalid_token"),
                (ServerFixture.bearer(foreign), 401, "invalid_token"),
                (ServerFixture.bearer(narrow), 403, "insufficient_scope"),
                (ServerFixture.session(session) + ServerFixture.bearer("x"), 401, "invalid_token"),
                (ServerFixture.bearer(good) + ServerFixture.bearer(good), 401, "invalid_token"),
            ] as [([(String, String)], Int, String)] {
                let reply = try await service.send(.get, "/accounts", fields) { $0.scopes = ["accounts"] }
                #expect(reply.status.code == status, "\(error)")
                #expect(try Self.error(reply) == error)
            }
            let itself = try await EnforcementDoor(fixture, "edge").token
            let kind = try await service.send(.get, "/accounts", ServerFixture.bearer(itself))
            #expect(kind.status == .forbidden)
            let keyed = try await service.send(.get, "/accounts", ServerFixture.bearer(good)) {
                $0.isSenderConstrained = true
            }
            #expect(keyed.status == .unauthorized)
            #expect(service.calls.withLock { $0.isEmpty })

            #expect(try await service.send(.get, "/accounts", ServerFixture.bearer(good)).status == .created)
            try await fixture.signOut(session)
            let ended = try await service.send(.get, "/accounts", ServerFixture.bearer(good))
            #expect(ended.status == .unauthorized)
            #expect(service.calls.withLock { $0.count } == 1)
        }
    }

    @Test(
        "Who names nobody is to sign in, and the engine is not asked",
        arguments: [[], [("Authorization", "Basic YTpi")], [("DPoP", "a.b.c")], [("Cookie", "iPlanetDirectoryPro=x")]]
            as [[(String, String)]])
    func nobody(_ fields: [(String, String)]) async throws {
        try await ServerFixture.run { fixture in
            let service = try Service(fixture)
            let reply = try await service.send(.get, "/accounts", fields)
            #expect(reply.status == .unauthorized)
            #expect(reply.headers[.wwwAuthenticate]?.hasPrefix(#"SSOADVICE realm="/alpha",am_uri="#) == true)
            #expect(service.questions.withLock { $0 } == 0)
        }
    }

    @Test("A policy that binds content which the service does not read denies, and takes nothing")
    func unbound() async throws {
        try await ServerFixture.run { fixture in
            let service = try Service(fixture)
            let session = try await fixture.session()
            let bearer = ServerFixture.bearer(try await fixture.tokens(session: session).access)
            let id = try await service.approved(bearer, session: session)
            #expect(try await service.pay(bearer, binding: nil).status == .forbidden)
            #expect(try await service.pay(bearer, transaction: id, binding: nil).status == .forbidden)
            #expect(service.calls.withLock { $0.isEmpty })
            #expect(try await service.pay(bearer, transaction: id).status == .created)
        }
    }

    @Test("An answer that is lost once spends nothing; lost twice, nothing is carried out, and the engine hears that")
    func lost() async throws {
        try await ServerFixture.run { fixture in
            let service = try Service(fixture)
            let session = try await fixture.session()
            let bearer = ServerFixture.bearer(try await fixture.tokens(session: session).access)
            let first = try await service.approved(bearer, session: session)
            service.lostAnswers.withLock { $0 = 1 }
            #expect(try await service.pay(bearer, transaction: first).status == .created)
            // Two payments that look alike within five seconds would share a transaction.
            fixture.clock.advance(by: 6)
            let second = try await service.approved(bearer, session: session)
            service.lostAnswers.withLock { $0 = 2 }
            let reply = try await service.pay(bearer, transaction: second)
            #expect(reply.status == .serviceUnavailable)
            #expect(Self.text(reply).contains(#""code":"outcomeUnknown","forwarded":"no""#))
            await service.reporting.finish()
            let again = try await service.pay(bearer, transaction: second)
            #expect(again.status == .conflict)
            #expect(Self.text(again).contains(#""outcome":{"state":"notForwarded"}"#))
            #expect(service.calls.withLock { $0.count } == 1)
        }
    }

    @Test("A service and the engine have the same lists and times")
    func same() {
        #expect(TokenChallenge.algorithms == SenderProofs.algorithms.map(\.rawValue).joined(separator: " "))
        #expect(EnforcementBounds.repetitionSeconds == TransactionAttempt.repetition)
    }
}
