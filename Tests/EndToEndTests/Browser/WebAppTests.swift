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

    @Test(
        "So does a page of another site, whatever the browser does with other sites' cookies",
        arguments: Chromium.ThirdPartyCookies.allCases)
    func otherSite(cookies: Chromium.ThirdPartyCookies) async throws {
        try await run(.otherSite, isListed: true, cookie: "cookieSameSite: None", thirdPartyCookies: cookies) {
            person, call in
            try await tell(person, call)
            // What the page has is a cookie of its own: a page of the server knows nothing of it.
            check(try await call(try signIn(person)), 200)
            try await person.browser.open(person.world.endpoints.server + "/UI/Login?realm=/alpha")
            #expect(try await person.browser.title == "Sign in")
        }
    }

    @Test("With one cookie for all sites, a page of another site needs a browser that allows other sites' cookies")
    func shared() async throws {
        let setting = "cookieSameSite: None\ncookiePartitioned: false"
        try await run(.otherSite, isListed: true, cookie: setting, thirdPartyCookies: .allowed) { person, call in
            try await tell(person, call)
            check(try await call(try signIn(person)), 200)
            try await person.browser.open(person.world.endpoints.server + "/UI/Login?realm=/alpha")
            #expect(try await person.browser.text("h1") == "You are signed in")
        }
        try await run(.otherSite, isListed: true, cookie: setting, thirdPartyCookies: .blocked) { person, call in
            let gateway = person.world.endpoints.gateway ?? ""
            check(try await call(try signIn(person)), 200)
            check(try await call("look('\(gateway)')"), 401)
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

    @Test("A page of another site whose cookie is Lax is signed in for nobody: its calls come without the cookie")
    func lax() async throws {
        try await run(.otherSite, isListed: true, cookie: "") { person, call in
            let gateway = person.world.endpoints.gateway ?? ""
            check(try await call(try signIn(person)), 200)
            check(try await call("look('\(gateway)')"), 401)
        }
    }
}
