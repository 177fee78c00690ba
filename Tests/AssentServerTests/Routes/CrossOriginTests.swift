import AssentCore
import Testing

@testable import AssentEngine
@testable import AssentServer

/// Pages of other origins, at every door: those that are listed may do what the operator's own pages may, others get
/// nothing.
@Suite("Pages of other origins", .server)
struct CrossOriginTests {
    private static let listed = "https://app.bank.example"
    private static let form = ("Content-Type", "application/x-www-form-urlencoded")

    /// What a browser may say of a page that is not listed; a browser never sends two fields.
    private static let others: [[(String, String)]] = [
        [], [("Origin", "https://evil.example")], [("Origin", "null")], [("Origin", "")],
        [("Origin", "https://app.bank.example.evil.example")], [("Origin", "http://app.bank.example")],
        [("Origin", "https://app.bank.example:8443")], [("Origin", "https://APP.bank.example")],
        [("Origin", listed), ("Origin", "https://evil.example")], [("Origin", listed + ", https://evil.example")],
    ]

    /// The fields that the vendor's SDK and ours add.
    private static let fields: Set = [
        "accept-api-version", "authorization", "content-type", "dpop", "idempotency-key", "iplanetdirectorypro",
        "x-authenticate-response", "x-idtoken", "x-requested-platform", "x-requested-with", "x-tree", "x-txid",
    ]

    /// One way in.
    struct Door: Sendable, CustomTestStringConvertible {
        let method: String
        let url: @Sendable (ServerFixture) -> String
        let name: String
        /// Whether pages of all origins may read it without credentials.
        var isOpen = false

        var testDescription: String { "\(method) \(name)" }

        static func json(_ method: String, _ path: String) -> Door {
            Door(method: method, url: { $0.json(path) }, name: "/json " + path)
        }
        static func oauth(_ method: String, _ path: String, isOpen: Bool = false) -> Door {
            Door(method: method, url: { $0.oauth(path) }, name: "/oauth2 " + path, isOpen: isOpen)
        }
        static func gateway(_ method: String, _ path: String) -> Door {
            Door(method: method, url: { $0.gateway(path) }, name: "gateway " + path)
        }
    }

    private static let doors: [Door] = [
        .json("POST", "authenticate"), .json("POST", "sessions?_action=validate"),
        .json("POST", "sessions/?_action=logout"), .json("POST", "policies?_action=evaluate"),
        .json("POST", "administration?_action=setActive"), .json("GET", "audit"), .json("GET", "serverinfo/*"),
        .oauth("POST", "access_token", isOpen: true), .oauth("POST", "token/revoke", isOpen: true),
        .oauth("GET", "userinfo", isOpen: true), .oauth("POST", "userinfo", isOpen: true),
        .oauth("GET", "connect/endSession"), .oauth("POST", "connect/endSession"),
        .oauth("GET", ".well-known/openid-configuration", isOpen: true),
        .oauth("GET", "connect/jwk_uri", isOpen: true), .gateway("GET", "/accounts"),
        .gateway("POST", "/transfers"), .gateway("DELETE", "/files/1"),
    ]

    private func preflight(_ door: Door, _ origin: [(String, String)]) async throws -> Answer {
        let fixture = try #require(ServerFixture.shared)
        return try await fixture.send(
            "OPTIONS", door.url(fixture),
            origin + [
                ("Access-Control-Request-Method", door.method),
                ("Access-Control-Request-Headers", Self.fields.sorted().joined(separator: ",")),
            ])
    }

    private func opens(_ answer: Answer, to origin: String) -> Bool {
        answer.all("Access-Control-Allow-Origin") == [origin]
            && answer.all("Access-Control-Allow-Credentials") == ["true"]
            && answer.all("Vary").contains { $0.contains("Origin") }
    }

    @Test("A listed page's preflight is answered before anybody asks for credentials", arguments: doors)
    func listedPreflight(_ door: Door) async throws {
        for origin in [Self.listed, "http://localhost:3000"] where door.name.hasPrefix("/") || origin == Self.listed {
            let answer = try await preflight(door, [("Origin", origin)])
            #expect(answer.status == 204 && answer.bytes.isEmpty)
            #expect(opens(answer, to: origin))
            let methods = answer["Access-Control-Allow-Methods"]?.split(separator: ", ").map(String.init) ?? []
            #expect(methods.contains(door.method))
            let fields = answer["Access-Control-Allow-Headers"]?.split(separator: ", ").map(String.init) ?? []
            #expect(Set(fields) == Self.fields)
            #expect(answer["Access-Control-Max-Age"] == "600")
            #expect(answer.all("Access-Control-Expose-Headers").isEmpty)
        }
    }

    @Test("Any other page's preflight gets no permission to use credentials", arguments: doors)
    func otherPreflight(_ door: Door) async throws {
        for origin in Self.others {
            let answer = try await preflight(door, origin)
            #expect(answer.all("Access-Control-Allow-Credentials").isEmpty, "\(origin)")
            #expect(answer["Access-Control-Allow-Origin"] == (door.isOpen ? "*" : nil), "\(origin)")
            #expect((answer.status == 204) == door.isOpen, "\(origin)")
        }
    }

    @Test("A listed page may read answers, refusals too, and what the SDKs need of their fields", arguments: doors)
    func listedAnswer(_ door: Door) async throws {
        let fixture = try #require(ServerFixture.shared)
        let answer = try await fixture.send(
            door.method, door.url(fixture), [("Origin", Self.listed), ("X-Requested-With", "test"), Self.form], text: ""
        )
        #expect(opens(answer, to: Self.listed))
        #expect(answer.all("Access-Control-Expose-Headers").count { $0.contains("WWW-Authenticate") } == 1)
        #expect(answer.all("Access-Control-Expose-Headers").count { $0.contains("DPoP-Nonce") } == 1)
        #expect(answer.status != 405)
    }

    @Test("No other page may read an answer that used credentials", arguments: doors)
    func otherAnswer(_ door: Door) async throws {
        let fixture = try #require(ServerFixture.shared)
        for origin in Self.others {
            let answer = try await fixture.send(
                door.method, door.url(fixture), origin + [("X-Requested-With", "test"), Self.form], text: "")
            #expect(answer.all("Access-Control-Allow-Credentials").isEmpty, "\(origin)")
            #expect(answer["Access-Control-Allow-Origin"] == (door.isOpen ? "*" : nil), "\(origin)")
            #expect(answer.all("Vary").contains { $0.contains("Origin") }, "a cache must not mix them up")
        }
    }

    @Test("An origin of a client is trusted at its provider's endpoints, and nowhere else")
    func clientOrigin() async throws {
        let origin = "https://partner.example"
        for door in Self.doors {
            let answer = try await preflight(door, [("Origin", origin)])
            #expect(opens(answer, to: origin) == door.name.hasPrefix("/oauth2"), "\(door.name)")
        }
    }

    @Test("The endpoints that browsers only navigate to, and those of servers, stay closed to listed pages, too")
    func closed() async throws {
        for door in [Door.oauth("GET", "authorize"), .oauth("POST", "introspect")] {
            let answer = try await preflight(door, [("Origin", Self.listed)])
            #expect(answer.status == 405 && answer["Access-Control-Allow-Origin"] == nil)
        }
        let fixture = try #require(ServerFixture.shared)
        let answer = try await fixture.send(
            "GET", fixture.server("/UI/Login?realm=/alpha"), [("Origin", Self.listed)])
        #expect(answer["Access-Control-Allow-Origin"] == nil)
    }

    @Test(
        "A listed page with a wrong realm or path may read that it is wrong; others read nothing",
        arguments: [
            "/am/json/realms/root/realms/nowhere/authenticate", "/am/json/realms/root/realms/alpha/nothing",
            "/am/json/nothing", "/am/oauth2/realms/root/realms/nowhere/access_token", "/am/oauth2/nothing",
            "/am/nothing", "/nothing",
        ])
    func wrongPath(_ path: String) async throws {
        let fixture = try #require(ServerFixture.shared)
        try await refusesReadably(fixture.root(path), [400, 404], fixture)
    }

    @Test("A path of the gateway where nothing is says so to pages that a route lists")
    func wrongGatewayPath() async throws {
        try await ServerFixture.run(configuring: { configuration in
            guard let bank = configuration.gateway?.routes.first else { return }
            let moved = GatewayRoute(
                name: bank.name, path: "/bank", upstream: bank.upstream, access: bank.access,
                allowedOrigins: bank.allowedOrigins)
            configuration.gateway?.routes = [moved]
        }) { fixture in
            try await refusesReadably(fixture.gateway("/nothing"), [404], fixture)
        }
    }

    private func refusesReadably(_ url: String, _ statuses: Set<Int>, _ fixture: ServerFixture) async throws {
        for (origin, isListed) in [(Self.listed, true), ("https://evil.example", false)] {
            let asked = try await fixture.send(
                "OPTIONS", url, [("Origin", origin), ("Access-Control-Request-Method", "POST")])
            #expect((asked.status == 204) == isListed && opens(asked, to: origin) == isListed, "\(asked.status)")
            let answer = try await fixture.send("POST", url, [("Origin", origin), ("X-Requested-With", "test")])
            #expect(statuses.contains(answer.status) && opens(answer, to: origin) == isListed, "\(answer.status)")
        }
    }

    @Test("A preflight cannot make the answer long, or write into it")
    func hostilePreflight() async throws {
        let fixture = try #require(ServerFixture.shared)
        for fields in [String(repeating: "a,", count: 4000), "x-a, b c, \u{e9}, x-d;q=1, (, x-e"] {
            let answer = try await fixture.send(
                "OPTIONS", fixture.json("authenticate"),
                [
                    ("Origin", Self.listed), ("Access-Control-Request-Method", "POST"),
                    ("Access-Control-Request-Headers", fields),
                ])
            let allowed = answer["Access-Control-Allow-Headers"]?.split(separator: ", ").map(String.init) ?? []
            #expect(allowed.count <= 64)
            #expect(Set(allowed).isSubset(of: ["a", "x-a", "x-e"]))
        }
    }

    @Test("With the session's cookie a foreign page changes nothing, whatever fields it sends")
    func forged() async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        let cookie = [("Cookie", "iPlanetDirectoryPro=\(session)"), ("X-Requested-With", "test")]
        for origin in Self.others.dropFirst() {
            let logout = try await fixture.send("POST", fixture.json("sessions?_action=logout"), cookie + origin)
            #expect(logout.status == 403, "\(origin)")
            let pay = try await fixture.send(
                "POST", fixture.gateway("/transfers"), cookie + ServerFixture.jsonFields + origin,
                text: FixtureBody.transfer)
            #expect(pay.status == 403, "\(origin)")
            // Nor does it sign its visitor in as somebody else.
            let start = try await fixture.send("POST", fixture.json("authenticate"), origin)
            #expect(start.status == 403 && start["Set-Cookie"] == nil, "\(origin)")
        }
        #expect(try await fixture.send("GET", fixture.gateway("/accounts"), cookie).status == 200)
        let without = try await fixture.send(
            "POST", fixture.json("sessions?_action=logout"), [cookie[0], ("Origin", Self.listed)])
        #expect(without.status == 403, "AM's rule holds for listed pages, too")
    }

    @Test("A foreign page cannot send a later step of a sign-in either, and a step that it tried is still good")
    func forgedStep() async throws {
        let fixture = try #require(ServerFixture.shared)
        let url = fixture.json("authenticate")
        let page = try await fixture.send("POST", url + "?authIndexType=service&authIndexValue=Quick")
        let password = try fixture.account("ana").password.reveal()
        let body = ServerFixture.filled(page.json) { $0 == "NameCallback" ? "ana" : .string(password) }
            .serializedBytes()
        let json = [("Content-Type", "application/json")]
        for origin in Self.others.dropFirst() {
            let refused = try await fixture.send("POST", url, json + origin, body: body)
            #expect(refused.status == 403 && refused["Set-Cookie"] == nil, "\(origin)")
        }
        let own = try await fixture.send("POST", url, json + [("Origin", Self.listed)], body: body)
        #expect(own.status == 200 && own["Set-Cookie"]?.hasPrefix("iPlanetDirectoryPro=") == true)
    }

    @Test("Foreign pages cannot even make a service be asked with the cookie, but links still work")
    func embedded() async throws {
        let fixture = try #require(ServerFixture.shared)
        let cookie = [("Cookie", "iPlanetDirectoryPro=\(try await fixture.session())")]
        let site = ("Sec-Fetch-Site", "cross-site")
        for (fields, status) in [
            ([site, ("Sec-Fetch-Mode", "no-cors")], 403), ([site, ("Sec-Fetch-Mode", "navigate")], 200),
            ([site, ("Origin", "https://evil.example")], 403), ([site, ("Origin", Self.listed)], 200),
            ([("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Mode", "no-cors")], 200),
        ] {
            #expect(try await fixture.send("GET", fixture.gateway("/accounts"), cookie + fields).status == status)
        }
    }

    @Test("A listed page signs in, steps up, pays once and signs out, with the cookie alone")
    func story() async throws {
        let fixture = try #require(ServerFixture.shared)
        let page = [("Origin", Self.listed), ("X-Requested-With", "test")]
        let account = try fixture.account("ana")
        let signedIn = try await fixture.runJourney(
            [("authIndexType", "service"), ("authIndexValue", "Quick")], page
        ) { type in
            type == "NameCallback"
                ? "ana" : type == "PasswordCallback" ? .string(account.password.reveal()) : nil
        }
        let session = try #require(signedIn.json["tokenId"]?.string)
        #expect(signedIn["Set-Cookie"]?.hasPrefix("iPlanetDirectoryPro=") == true && opens(signedIn, to: Self.listed))
        let fields = page + [("Cookie", "iPlanetDirectoryPro=\(session)"), ("Content-Type", "application/json")]

        // No x-authenticate-response: a script could not follow the redirect.
        let refused = try await fixture.send(
            "POST", fixture.gateway("/nods"), fields, text: FixtureBody.transfer)
        #expect(refused.status == 401 && opens(refused, to: Self.listed))
        let id = try ServerFixture.transactionID(refused)
        #expect(try await fixture.approve(id, session: session).status == 200)
        let paid = try await fixture.send(
            "POST", fixture.gateway("/nods?_txid=\(id)"), fields, text: FixtureBody.transfer)
        #expect(paid.status == 201 && opens(paid, to: Self.listed))
        let again = try await fixture.send(
            "POST", fixture.gateway("/nods?_txid=\(id)"), fields, text: FixtureBody.transfer)
        #expect(again.status == 409 && opens(again, to: Self.listed))

        let out = try await fixture.send("POST", fixture.json("sessions/?_action=logout"), fields)
        #expect(out.status == 200 && out["Set-Cookie"]?.contains("Max-Age=0") == true)
        let after = try await fixture.send("GET", fixture.gateway("/accounts"), fields)
        #expect(after.status == 401 && opens(after, to: Self.listed))
    }

    @Test("Where the route lists origins, the service does not say who may read; where it lists none, it does")
    func serviceFields() async throws {
        try await ServerFixture.run { fixture in
            fixture.upstream.answer { _, peer in
                peer.answer(
                    fields: [
                        "Access-Control-Allow-Origin: *", "Access-Control-Allow-Credentials: true", "Vary: Accept",
                        "Access-Control-Expose-Headers: X-Total",
                    ])
            }
            let bearer = ServerFixture.session(try await fixture.session())
            let listed = try await fixture.send(
                "GET", fixture.gateway("/accounts"), bearer + [("Origin", Self.listed)])
            #expect(listed.status == 200 && opens(listed, to: Self.listed))
            let exposed = listed.all("Access-Control-Expose-Headers").joined(separator: ", ")
            #expect(exposed.contains("X-Total") && exposed.contains("WWW-Authenticate"))
            let foreign = try await fixture.send(
                "GET", fixture.gateway("/accounts"), bearer + [("Origin", "https://evil.example")])
            #expect(foreign.status == 200 && foreign["Access-Control-Allow-Origin"] == nil)
            #expect(foreign["Access-Control-Allow-Credentials"] == nil)
            #expect(foreign.all("Vary").joined(separator: ",").contains("Accept"))
            let open = try await fixture.send("GET", fixture.gateway("/open"), [("Origin", "https://evil.example")])
            #expect(open["Access-Control-Allow-Origin"] == "*")
            let preflight = try await fixture.send(
                "OPTIONS", fixture.gateway("/open"),
                [("Origin", "https://evil.example"), ("Access-Control-Request-Method", "PUT")])
            #expect(preflight.status == 200 && fixture.upstream.requests.last?.line.hasPrefix("OPTIONS /open") == true)
        }
    }

    @Test("A public route asks nobody, and tells the service nothing of who calls")
    func publicRoute() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            for fields in [
                [], ServerFixture.session(session), ServerFixture.bearer("no token of ours"),
                [("Cookie", "iPlanetDirectoryPro=\(session); theme=dark")], [("Origin", "https://evil.example")],
            ] {
                let forged = fields + [("X-Remote-User", "admin"), ("X-TxID", "2")]
                for method in ["GET", "POST"] {
                    let reply = try await fixture.send(method, fixture.gateway("/open/page?a=1&_txid=2"), forged)
                    #expect(reply.status == (method == "POST" ? 201 : 200))
                    let seen = try #require(fixture.upstream.requests.last)
                    #expect(seen.line.contains("/open/page?a=1 "))
                    for name in ["X-Remote-User", "Authorization", "X-TxID", "iPlanetDirectoryPro"] {
                        #expect(seen.values(name).isEmpty)
                    }
                    #expect(!seen.head.contains(session))
                }
            }
            #expect(try await fixture.send("GET", fixture.gateway("/opened")).status == 401)
            #expect(try await fixture.send("GET", fixture.gateway("/open/../accounts")).status != 200)
        }
    }

    @Test(
        "SameSite=None is set where the file says so, with a cookie for each site unless it says otherwise, and Lax else",
        arguments: [
            ("", "SameSite=Lax"), ("cookieSameSite: None\n", "SameSite=None; Partitioned"),
            ("cookieSameSite: None\ncookiePartitioned: false\n", "SameSite=None"),
        ])
    func sameSite(settings: String, attributes: String) async throws {
        let fixture = try await ServerFixture(editing: {
            $0.replacing("passwordCost:", with: settings + "passwordCost:")
        })
        let account = try fixture.account("ana")
        let reply = try await fixture.runJourney([("authIndexType", "service"), ("authIndexValue", "Quick")]) { type in
            type == "NameCallback"
                ? "ana" : type == "PasswordCallback" ? .string(account.password.reveal()) : nil
        }
        #expect(reply["Set-Cookie"]?.hasSuffix("; Path=/; Secure; HttpOnly; \(attributes)") == true)
        let out = try await fixture.send(
            "POST", fixture.json("sessions?_action=logout"),
            ServerFixture.session(try #require(reply.json["tokenId"]?.string)))
        #expect(out["Set-Cookie"]?.hasSuffix("; Secure; HttpOnly; \(attributes)") == true)
        await fixture.stop()
    }
}
