import AssentCore
import AssentTesting
import HTTPTypes
import Hummingbird
import NIOCore
import Testing

@testable import AssentEngine
@testable import AssentServer

/// Changes what rows say, one thing at a time, in all tables, and sees the answer change. The handlers only say that
/// they were reached, and by whom: the row alone decides.
@Suite("A route's row binds", .server)
struct RowBindingTests {
    @Test("Who may call is what the row says, whichever rule it has", arguments: RowBench.Table.allCases)
    func callers(table: RowBench.Table) async throws {
        let bench = try await RowBench(try #require(ServerFixture.shared))
        for var rule in table.rules {
            for (changed, answers) in RowBench.callers {
                rule.caller = changed
                for (credential, expected) in zip(RowBench.Credential.allCases, answers) {
                    let response = try await bench.send(
                        rule, of: table, method: rule.methods?.first ?? .get, bench.fields(credential))
                    #expect(
                        bench.outcome(response) == expected, "\(rule.path), \(changed), \(credential)")
                }
            }
        }
    }

    @Test("The methods are those of the row, and others hear which", arguments: RowBench.Table.allCases)
    func methods(table: RowBench.Table) async throws {
        let bench = try await RowBench(try #require(ServerFixture.shared))
        for var rule in table.rules {
            rule.caller = .anyone
            let before = rule.methods?.first ?? .get
            #expect(try await bench.send(rule, of: table, method: before).status == .accepted, "\(rule.path)")
            rule.methods = [.patch]
            let refused = try await bench.send(rule, of: table, method: before)
            #expect(refused.status == .methodNotAllowed && refused.headers[.allow] == "PATCH", "\(rule.path)")
            #expect(try await bench.send(rule, of: table, method: .patch).status == .accepted, "\(rule.path)")
        }
    }

    @Test("A wrong method is told before a missing caller, at every interface", arguments: RowBench.Table.allCases)
    func order(table: RowBench.Table) async throws {
        let bench = try await RowBench(try #require(ServerFixture.shared))
        for var rule in table.rules {
            rule.caller = .session(foreign: .forbidden)
            rule.methods = [.patch]
            rule.cookie = .used
            let wrong = try await bench.send(rule, of: table, method: .put, bench.cookie)
            #expect(wrong.status == .methodNotAllowed, "\(rule.path)")
            #expect(try await bench.send(rule, of: table, method: .patch, bench.cookie).status == .forbidden)
            #expect(try await bench.send(rule, of: table, method: .patch).status == .unauthorized, "\(rule.path)")
        }
    }

    @Test("A body is as large as the row says", arguments: RowBench.Table.allCases)
    func bodies(table: RowBench.Table) async throws {
        let bench = try await RowBench(try #require(ServerFixture.shared))
        for var rule in table.rules {
            rule.caller = .anyone
            rule.bodyLimit = 4
            let method = rule.methods?.first ?? .get
            #expect(try await bench.send(rule, of: table, method: method, body: 4).status == .accepted)
            #expect(try await bench.send(rule, of: table, method: method, body: 5).status == .contentTooLarge)
            rule.bodyLimit = 5
            #expect(try await bench.send(rule, of: table, method: method, body: 5).status == .accepted)
        }
    }

    @Test("What a foreign page may send is what the row says of the cookie", arguments: RowBench.Table.allCases)
    func cookies(table: RowBench.Table) async throws {
        let bench = try await RowBench(try #require(ServerFixture.shared))
        let foreign = [(HTTPField.Name.origin, "https://elsewhere.example")]
        for var rule in table.rules {
            rule.caller = .anyone
            rule.methods = [.post]
            // With the cookie alone; from a foreign page without the cookie; with the field that no page adds.
            for (changed, answers) in [
                (RouteRule.CookieRule.unguarded, [202, 202, 202]), (.used, [403, 202, 202]), (.given, [403, 403, 202]),
            ] {
                rule.cookie = changed
                for (fields, status) in zip([bench.cookie, foreign, bench.cookie + bench.requested], answers) {
                    let response = try await bench.send(rule, of: table, method: .post, fields)
                    #expect(response.status.code == status, "\(rule.path), \(changed), \(fields)")
                }
            }
        }
    }

    @Test("Who may read an answer is what the row says", arguments: RowBench.Table.allCases)
    func origins(table: RowBench.Table) async throws {
        let bench = try await RowBench(try #require(ServerFixture.shared))
        let listed = "https://app.bank.example"
        let asks = [(HTTPField.Name.accessControlRequestMethod, "PATCH")]
        for var rule in table.rules {
            rule.caller = .anyone
            rule.methods = [.patch]
            rule.cookie = .unguarded
            for (changed, toListed, toOthers) in [
                (RouteRule.CrossOriginRule.sameOrigin, String?.none, String?.none),
                (.listedOriginsForSessionChecks, nil, nil), (.listedOrigins, listed, nil), (.everyOrigin, listed, "*"),
            ] {
                rule.crossOrigin = changed
                for (origin, expected) in [(listed, toListed), ("https://elsewhere.example", toOthers)] {
                    let field = [(HTTPField.Name.origin, origin)]
                    let read = try await bench.send(rule, of: table, method: .patch, field)
                    #expect(read.headers[.accessControlAllowOrigin] == expected, "\(rule.path), \(changed), \(origin)")
                    let preflight = try await bench.send(rule, of: table, method: .options, field + asks)
                    #expect(
                        preflight.status == (expected == nil ? .methodNotAllowed : .noContent),
                        "\(rule.path), \(changed), \(origin)")
                }
            }
        }
    }

    @Test("A session check is read by listed pages, and nothing else of its route is")
    func sessionChecks() async throws {
        let bench = try await RowBench(try #require(ServerFixture.shared))
        let rule = RouteRule(
            "authorize", methods: [.get], caller: .anyone, cookie: .unguarded,
            crossOrigin: .listedOriginsForSessionChecks)
        let field = [(HTTPField.Name.origin, "https://app.bank.example")]
        for (query, isRead) in [("?response_type=none", true), ("?response_type=code", false), ("", false)] {
            let response = try await bench.send(rule, of: .oauth, method: .get, field, query: query)
            #expect((response.headers[.accessControlAllowOrigin] != nil) == isRead, "\(query)")
        }
    }
}

/// Runs rows of the four tables with handlers that say who reached them.
struct RowBench {
    /// The tables of the server.
    enum Table: CaseIterable {
        case json, oauth, signing, enforcement

        /// Its rows.
        var rules: [RouteRule] {
            switch self {
            case .json: RouteTable.json.map(\.rule)
            case .oauth: RouteTable.oauth.map(\.rule)
            case .signing: RouteTable.signing.map(\.rule)
            case .enforcement: RouteTable.enforcement.map(\.rule)
            }
        }
    }

    /// What a request says who sends it.
    enum Credential: CaseIterable {
        case none, unknownSession, session, foreignSession, badToken, userToken, clientToken, scopelessToken,
            publicToken
    }

    /// What a credential of each kind is answered by each rule, in the order of ``Credential``.
    static let callers: [(RouteRule.CallerRule, [String])] = [
        (.anyone, Array(repeating: "unknown", count: 9)),
        (.client, Array(repeating: "unknown", count: 9)),
        (.device, Array(repeating: "unknown", count: 9)),
        (.optionalSession, ["unknown", "unknown", "session"] + Array(repeating: "unknown", count: 6)),
        (.session(foreign: .unauthorized), ["401", "401", "session", "401", "401", "401", "403", "403", "401"]),
        (.session(foreign: .forbidden), ["401", "401", "session", "403", "401", "401", "403", "403", "401"]),
        (.accessToken, ["401", "401", "401", "401", "401", "token", "403", "403", "token"]),
        (.confidentialClient(scope: "signing"), ["401", "401", "401", "401", "401", "403", "client", "401", "403"]),
        (
            .ifAuthorized(.confidentialClient(scope: "signing"), otherwise: .session(foreign: .unauthorized)),
            ["401", "401", "session", "401", "401", "403", "client", "401", "403"]
        ),
    ]

    /// The session's cookie, without a field that only a page of ours could add.
    let cookie: [(HTTPField.Name, String)]

    /// The field that a page of another site cannot add unasked.
    let requested = [(HTTPField.Name.requestedWith, "test")]

    private let credentials: [Credential: (HTTPField.Name, String)]
    private let fixture: ServerFixture
    private let json: JSONWire
    private let oauth: OAuthWire
    private let signing: SigningWire
    private let enforcement: EnforcementWire
    private let desk: EnforcementDesk
    private let provider: OAuthProvider
    private let issuer: SigningProvider
    private let check: CallerCheck
    private let origins: WebOrigins

    init(_ fixture: ServerFixture) async throws {
        self.fixture = fixture
        let context = fixture.server.context
        let configuration = try ServerConfiguration.parse(
            FixtureConfiguration.yaml(upstream: 1, refusing: 2), file: fixture.directory + "/assent.yaml")
        let realm = try #require(configuration.realms.first { $0.name == "/alpha" })
        provider = try OAuthProvider(
            context, keys: ServerKeys(context),
            configuration: OAuthProviderConfiguration(
                realm: realm.name, issuer: fixture.oauth("").dropLast().description, clients: realm.clients,
                contexts: realm.contexts, scopeTexts: realm.scopeTexts))
        var settings = try #require(realm.signing)
        settings.issuer = SigningIssuer(name: fixture.signing("").dropLast().description, realm: realm.name)
        issuer = SigningProvider(context, settings: settings)
        let cookie = SessionCookie(name: ServerFixture.cookieName)
        check = CallerCheck(
            callers: Callers(
                sessions: Sessions(context), providers: [realm.name: provider], proofs: SenderProofs(context)),
            cookie: cookie, clients: [realm.name: provider], origin: fixture.root(""))
        origins = WebOrigins(configuration.realms, own: try Origin(fixture.root("")))
        json = JSONWire(logger: context.logger)
        oauth = OAuthWire(design: configuration.pages, basePath: "/am")
        signing = SigningWire(logger: context.logger)
        enforcement = EnforcementWire(logger: context.logger)
        desk = EnforcementDesk(
            realm.enforcement,
            access: RemoteAccess(
                GatewayAccess(
                    callers: check.callers,
                    settlement: AccessSettlement(
                        context, decisions: PolicyDecisionPoint(policySets: realm.policySets),
                        transactions: Transactions(context)), keys: ServerKeys(context))))

        let session = try await fixture.session("ana")
        self.cookie = [(.cookie, "\(ServerFixture.cookieName)=\(session)")]
        let field = try #require(cookie.fieldName)
        func bearer(_ token: String) -> (HTTPField.Name, String) { (.authorization, "Bearer \(token)") }
        let shop = SigningOverHTTP(fixture)
        let kiosk = try await fixture.tokens(session: session, scope: "openid signing", client: "kiosk").access
        credentials = [
            .unknownSession: (field, "nobody"), .session: (field, session),
            .foreignSession: (field, try await fixture.session("bob", realm: "beta")), .badToken: bearer("x"),
            .userToken: bearer(try await fixture.tokens(session: session).access),
            .clientToken: bearer(try await shop.shop()),
            .scopelessToken: bearer(try await shop.shop(scope: "accounts")), .publicToken: bearer(kiosk),
        ]
    }

    /// The fields of a credential.
    func fields(_ credential: Credential) -> [(HTTPField.Name, String)] {
        requested + (credentials[credential].map { [$0] } ?? [])
    }

    /// Who reached the handler, or why nobody did.
    func outcome(_ response: Response) -> String {
        if let caller = response.headers[.from] { return caller }
        // One interface tells a missing scope by 403, as RFC 6750 §3.1 has it.
        if response.headers[.wwwAuthenticate]?.contains("insufficient_scope") == true { return "401" }
        return response.status == .unauthorized ? "401" : "\(response.status.code)"
    }

    /// Sends a request to a row that may have been changed.
    func send(
        _ rule: RouteRule, of table: Table, method: HTTPRequest.Method, _ fields: [(HTTPField.Name, String)] = [],
        query: String = "", body: Int = 0
    ) async throws -> Response {
        let path = "/realms/root/realms/alpha/" + rule.path.replacing("{id}", with: "x")
        var head = HTTPRequest(method: method, scheme: "https", authority: "localhost", path: path + query)
        for (name, value) in fields { head.headerFields.append(HTTPField(name: name, value: value)) }
        let request = Request(head: head, body: RequestBody(buffer: ByteBuffer(repeating: 0x20, count: body)))
        switch table {
        case .json: return try await run(json, provider, rule, request, path)
        case .oauth: return try await run(oauth, provider, rule, request, path)
        case .signing: return try await run(signing, issuer, rule, request, path)
        case .enforcement: return try await run(enforcement, desk, rule, request, path)
        }
    }

    private func run<Wire: RouteWire>(
        _ wire: Wire, _ service: Wire.Service, _ rule: RouteRule, _ request: Request, _ path: String
    ) async throws -> Response {
        let route = Route<Bool, Wire.Service>(rule) { _, call in
            _ = try await call.body()
            let caller =
                switch call.caller {
                case .unknown: "unknown"
                case .session: "session"
                case .accessToken: "token"
                case .confidentialClient: "client"
                }
            return Response(status: .accepted, headers: [.from: caller])
        }
        let runner = RouteRunner(
            wire, [route], handlers: true, services: ["/alpha": service], callers: check, origins: origins)
        return try await runner.respond(to: request, path: path, from: ClientAddress(nil))
    }
}
