import AssentCore
import HTTPTypes
import Testing

@testable import AssentServer

// One after the other: passwords of one user are counted, and many at once look like guessing.
@Suite("Pages of a sign-in can be loaded again", .server, .serialized)
struct SignInHistoryTests {
    private func fixture() throws -> ServerFixture { try #require(ServerFixture.shared) }

    private func credentials(_ fixture: ServerFixture, _ username: String = "ana") throws -> [(String, String?)] {
        [("IDToken1", username), ("IDToken2", try fixture.account(username).password.reveal())]
    }

    @Test("A form leads to a page that is asked for, and asking again shows the same step, to this browser alone")
    func reload() async throws {
        let fixture = try fixture()
        let browser = Browser(fixture)
        let link = fixture.signInPage([("realm", "/alpha"), ("goto", fixture.authorizationURL())])
        let first = try await browser.open(link)
        #expect(browser.cookieNames.isEmpty)
        let second = try await browser.submit(first, credentials(fixture))
        #expect(second.posted?.status == 303 && second.posted?.text.isEmpty == true)
        #expect(browser.cookieNames.count == 1 && browser.session == nil)
        let again = try await browser.open(second.url)
        #expect(again.text.contains(#"autocomplete="one-time-code""#) && !again.text.contains(#"role="alert""#))
        // Whoever has the address alone begins a sign-in of their own.
        let stranger = try await Browser(fixture).open(second.url)
        #expect(stranger.text.contains(#"autocomplete="username""#) && stranger.text.contains("no longer good"))
        // A page that the browser had kept, with another answer: the sign-in goes on where it stands.
        let kept = try await browser.submit(first, credentials(fixture, "ben"))
        #expect(kept.text.contains(#"autocomplete="one-time-code""#) && kept.text.contains("answered that page before"))
        let wrong = try await browser.submit(again, [("IDToken1", "000000")])
        let wrongAgain = try await browser.open(wrong.url)
        for page in [wrong, wrongAgain] {
            #expect(page.text.contains("That did not work.") && page.text.contains(#"aria-invalid="true""#))
        }
        let code = try await browser.submit(wrongAgain, credentials(fixture))
        #expect(code.url == second.url && !code.text.contains(#"role="alert""#))
        let done = try await browser.submit(code, [("IDToken1", try fixture.freshCode("ana"))])
        #expect(done.answer.status == 303 && browser.session != nil)
        #expect(browser.cookieNames == [ServerFixture.cookieName])
        // Back from the app: signed in, and on to the app again.
        #expect(try await browser.open(second.url).answer.status == 303)
    }

    @Test("A cookie that another host may set leads nobody to another's sign-in, whatever stands in its value")
    func planted() async throws {
        let fixture = try fixture()
        let attacker = Browser(fixture)
        let first = try await attacker.open(
            fixture.signInPage([("realm", "/alpha"), ("goto", fixture.authorizationURL())]))
        let second = try await attacker.submit(first, credentials(fixture))
        let set = try #require(second.posted?.all("Set-Cookie").first { $0.hasPrefix(SignInRun.cookiePrefix) })
        let own = set.prefix { $0 != ";" }
        let target = second.url.dropFirst(attacker.origin.count)
        // The Greek question mark is the same character as `;` in Unicode's normal form.
        for (separator, isItsOwn) in [(";", true), ("; ", true), ("\u{37E}", false), ("\u{37E} ", false)] {
            let fields = "Host: localhost\r\nCookie: a=b\(separator)\(own)\r\nConnection: close\r\n"
            let reply = try await fixture.raw("GET \(target) HTTP/1.1\r\n\(fields)\r\n", toGateway: false)
            #expect(reply.hasPrefix("HTTP/1.1 200 "), "\(separator)")
            #expect(reply.contains(#"autocomplete="one-time-code""#) == isItsOwn, "\(separator)")
            #expect(reply.contains(#"autocomplete="username""#) == !isItsOwn, "\(separator)")
        }
    }

    @Test("Without an app that waits, the page that says so can be loaded again too")
    func signedIn() async throws {
        let fixture = try fixture()
        let browser = Browser(fixture)
        let first = try await browser.open(
            fixture.signInPage([("realm", "/alpha"), ("service", "Quick"), ("prompt", "login")]))
        let done = try await browser.submit(first, credentials(fixture))
        #expect(done.posted?.status == 303 && done.sessionCookie != nil)
        for page in [done, try await browser.open(done.url)] {
            #expect(page.answer.status == 200 && page.text.contains("You are signed in"))
        }
        let session = try #require(browser.session)
        try await fixture.signOut(session)
        let after = try await browser.open(done.url)
        #expect(after.text.contains(#"autocomplete="username""#) && !after.text.contains("You are signed in"))
    }

    @Test("A browser keeps a few sign-ins at once, and its requests do not grow without end")
    func many() async throws {
        let fixture = try fixture()
        let browser = Browser(fixture)
        var pages: [Browser.Page] = []
        for _ in 0..<7 {
            let first = try await browser.open(fixture.signInPage([("realm", "/alpha"), ("service", "Quick")]))
            pages.append(try await browser.submit(first, [("IDToken1", "nobody"), ("IDToken2", "wrong")]))
        }
        #expect(browser.cookieNames.count == 4)
        #expect(try await browser.open(try #require(pages.last).url).text.contains("That did not work."))
    }

    @Test("What a page's cookie says is looked at like any other input")
    func cookie() throws {
        let run = try #require(SignInRun(named: "abc-_9"))
        func state(_ cookie: String) -> SignInRun.State? { run.state(in: [.cookie: cookie]) }
        let name = SignInRun.cookiePrefix
        #expect(state("a=b; \(name)abc-_9=failed~~x.y.z") == .page(authID: "x.y.z", notice: .failed))
        #expect(state("\(name)abc-_9=~YW5h~x") == .page(authID: "x", notice: nil, name: "ana"))
        #expect(state("\(name)abc-_9=madeUp~!~x") == .page(authID: "x", notice: nil))
        #expect(state("\(name)abc-_9=done") == .done)
        for other in [
            "", "\(name)abc-_9", "\(name)abc-_9=", "\(name)abc-_8=done", "abc-_9=done", ";;=;~",
            "a=b\u{37E}\(name)abc-_9=done", "a=b\u{37E} \(name)abc-_9=done",
        ] {
            #expect(state(other) == nil, "\(other)")
        }
        for text in ["", "a b", "a;b", "a=b", "ä", String(repeating: "a", count: 33)] {
            #expect(SignInRun(named: text) == nil, "\(text)")
        }
    }

    @Test("No service behind the gateway gets the cookie of a sign-in, or sets one")
    func gateway() {
        let cookie = SessionCookie(name: "session")
        #expect(cookie.removed(from: "a=1; \(SignInRun.cookiePrefix)x=done; b=2") == "a=1; b=2")
        #expect(!cookie.mayBeSet(by: "\(SignInRun.cookiePrefix)x=done; Path=/"))
        #expect(cookie.mayBeSet(by: "__Host-assent=1"))
    }
}
