import AssentCore
import AssentStore
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

// One after the other: passwords of one user are counted, and many at once look like guessing.
@Suite("The sign-in page", .server, .serialized)
struct SignInPageTests {
    private func fixture() throws -> ServerFixture { try #require(ServerFixture.shared) }

    private func credentials(_ fixture: ServerFixture, _ username: String = "ana") throws -> [(String, String?)] {
        [("IDToken1", username), ("IDToken2", try fixture.account(username).password.reveal())]
    }

    @Test("The server's base URL shows it, with and without the last slash, and no other path does")
    func baseURL() async throws {
        let fixture = try fixture()
        for (path, status) in [("", 200), ("/", 200), ("x", 404), ("//", 404)] as [(String, Int)] {
            let answer = try await fixture.send("GET", fixture.server(path + "?realm=/alpha"))
            #expect(answer.status == status, "\(path)")
        }
    }

    @Test(
        "The bare base URL says what this server is, and an unknown realm that there is nothing, not that a page is old"
    )
    func welcome() async throws {
        let fixture = try fixture()
        for path in ["", "/"] {
            let answer = try await fixture.send("GET", fixture.server(path))
            #expect(answer.status == 200 && answer.text.contains("<h1>Assent</h1>"))
            // There are two realms, and their names are not told.
            #expect(!answer.text.contains("alpha") && !answer.text.contains("href=\"/am/UI/Login"))
        }
        for target in ["/?realm=/nowhere", "/UI/Login?realm=/nowhere", "/UI/Login"] {
            let answer = try await fixture.send("GET", fixture.server(target))
            #expect(answer.status == 400 && answer.text.contains("There is nothing here"), "\(target)")
        }
    }

    @Test("The bare base URL of a server with one realm leads to the sign-in there")
    func onlyRealm() async throws {
        let fixture = try await ServerFixture(editing: { text in
            guard let beta = text.range(of: "  beta:\n"), let rest = text.range(of: "gateway:\n") else { return text }
            return text.replacingCharacters(in: beta.lowerBound..<rest.lowerBound, with: "")
        })
        let welcome = try await fixture.send("GET", fixture.server("/"))
        #expect(welcome.status == 200 && welcome.text.contains(#"href="/am/UI/Login?realm=%2Falpha""#))
        let link = try await fixture.send("GET", fixture.root("/am/UI/Login?realm=%2Falpha"))
        #expect(link.status == 200 && link.text.contains(#"name="IDToken1""#))
        await fixture.stop()
    }

    @Test(
        "Somebody who looks gets a page where the authorization endpoint and the end of a session say no, a program JSON"
    )
    func browserErrors() async throws {
        let fixture = try fixture()
        let html = [("Accept", "text/html,application/xhtml+xml"), ("Sec-Fetch-Mode", "navigate")]
        for path in ["authorize?client_id=nobody", "authorize?client_id=bank-app&redirect_uri=https://evil.example"] {
            let shown = try await fixture.send("GET", fixture.oauth(path), html)
            #expect(shown.status == 400 && shown["Content-Type"] == "text/html; charset=utf-8")
            #expect(shown.text.contains("This link does not work"))
            let told = try await fixture.send("GET", fixture.oauth(path), [("Accept", "application/json")])
            #expect(told.status == 400 && told.json["error"]?.string != nil)
        }
        let end = try await fixture.send("GET", fixture.oauth("connect/endSession?id_token_hint=x"), html)
        #expect(end.status == 400 && end.text.contains("<h1>"))
        let keys = try await fixture.send("GET", fixture.oauth("userinfo"), html)
        #expect(keys.json["error"]?.string != nil)
    }

    @Test("A browser without a session signs in by password and code and comes back to the app with a code")
    func story() async throws {
        let fixture = try fixture()
        let browser = Browser(fixture)
        let sent = try await browser.open(fixture.authorizationURL())
        #expect(sent.answer.status == 302)
        let first = try await browser.open(try #require(sent.answer["Location"]))
        #expect(first.answer.status == 200 && first.answer["Content-Type"] == "text/html; charset=utf-8")
        #expect(first.text.contains("to continue to <strong>bank-app</strong>"))
        #expect(first.text.contains(#"autocomplete="username""#))
        #expect(first.text.contains(#"type="password" autocomplete="current-password""#))
        #expect(first.text.contains(#"<label for="IDToken1">User Name</label>"#))
        #expect(first.text.contains(#"<html lang="en">"#))
        let second = try await browser.submit(first, credentials(fixture))
        #expect(second.answer.status == 200 && browser.session == nil)
        #expect(second.text.contains(#"autocomplete="one-time-code""#))
        let done = try await browser.submit(second, [("IDToken1", try fixture.freshCode("ana"))])
        #expect(done.answer.status == 303)
        let cookie = try #require(done.sessionCookie)
        #expect(cookie.hasPrefix("iPlanetDirectoryPro="))
        for attribute in ["HttpOnly", "Secure", "SameSite=Lax", "Path=/"] { #expect(cookie.contains(attribute)) }
        let back = try await browser.open(try #require(done.answer["Location"]))
        #expect(back.answer.status == 302)
        #expect(back.answer["Location"]?.hasPrefix("http://127.0.0.1:50123/callback?code=") == true)
        #expect(back.answer.parameter("state") == "st/1")
        #expect(back.answer.parameter("iss") == fixture.oauth("").dropLast().description)
        // The same browser is not asked again.
        let again = try await browser.open(fixture.authorizationURL(port: 50_124))
        #expect(again.answer["Location"]?.hasPrefix("http://127.0.0.1:50124/callback?code=") == true)
        let page = try await browser.open(try #require(sent.answer["Location"]))
        #expect(page.answer.status == 303 && page.sessionCookie == nil)
    }

    @Test("Nothing of a page runs, comes from elsewhere, is framed, cached or tells another site where it came from")
    func policy() async throws {
        let fixture = try fixture()
        let browser = Browser(fixture)
        let first = try await browser.open(
            fixture.signInPage([("realm", "/alpha"), ("goto", fixture.authorizationURL())]))
        let refused = try await browser.open(fixture.signInPage([("realm", "/nowhere")]))
        for page in [first, refused] {
            let policy = try #require(page.answer["Content-Security-Policy"])
            #expect(policy.hasPrefix("default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; "))
            #expect(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"))
            #expect(page.answer["X-Frame-Options"] == "DENY")
            #expect(page.answer["X-Content-Type-Options"] == "nosniff")
            #expect(page.answer["Cache-Control"] == "no-store")
            #expect(page.answer["Referrer-Policy"] == "same-origin")
            for word in ["<script", "javascript:", " style=", " onclick", "http://", "<iframe", "<style"] {
                #expect(!page.text.replacing("http%3A//", with: "").contains(word), "\(word)")
            }
        }
        #expect(first.answer["Content-Security-Policy"]?.hasSuffix("form-action 'self' http://127.0.0.1:50123") == true)
        #expect(refused.answer["Content-Security-Policy"]?.hasSuffix("form-action 'self'") == true)
        let href = try #require(first.text.firstMatch(of: /rel="stylesheet" href="([^"]*)"/)).1
        let style = try await browser.open(browser.origin + href)
        #expect(style.answer.status == 200 && style.answer["Content-Type"] == "text/css; charset=utf-8")
        #expect(style.text.contains("prefers-color-scheme: dark"))
    }

    @Test(
        "A place that is not this server's own is never led to, and nobody can sign in on the way there",
        arguments: [
            "https://evil.example/", "//evil.example/", "/relative", "javascript:alert(1)", "data:text/html,x",
            "O@evil.example/", "O.evil.example/oauth2/realms/root/realms/alpha/authorize?a", "http:O/am",
            "O/am/oauth2/realms/root/realms/alpha/authorize", "O/am/oauth2/realms/root/realms/alpha/authorize/../x?a",
            "O/am/oauth2/realms/root/realms/beta/authorize?client_id=bank-app",
            "O/am/oauth2/realms/root/realms/alpha/connect/endSession?x", "O/am/json/authenticate?x",
            "O/am/oauth2/realms/root/realms/alpha/authorize?x\\y",
            "O/am/oauth2/realms/root/realms/alpha/authorize?x#y",
            "O/am/oauth2/realms/root/realms/alpha/authorize?x\u{0D}\u{0A}Location: https://evil.example",
            "O/am/oauth2/realms/root/realms/alpha/authorize?é", "G@evil.example/", "Gevil/", "G\\@evil.example",
        ])
    func openRedirect(template: String) async throws {
        let fixture = try fixture()
        let browser = Browser(fixture, session: try await fixture.session())
        let target = template.replacing("O", with: browser.origin, maxReplacements: 1)
            .replacing("G", with: "https://localhost:\(fixture.gatewayPort)", maxReplacements: 1)
        let page = try await browser.open(fixture.signInPage([("realm", "/alpha"), ("goto", target)]))
        #expect(page.answer.status == 400 && page.answer["Location"] == nil)
        #expect(page.action == nil && !page.text.contains("http-equiv=\"refresh\""))
    }

    @Test("Wrong credentials are told above a fresh form, without saying which was wrong, and make no session")
    func wrongPassword() async throws {
        let fixture = try fixture()
        for name in ["ana", "nobody"] {
            let browser = Browser(fixture)
            let first = try await browser.open(fixture.signInPage([("realm", "/alpha"), ("service", "Quick")]))
            let second = try await browser.submit(first, [("IDToken1", name), ("IDToken2", "wr<ong")])
            #expect(second.answer.status == 200 && second.sessionCookie == nil)
            #expect(second.text.contains(#"role="alert">That did not work."#))
            #expect(second.text.contains(#"aria-describedby="alert" aria-invalid="true""#))
            #expect(second.text.contains("<title>Error: Sign in</title>"))
            // Another journey begins, and the name need not be typed again.
            #expect(second.text.contains(#"value="\#(name)" autocomplete="username""#))
            #expect(!second.text.contains("wr<ong") && !second.text.contains("wr&lt;ong"))
            let third = try await browser.submit(second, try credentials(fixture))
            #expect(third.answer.status == 200 && third.text.contains("You are signed in"))
            #expect(
                try await browser.open(fixture.signInPage([("realm", "/alpha")])).text.contains("You are signed in"))

            // The page has a way out, for our own form alone.
            #expect(third.text.contains(">Sign out</button>"))
            let sessions = try await fixture.count("sessions")
            let foreign = try await browser.post(
                third, [("signout", "1")], fields: [("Origin", "https://elsewhere.example")])
            #expect(foreign.answer.status == 403)
            #expect(try await fixture.count("sessions") == sessions)
            let out = try await browser.submit(third, [("signout", "1")])
            #expect(out.answer.status == 200 && out.text.contains("You are signed out"))
            #expect(try await fixture.count("sessions") == sessions - 1 && browser.session == nil)
        }
    }

    @Test("To sign out on a page of one realm ends the browser's session of another one, in that realm's records")
    func signOutOfAnotherRealm() async throws {
        try await ServerFixture.run { fixture in
            let ana = Browser(fixture, session: try await fixture.session())
            let page = try await ana.open(fixture.signInPage([("realm", "/alpha")]))
            #expect(page.text.contains(">Sign out</button>"))
            // The form of the tab that is left open, after a sign-in to the other realm in a second one.
            let bob = try await fixture.session("bob", realm: "beta")
            let browser = Browser(fixture, session: bob)
            let foreign = try await browser.post(
                page, [("signout", "1")], fields: [("Origin", "https://elsewhere.example")])
            #expect(foreign.answer.status == 403)
            #expect(try await Sessions(fixture.server.context).live(token: Secret(bob)) != nil)
            let out = try await browser.post(page, [("signout", "1")])
            #expect(out.answer.status == 200 && out.text.contains("You are signed out"))
            #expect(browser.session == nil)
            #expect(try await Sessions(fixture.server.context).live(token: Secret(bob)) == nil)
            let record = try #require(try await AuditLog(fixture.server.context).newest(1).first)
            #expect(record.event == .sessionEnd && record.realm == "/beta")
        }
    }

    @Test(
        "A form that another site sends is refused before anything is looked at",
        arguments: [
            [("Origin", "https://evil.example")], [("Origin", "null")], [("Origin", "")], [],
            [("Origin", "O.evil.example")], [("Origin", "http:O")], [("Sec-Fetch-Site", "cross-site")],
            [("Sec-Fetch-Site", "same-site")], [("Sec-Fetch-Site", "none")],
            [("Origin", "https://evil.example"), ("Sec-Fetch-Site", "same-origin")],
        ] as [[(String, String)]])
    func forgery(fields: [(String, String)]) async throws {
        let fixture = try fixture()
        let browser = Browser(fixture)
        let first = try await browser.open(fixture.signInPage([("realm", "/alpha"), ("service", "Quick")]))
        let fields = fields.map { ($0.0, $0.1.replacing("O", with: browser.origin)) }
        let refused = try await browser.submit(first, try credentials(fixture), fields: fields)
        #expect(refused.answer.status == 403 && refused.sessionCookie == nil)
        let allowed = try await browser.submit(
            first, try credentials(fixture), fields: [("Sec-Fetch-Site", "same-origin")])
        #expect(allowed.text.contains("You are signed in"))
    }

    @Test("The same form sent twice, even at once, is one sign-in")
    func twice() async throws {
        let fixture = try fixture()
        let browser = Browser(fixture)
        let first = try await browser.open(fixture.signInPage([("realm", "/alpha"), ("service", "Quick")]))
        let answers = try credentials(fixture, "ben")
        let cookies = try await withThrowingTaskGroup(of: String?.self) { group in
            for _ in 0..<8 {
                group.addTask { try await Browser(fixture).submit(first, answers).sessionCookie }
            }
            var all: Set<String?> = []
            for try await cookie in group { all.insert(cookie) }
            return all
        }
        #expect(cookies.count == 1 && cookies.first != .some(nil))
        let sessions = try await fixture.rows(
            "SELECT 1 AS one FROM sessions JOIN users ON users.id = sessions.user_id WHERE users.username = 'ben'")
        #expect(sessions.count == 1)
        let other = try await browser.submit(first, try credentials(fixture, "ana"))
        #expect(other.answer.status == 400 && other.text.contains("out of date"))
        #expect(other.text.contains(">Start again</a>"))
    }

    @Test(
        "Who gives up goes back to the app that waits, which is told so; a page for which nobody waits has no such button"
    )
    func cancel() async throws {
        let fixture = try fixture()
        let browser = Browser(fixture)
        let link = fixture.signInPage([
            ("realm", "/alpha"), ("service", "Quick"), ("goto", fixture.authorizationURL()),
        ])
        let first = try await browser.open(link)
        let buttons = first.text.matches(of: /<button[^>]*>/).map { String($0.0) }
        // Return in a field presses the first one.
        #expect(buttons.count == 2 && buttons.last?.contains(#"name="cancel""#) == true)
        let left = try await browser.submit(first, [("cancel", "1")])
        #expect(left.answer.status == 303 && left.sessionCookie == nil)
        #expect(left.answer["Location"]?.hasPrefix("http://127.0.0.1:50123/callback?error=access_denied&") == true)
        #expect(left.answer.parameter("state") == "st/1" && left.answer.parameter("code") == nil)
        #expect(left.answer.parameter("iss") == fixture.oauth("").dropLast().description)
        let forged = try await browser.submit(first, [("cancel", "1")], fields: [("Origin", "https://evil.example")])
        #expect(forged.answer.status == 403 && forged.answer["Location"] == nil)
        let targets = [
            [], [("goto", fixture.gateway("/accounts"))],
            [("goto", fixture.oauth("authorize") + "?client_id=bank-app&redirect_uri=https%3A%2F%2Fevil.example%2F")],
            [("goto", fixture.oauth("authorize") + "?client_id=nobody&redirect_uri=http%3A%2F%2F127.0.0.1%2Fcallback")],
        ]
        for items in targets {
            let page = try await browser.open(
                fixture.signInPage([("realm", "/alpha"), ("service", "Quick")] + items))
            #expect(page.answer.status == 200 && !page.text.contains("cancel"))
            let refused = try await browser.submit(page, [("cancel", "1")])
            #expect(refused.answer["Location"] == nil && refused.sessionCookie == nil)
        }
    }

    @Test("A form that is not the page's own is refused and changes nothing")
    func badForms() async throws {
        let fixture = try fixture()
        let browser = Browser(fixture)
        let first = try await browser.open(fixture.signInPage([("realm", "/alpha"), ("service", "Quick")]))
        let action = try #require(first.action)
        let origin = ("Origin", browser.origin)
        let form = ("Content-Type", "application/x-www-form-urlencoded")
        func post(_ text: String, _ fields: [(String, String)]) async throws -> Int {
            try await fixture.send("POST", action, fields, text: text).status
        }
        #expect(try await post("{}", [origin, ("Content-Type", "application/json")]) == 415)
        #expect(try await post("", [origin]) == 415)
        #expect(try await post(String(repeating: "a", count: 70_000), [origin, form]) == 413)
        #expect(try await post("authId=a&authId=b", [origin, form]) == 400)
        #expect(try await post("authId=%zz", [origin, form]) == 400)
        #expect(try await post("authId=\u{1}", [origin, form]) == 400)
        #expect(try await post((0..<65).map { "a\($0)=" }.joined(separator: "&"), [origin, form]) == 400)
        let changed: [(String, String?)] = [
            ("authId", "x.y.z"), ("authId", "e30.e30.e30"), ("types", ""), ("types", "NameCallback"),
            ("types", "PasswordCallback NameCallback"), ("types", "NameCallback PasswordCallback ChoiceCallback"),
            ("types", String(repeating: "NameCallback ", count: 40)), ("IDToken2", nil),
            ("IDToken1", String(repeating: "a", count: 5000)), ("IDToken1", "a\u{0}b"),
        ]
        for change in changed {
            let rest = try credentials(fixture).filter { $0.0 != change.0 }
            let reply = try await browser.submit(first, rest + [change])
            #expect(reply.answer.status == 400 && reply.sessionCookie == nil, "\(change.0)")
        }
        #expect(try await browser.submit(first, try credentials(fixture)).text.contains("You are signed in"))
        #expect(try await fixture.send("PUT", action, [origin]).status == 405)
        #expect(try await fixture.send("GET", fixture.server("/UI/Other")).status == 404)
        let twice = try await browser.open(fixture.server("/UI/Login?realm=/alpha&realm=/beta"))
        #expect(twice.answer.status == 400)
    }

    @Test("A page of one realm is of no use in another")
    func realms() async throws {
        let fixture = try fixture()
        let browser = Browser(fixture)
        let first = try await browser.open(fixture.signInPage([("realm", "/alpha"), ("service", "Quick")]))
        let moved = Browser.Page(
            url: first.url,
            answer: Answer(
                status: 200, fields: first.answer.fields, bytes: Array(first.text.replacing("alpha", with: "beta").utf8)
            ))
        let reply = try await browser.submit(moved, try credentials(fixture))
        #expect(reply.answer.status == 400 && reply.sessionCookie == nil)
    }
}
