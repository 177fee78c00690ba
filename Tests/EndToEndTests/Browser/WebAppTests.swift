import AssentCore
import AssentOTP
import AssentPeers
import AssentServer
import AssentTesting
import Foundation
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

/// A page of an origin of its own that signs in, pays and signs out by `fetch` (`peers/web_app.html`).
@Suite("A web app of another origin, in Chromium", .serialized)
struct WebAppTests {
    /// Where the page is.
    enum Place: String, CaseIterable {
        /// Another port of the server's host: another origin of the same site.
        case sameSite = "https://localhost"
        /// Another host: another site.
        case otherSite = "http://127.0.0.1"
    }

    /// Runs `body` with the page open, whose origin is listed or not.
    private func run(
        _ place: Place, isListed: Bool, cookie: String,
        thirdPartyCookies cookies: Chromium.ThirdPartyCookies = .asInstalled,
        _ body: (BrowserWorld, _ call: (String) async throws -> JSONValue) async throws -> Void
    ) async throws {
        // The server must know the page's origin before the page can have the server's certificate.
        let reserved = try ReservedPort()
        defer { withExtendedLifetime(reserved) {} }
        let port = reserved.port
        let origin = isListed ? "\(place.rawValue):\(port)" : "https://elsewhere.example"
        let change = { (yaml: String) in
            yaml.replacing(
                "publicURL: https://localhost:8443/am", with: "publicURL: https://localhost:8443/am\n\(cookie)"
            )
            .replacing(
                "    defaultJourney: Login", with: "    defaultJourney: Login\n    allowedOrigins: [\"\(origin)\"]"
            )
            .replacing(
                "        accessTokenSeconds: 600\n",
                with:
                    "        accessTokenSeconds: 600\n        sessionCheck: true\n        allowedOrigins: [\"\(origin)\"]\n"
            )
            .replacing("    - name: bank\n", with: "    - name: bank\n      allowedOrigins: [\"\(origin)\"]\n")
        }
        try await BrowserWorld.run(configuring: change, thirdPartyCookies: cookies) { person in
            let data = person.world.configuration.dataDirectory
            let directory = try TemporaryDirectory()
            let page = try ChildProcess(
                "/bin/bash",
                [Peer.scripts + "/web_app.sh", directory.url.path, String(port)]
                    + (place == .sameSite ? [data + "/server.pem", data + "/server.key"] : []))
            let running = Locked(page)
            defer { running.withLock { $0.stop() } }
            #expect(await Peer.line(of: running) == "ready")
            try await person.browser.open("\(place.rawValue):\(port)/")
            #expect(try await person.browser.text("h1") == "A web app")
            try await body(person) { try await person.browser.run("return seen(\($0))") }
        }
    }

    private func check(
        _ seen: JSONValue, _ wanted: JSONValue, _ location: SourceLocation = #_sourceLocation
    ) {
        #expect(seen == wanted, sourceLocation: location)
    }

    private func code(_ person: BrowserWorld) throws -> String {
        person.clock.advance(by: 30)
        return try TOTP(secret: person.world.account.totpSeed).code(at: person.clock.now)
    }

    private func signIn(_ person: BrowserWorld) throws -> String {
        let account = person.world.account
        let values = [person.world.endpoints.server, account.username, account.password.reveal(), try code(person)]
        return "signIn(\(values.map { JSONValue.string($0).serialized() }.joined(separator: ", ")))"
    }

    private func pay(_ person: BrowserWorld) throws -> String {
        let transfer = #"{"to": "Bob", "amount": "200.00", "currency": "EUR"}"#
        let gateway = person.world.endpoints.gateway ?? ""
        return "pay('\(person.world.endpoints.server)', '\(gateway)', \(transfer), '\(try code(person))')"
    }

    private func tell(_ person: BrowserWorld, _ call: (String) async throws -> JSONValue) async throws {
        let (server, gateway) = (person.world.endpoints.server, person.world.endpoints.gateway ?? "")
        check(try await call("look('\(gateway)')"), 401)
        check(try await call(try signIn(person)), 200)
        check(try await call("look('\(gateway)')"), 200)
        check(try await call(try pay(person)), [401, 200, 201])
        check(try await call("signOut('\(server)')"), 200)
        check(try await call("look('\(gateway)')"), 401)
        check(try await call(try pay(person)), [401])
    }

    @Test("A listed page signs in, sees its account, pays after an approval and signs out")
    func listed() async throws {
        try await run(.sameSite, isListed: true, cookie: "") { person, call in try await tell(person, call) }
    }

    @Test("So does a page of another site in the browser that Debian has")
    func otherSite() async throws {
        try await run(.otherSite, isListed: true, cookie: "cookieSameSite: None") { person, call in
            try await tell(person, call)
            // What the page has is a cookie of its own: a page of the server knows nothing of it.
            check(try await call(try signIn(person)), 200)
            try await person.browser.open(person.world.endpoints.server + "/UI/Login?realm=/alpha")
            #expect(try await person.browser.title == "Sign in")
        }
    }

    /// A column of the table in `docs/web-apps.md`, of a page of another site.
    struct Column: Sendable, CustomTestStringConvertible {
        let setting: String
        let cookies: Chromium.ThirdPartyCookies
        /// What the table says of each way.
        let works: [Bool]

        var testDescription: String { "\(setting.isEmpty ? "Lax" : setting), \(cookies)" }

        /// The columns, from the page.
        static func all() throws -> [Column] {
            let page = try String(contentsOf: World.package.appending(path: "docs/web-apps.md"), encoding: .utf8)
            let section = try #require(page.components(separatedBy: "\n### Which way works where\n").last)
            let rows = section.split(separator: "\n").filter { $0.hasPrefix("| sign-in") }.map { row in
                row.split(separator: "|").dropFirst().map { $0.trimmingCharacters(in: .whitespaces) == "yes" }
                    .prefix(6)
            }
            try #require(rows.count == 4 && rows.allSatisfy { $0.count == 6 })
            let settings = ["", "cookieSameSite: None", "cookieSameSite: None\ncookiePartitioned: false"]
            return (0..<6).map { index in
                Column(
                    setting: settings[index / 2], cookies: index.isMultiple(of: 2) ? .blocked : .allowed,
                    works: rows.map { Array($0)[index] })
            }
        }
    }

    private static let verifier = String(repeating: "v", count: 43)

    /// A request of the page's client, which is led back to the page.
    private func authorization(_ person: BrowserWorld, _ items: KeyValuePairs<String, String>) async throws -> String {
        let origin = try #require(try await person.browser.run("return location.origin").string)
        let challenge = Base64URL.encode(SHA2.sha256(Array(Self.verifier.utf8)))
        let always: KeyValuePairs = [
            "client_id": "bank-app", "redirect_uri": origin + "/callback", "state": "s", "nonce": "n",
            "code_challenge": challenge, "code_challenge_method": "S256",
        ]
        let start = person.world.endpoints.server + "/oauth2/realms/root/realms/alpha/authorize"
        return (Array(always) + Array(items)).reduce(start) { URLText.appending($1.key, $1.value, to: $0) }
    }

    /// What a hidden frame is led back with.
    private func frame(
        _ person: BrowserWorld, _ call: (String) async throws -> JSONValue, _ items: KeyValuePairs<String, String>
    ) async throws -> JSONValue {
        let url = try await authorization(person, items)
        return try await call("frame(\(JSONValue.string(url).serialized()))")
    }

    @Test("A page of another site: each way of the table works or does not, as the table says")
    func ways() async throws {
        for column in try Column.all() {
            try await run(.otherSite, isListed: true, cookie: column.setting, thirdPartyCookies: column.cookies) {
                person, call in
                let (server, gateway) = (person.world.endpoints.server, person.world.endpoints.gateway ?? "")
                check(try await call(try signIn(person)), 200)
                let status = try await call("look('\(gateway)')")
                #expect(status == (column.works[0] ? 200 : 401), "\(column.testDescription)")
                if column.works[0] {
                    check(try await call("signOut('\(server)')"), 200)
                    try await tell(person, call)
                }

                try await person.browser.open(
                    authorization(person, ["response_type": "code", "scope": "openid accounts"]))
                try await person.enter()
                try await person.enterCode()
                try await person.browser.arrive(at: "\(Place.otherSite.rawValue):")
                let renewed = try await call("exchange('\(server)', '\(gateway)', '\(Self.verifier)')")
                #expect((renewed == [200, 200, 200]) == column.works[1], "\(column.testDescription): \(renewed)")

                let code = try await frame(
                    person, call, ["response_type": "code", "scope": "openid accounts", "prompt": "none"])
                #expect(code == (column.works[2] ? "code" : "login_required"), "\(column.testDescription)")
                let session = try await frame(
                    person, call, ["response_type": "id_token", "scope": "openid", "prompt": "none"])
                #expect(session == (column.works[3] ? "id_token" : "login_required"), "\(column.testDescription)")
            }
        }
    }

    @Test("A page that is not listed reads nothing, and its journey signs nobody in", arguments: Place.allCases)
    func notListed(place: Place) async throws {
        try await run(place, isListed: false, cookie: "cookieSameSite: None") { person, call in
            let gateway = person.world.endpoints.gateway ?? ""
            check(try await call(try signIn(person)), "TypeError")
            check(try await call("look('\(gateway)')"), "TypeError")
            check(try await call(try pay(person)), "TypeError")
            try await person.browser.open(person.world.endpoints.server)
            #expect(try await person.browser.cookies.isEmpty)
        }
    }
}
