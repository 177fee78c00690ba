import AssentCore
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("The page that asks for consent")
struct ConsentPageTests {
    private func request(_ fixture: ServerFixture, _ more: [(String, String)] = []) -> String {
        let items =
            [
                ("response_type", "code"), ("client_id", "asking-app"), ("state", "a\"><b>"),
                ("scope", "openid accounts offline_access"), ("code_challenge_method", "S256"),
                ("code_challenge", Base64URL.encode([UInt8](repeating: 7, count: 32))),
            ] + more
            + (more.contains { $0.0 == "redirect_uri" } ? [] : [("redirect_uri", "https://asking.example/callback")])
        return fixture.oauth("authorize") + "?" + ServerFixture.query(items)
    }

    @Test("It says what, for whom and until when; allowed once, it is remembered, listed, and can be taken back")
    func story() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let browser = Browser(fixture, session: session)
            let page = try await browser.open(request(fixture))
            #expect(page.answer.status == 200)
            let until = PageLanguage.english.text(
                Date(timeIntervalSince1970: TimeInterval(fixture.clock.epochSeconds + 365 * 86400)), withTime: false)
            for text in [
                "Allow Asking &amp; Co?", "<strong>ana</strong>", "Know that it is you", "See &lt;your&gt; accounts",
                "Keep its access after you have signed out", until, "https://<wbr>asking.<wbr>example",
                ">Do not allow<",
            ] { #expect(page.text.contains(text), "\(text)") }
            #expect(!page.text.contains(session) && !page.text.contains("<b>"))
            let policy = page.answer["Content-Security-Policy"] ?? ""
            #expect(
                policy.contains("form-action 'self' https://asking.example")
                    && policy.contains("frame-ancestors 'none'"))

            let done = try await browser.submit(page, [("decision", "allow")])
            #expect(done.answer.status == 302 && done.answer.parameter("code") != nil)
            #expect(done.answer.parameter("state") == "a\"><b>")
            #expect(try await browser.open(request(fixture)).answer.parameter("code") != nil)
            #expect(try await browser.open(request(fixture, [("prompt", "none")])).answer.parameter("code") != nil)
            #expect(try await browser.open(request(fixture, [("prompt", "consent")])).action != nil)

            let fields = ServerFixture.session(session) + [("X-Requested-With", "test")]
            let list = try await fixture.send("GET", fixture.json("consents"), fields)
            #expect(list.json["resultCount"] == 1)
            let consent = try #require(list.json["result"]?.array?.first)
            #expect(consent["clientId"] == "asking-app" && consent["clientName"] == "Asking & Co")
            #expect(consent["scopes"] == ["openid", "accounts", "offline_access"])
            let withdraw = fixture.json("consents?_action=withdraw")
            let json = fields + [("Content-Type", "application/json")]
            for (body, status) in [
                ("{}", 400), (#"{"clientId":7}"#, 400), (#"{"clientId":"bank-app"}"#, 404), ("[]", 400),
                (#"{"clientId":"asking-app"}"#, 200), (#"{"clientId":"asking-app"}"#, 404),
            ] {
                #expect(try await fixture.send("POST", withdraw, json, text: body).status == status, "\(body)")
            }
            #expect(
                try await fixture.send("POST", fixture.json("consents?_action=other"), json, text: "{}").status == 501)
            #expect(try await fixture.send("GET", fixture.json("consents")).status == 401)
            #expect(try await browser.open(request(fixture)).action != nil)
        }
    }

    @Test("A denial goes to the client; a form of another site decides nothing")
    func decisions() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let browser = Browser(fixture, session: session)
            let page = try await browser.open(request(fixture))
            for fields in [
                [("Origin", "https://evil.example")], [("Origin", "null")], [], [("Sec-Fetch-Site", "cross-site")],
                [("Origin", "https://app.bank.example")],
                [("Origin", "https://evil.example"), ("Sec-Fetch-Site", "same-origin")],
            ] {
                let forged = try await browser.submit(page, [("decision", "allow")], fields: fields)
                #expect(forged.answer.status == 400 && forged.answer.error == "bad_request", "\(fields)")
            }
            let stranger = Browser(fixture)
            let without = try await stranger.submit(page, [("decision", "allow")])
            #expect(without.answer.status == 400)
            #expect(try await fixture.count("consents") == 0)
            let denied = try await browser.submit(page, [("decision", "deny")])
            #expect(denied.answer.parameter("error") == "access_denied")
            #expect(try await fixture.count("consents") == 0)
        }
    }

    @Test(
        "Who has signed in since in the place of the user who was asked decides nothing, and is asked themselves",
        arguments: ["allow", "deny"])
    func otherUser(decision: String) async throws {
        try await ServerFixture.run { fixture in
            let asked = try await Browser(fixture, session: fixture.session()).open(request(fixture))
            #expect(asked.text.contains("<strong>ana</strong>"))
            let browser = Browser(fixture, session: try await fixture.session("ben"))
            let again = try await browser.submit(asked, [("decision", decision)])
            #expect(again.answer.status == 200 && again.text.contains("<strong>ben</strong>"))
            #expect(again.answer["Location"] == nil)
            #expect(try await fixture.count("consents") == 0)
            #expect(try await fixture.count("oauth_codes") == 0)
            let done = try await browser.submit(again, [("decision", "allow")])
            #expect(done.answer.parameter("code") != nil)
            #expect(try await fixture.count("consents") == 1)
        }
    }

    @Test("Where a form's policy cannot name the way back, a page leads there")
    func wayBack() async throws {
        try await ServerFixture.run { fixture in
            let browser = Browser(fixture, session: try await fixture.session())
            let page = try await browser.open(request(fixture, [("redirect_uri", "http://[::1]:5000/callback")]))
            let done = try await browser.submit(page, [("decision", "allow")])
            #expect(done.answer.status == 200 && done.text.contains("http-equiv=\"refresh\""))
            #expect(done.text.contains("http://[::1]:5000/callback?code="))
        }
    }
}
