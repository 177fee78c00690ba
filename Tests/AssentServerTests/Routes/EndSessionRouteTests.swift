import AssentCore
import Testing

@testable import AssentServer

@Suite("Signing out at the end session endpoint", .server)
struct EndSessionRouteTests {
    private static let html = [("Accept", "text/html,application/xhtml+xml"), ("Sec-Fetch-Mode", "navigate")]

    @Test("A browser that comes without an ID token is asked; only our own page's answer ends the session")
    func question() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let browser = Browser(fixture, session: session)
            let url = fixture.oauth("connect/endSession") + "?client_id=bank-app&ui_locales=de"
            let page = try await browser.open(url, Self.html)
            #expect(page.answer.status == 200)
            for text in ["Abmelden?", "<strong>ana</strong>", "<strong>bank-app</strong>", ">Angemeldet bleiben<"] {
                #expect(page.text.contains(text), "\(text)")
            }
            #expect(page.answer["Content-Security-Policy"]?.contains("frame-ancestors 'none'") == true)
            for fields in [
                [("Origin", "https://evil.example")], [("Origin", "https://app.bank.example")], [],
                [("Sec-Fetch-Site", "cross-site")],
            ] {
                let forged = try await browser.submit(page, [("decision", "allow")], fields: Self.html + fields)
                #expect(forged.answer.status == 400, "\(fields)")
            }
            let own = Self.html + [("Origin", browser.origin), ("Sec-Fetch-Site", "same-origin")]
            let kept = try await browser.submit(page, [("decision", "deny")], fields: own)
            #expect(kept.answer.status == 200 && kept.text.contains("Sie sind angemeldet"))
            #expect(browser.session == session)
            let done = try await browser.submit(page, [("decision", "allow")], fields: own)
            #expect(done.answer.status == 200 && done.text.contains("Sie sind abgemeldet"))
            #expect(browser.session?.isEmpty != false)
            let validated = try await fixture.send(
                "POST", fixture.json("sessions?_action=validate"), ServerFixture.session(session))
            #expect(validated.text == #"{"valid":false}"#)
            let again = try await browser.open(url, Self.html)
            #expect(again.answer.status == 200 && again.text.contains("Sie sind abgemeldet"))
        }
    }

    @Test("A program without an ID token is told that it needs one, and no GET decides")
    func programs() async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        let cookie = [("Cookie", "\(ServerFixture.cookieName)=\(session)")]
        let url = fixture.oauth("connect/endSession")
        let missing = try await fixture.send("GET", url, cookie)
        #expect(missing.status == 400 && missing.error == "invalid_request")
        let decided = try await fixture.send("GET", url + "?decision=allow", cookie + Self.html)
        #expect(decided.status == 400)
        let validated = try await fixture.send(
            "POST", fixture.json("sessions?_action=validate"), ServerFixture.session(session))
        #expect(validated.json["valid"] == true)
    }

    @Test("An ID token ends its session from another site, without a cookie, also where it comes twice")
    func fromElsewhere() async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        let tokens = try await fixture.tokens(session: session)
        let reply = try await fixture.send(
            "GET", fixture.oauth("connect/endSession?id_token_hint=&id_token_hint=\(tokens.id)"),
            [("Origin", "https://vault.example"), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "cors")])
        #expect(reply.status == 204)
        let validated = try await fixture.send(
            "POST", fixture.json("sessions?_action=validate"), ServerFixture.session(session))
        #expect(validated.text == #"{"valid":false}"#)
    }
}
