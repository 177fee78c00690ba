import AssentCore
import Foundation
import Testing

@testable import AssentServer

@Suite("Approving in a browser", .server)
struct StepUpPageTests {
    private static let json = [("Content-Type", "application/json")]

    private func fixture() throws -> ServerFixture { try #require(ServerFixture.shared) }

    /// Asks the gateway for a payment without asking for the header form and follows where it leads.
    private func begin(
        _ fixture: ServerFixture, _ browser: Browser, _ session: String, target: String = "/nods",
        body: String = FixtureBody.transfer
    ) async throws -> (page: Browser.Page, back: String) {
        let refused = try await fixture.send(
            "POST", fixture.gateway(target), Self.json + ServerFixture.session(session), text: body)
        #expect(refused.status == 307)
        let location = try #require(refused["Location"])
        let page = try await browser.open(location)
        #expect(page.answer.status == 200 && page.text.contains("Approve a request"))
        return (page, try #require(refused.parameter("goto")))
    }

    /// A browser cannot send a payment again: it is not led to where it would only read, and the page says so.
    private func expectUnsent(_ page: Browser.Page, _ browser: Browser, _ fixture: ServerFixture) async throws {
        #expect(!page.text.contains("http-equiv=\"refresh\""))
        #expect(page.text.contains("<h1>Approved</h1>") && page.text.contains("Nothing has been sent yet."))
        try await expectWayBack(page, browser, fixture)
    }

    /// The page's button leads to the route's `home`, which is there for the user.
    private func expectWayBack(_ page: Browser.Page, _ browser: Browser, _ fixture: ServerFixture) async throws {
        let button = try #require(page.text.firstMatch(of: /<a class="button" href="([^"]*)">Back to ([^<]*)<\/a>/))
        #expect(button.1 == fixture.gateway("/accounts") && button.2 == "https://localhost:\(fixture.gatewayPort)")
        #expect(try await browser.open(Browser.unescaped(button.1)).answer.status == 200)
    }

    @Test("What is approved is shown, nothing begins by looking, and the request then goes through once")
    func approve() async throws {
        let fixture = try fixture()
        let session = try await fixture.session()
        let browser = Browser(fixture, session: session)
        let (page, back) = try await begin(fixture, browser, session, target: "/transfers")
        _ = try await browser.open(page.url)
        let asked = try await browser.submit(page, [])
        #expect(asked.answer.status == 200)
        #expect(
            asked.text.contains(
                "<div><dt>Amount</dt><dd><bdi>200.00 EUR</bdi></dd></div><div><dt>To</dt><dd><bdi>Bob</bdi></dd></div>")
        )
        // The address breaks between its parts.
        #expect(asked.text.contains("POST https://<wbr>localhost:\(fixture.gatewayPort)/<wbr>transfers"))
        #expect(asked.text.contains(">Approve</button>") && asked.text.contains(">Decline</button>"))
        // Return in a field must not approve.
        let first = try #require(asked.text.firstMatch(of: /<button name="IDToken(\d)" value="(\d)"/))
        #expect(first.2 == "1")
        let code = try await browser.submit(asked, [("IDToken\(first.1)", "0")])
        #expect(code.text.contains(#"autocomplete="one-time-code""#) && code.text.contains("Confirm that it is you"))
        let done = try await browser.submit(code, [("IDToken1", try fixture.freshCode("ana"))])
        #expect(done.answer.status == 200 && done.sessionCookie == nil)
        try await expectUnsent(done, browser, fixture)
        let sent = try await fixture.send(
            "POST", back, Self.json + ServerFixture.session(session), text: FixtureBody.transfer)
        #expect(sent.status == 201)
        let again = try await fixture.send(
            "POST", back, Self.json + ServerFixture.session(session), text: FixtureBody.transfer)
        #expect(again.status == 409)
    }

    @Test("A request that is declined is told to be, and stays refused")
    func decline() async throws {
        let fixture = try fixture()
        let session = try await fixture.session()
        let browser = Browser(fixture, session: session)
        let (page, back) = try await begin(fixture, browser, session)
        let asked = try await browser.submit(page, [])
        let declined = try await browser.submit(asked, [("IDToken3", "1")])
        #expect(declined.answer.status == 401 && declined.text.contains("Not approved"))
        #expect(declined.text.contains("You declined it."))
        try await expectWayBack(declined, browser, fixture)
        #expect(!declined.text.contains("http-equiv=\"refresh\""))
        #expect(try await browser.open(page.url).text.contains("Not approved"))
        #expect(try await browser.submit(page, []).text.contains("Not approved"))
        let sent = try await fixture.send(
            "POST", back, Self.json + ServerFixture.session(session), text: FixtureBody.transfer)
        #expect(sent.status == 403)
    }

    @Test("Another user, nobody and another site can neither see nor begin it")
    func others() async throws {
        let fixture = try fixture()
        let session = try await fixture.session()
        let browser = Browser(fixture, session: session)
        let (page, _) = try await begin(fixture, browser, session)
        for other in [Browser(fixture), Browser(fixture, session: try await fixture.session("ben"))] {
            for refused in [try await other.open(page.url), try await other.submit(page, [])] {
                #expect(refused.answer.status == 401 && refused.text.contains("cannot be approved"))
            }
        }
        let forged = try await browser.submit(page, [], fields: [("Origin", "https://evil.example")])
        #expect(forged.answer.status == 403)
        let asked = try await browser.submit(page, [])
        #expect(asked.answer.status == 200)
        let other = try await Browser(fixture, session: try await fixture.session("ben")).open(page.url)
        #expect(other.answer.status == 401 && !other.text.contains("Amount"))
    }

    @Test("Reload, back and a second click show where the approval stands, with what is approved, and never end it")
    func history() async throws {
        let fixture = try fixture()
        let session = try await fixture.session()
        let browser = Browser(fixture, session: session)
        let (page, back) = try await begin(fixture, browser, session, target: "/transfers")
        let summary =
            "<div><dt>Amount</dt><dd><bdi>200.00 EUR</bdi></dd></div><div><dt>To</dt><dd><bdi>Bob</bdi></dd></div>"
        // A second click, and back to the first page and "Continue" again.
        let asked = try await browser.submit(page, [])
        for again in [
            try await browser.submit(page, []), try await browser.open(page.url), try await browser.submit(page, []),
        ] {
            #expect(again.answer.status == 200 && again.text.contains(">Approve</button>"))
            #expect(again.text.contains(summary) && again.text.contains("For the account <strong>ana</strong>, until "))
        }
        #expect(asked.posted?.status == 303)
        let code = try await browser.submit(asked, [("IDToken3", "0")])
        // The answer again, another one, and a reload.
        for again in [
            try await browser.submit(asked, [("IDToken3", "0")]), try await browser.submit(asked, [("IDToken3", "1")]),
            try await browser.open(page.url), try await browser.submit(page, []),
        ] {
            #expect(again.answer.status == 200 && again.text.contains(#"autocomplete="one-time-code""#))
            #expect(again.text.contains(summary) && again.text.contains("For the account <strong>ana</strong>, until "))
        }
        let done = try await browser.submit(code, [("IDToken1", try fixture.freshCode("ana"))])
        for again in [
            done, try await browser.open(page.url), try await browser.submit(page, []),
            try await browser.submit(code, [("IDToken1", "000000")]),
        ] {
            #expect(again.answer.status == 200)
            try await expectUnsent(again, browser, fixture)
        }
        let fields = Self.json + ServerFixture.session(session)
        #expect(try await fixture.send("POST", back, fields, text: FixtureBody.transfer).status == 201)
        #expect(try await browser.open(page.url).text.contains("Approved before"))
        #expect(try await fixture.send("POST", back, fields, text: FixtureBody.transfer).status == 409)
    }

    @Test("A request that comes with an access token says which app asks")
    func asker() async throws {
        let fixture = try fixture()
        let session = try await fixture.session()
        let browser = Browser(fixture, session: session)
        let (page, _) = try await begin(fixture, browser, session, target: "/transfers")
        #expect(!(try await browser.submit(page, []).text.contains("Asked for by")))
        let token = try await fixture.tokens(session: session).access
        let refused = try await fixture.send(
            "POST", fixture.gateway("/transfers"), Self.json + [("Authorization", "Bearer \(token)")],
            text: FixtureBody.transfer)
        let asked = try await browser.submit(try await browser.open(try #require(refused["Location"])), [])
        #expect(asked.text.contains("Asked for by <strong>bank-app</strong>."))
        let code = try await browser.submit(asked, [("IDToken3", "0")])
        #expect(code.text.contains("Asked for by <strong>bank-app</strong>."))
    }

    @Test(
        "What a request says is text on the page, whatever it looks like",
        arguments: [
            "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "' onmouseover='alert(1)", "&lt;b&gt;",
            "</dd></dl></main><form action=//evil.example>",
        ])
    func hostile(text: String) async throws {
        let fixture = try fixture()
        let session = try await fixture.session()
        let browser = Browser(fixture, session: session)
        let body: JSONValue = ["to": .string(text), "amount": .string(text), "currency": "EUR"]
        let (page, _) = try await begin(
            fixture, browser, session, target: "/transfers",
            body: String(decoding: body.serializedBytes(), as: UTF8.self))
        let asked = try await browser.submit(page, [])
        #expect(asked.answer.status == 200)
        let shown = text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;").replacing("'", with: "&#39;")
        #expect(asked.text.contains("<dt>To</dt><dd><bdi>\(shown)</bdi></dd>"))
        #expect(!asked.text.contains(text))
    }
}
