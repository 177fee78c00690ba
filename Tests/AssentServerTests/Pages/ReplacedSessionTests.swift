import AssentCore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("A session ends when another begins, not when a link asks for it")
struct ReplacedSessionTests {
    private func credentials(_ fixture: ServerFixture, _ username: String) throws -> [(String, String?)] {
        [("IDToken1", username), ("IDToken2", try fixture.account(username).password.reveal())]
    }

    private func isAlive(_ fixture: ServerFixture, _ token: String) async throws -> Bool {
        try await Sessions(fixture.server.context).live(token: Secret(token)) != nil
    }

    private func ends(_ fixture: ServerFixture) async throws -> [String] {
        try await AuditLog(fixture.server.context).newest(100).filter { $0.event == .sessionEnd }
            .map { "\($0.reason ?? "") \($0.sessionAuditID ?? "")" }
    }

    @Test(
        "A link on anybody's page, opened and left, signs nobody out",
        arguments: [[("prompt", "login")], [("max_age", "10")], [("prompt", "login"), ("acr_values", "Quick")]])
    func link(parameters: [(String, String)]) async throws {
        try await ServerFixture.run { fixture in
            let token = try await fixture.session()
            fixture.clock.advance(by: 60)
            let browser = Browser(fixture, session: token)
            let sent = try await browser.open(
                fixture.authorizationURL(parameters), [("Sec-Fetch-Site", "cross-site")])
            let page = try await browser.open(try #require(sent.answer["Location"]))
            #expect(page.answer.status == 200 && page.action != nil, "somebody is asked to sign in")
            let wrong = try await browser.submit(page, [("IDToken1", "ana"), ("IDToken2", "wrong")])
            #expect(wrong.sessionCookie == nil && wrong.action != nil)
            #expect(try await isAlive(fixture, token))
            #expect(browser.session == token)
            #expect(try await ends(fixture).isEmpty)
        }
    }

    @Test(
        "Who signs in anew, as themselves or as somebody else, has one session, and the end of the other is on record")
    func replaced() async throws {
        for username in ["ana", "ben"] {
            try await ServerFixture.run { fixture in
                let token = try await fixture.session("ana")
                let old = try #require(try await Sessions(fixture.server.context).live(token: Secret(token)))
                let browser = Browser(fixture, session: token)
                let sent = try await browser.open(
                    fixture.authorizationURL([("prompt", "login"), ("acr_values", "Quick")]))
                let first = try await browser.open(try #require(sent.answer["Location"]))
                let wrong = try await browser.submit(first, [("IDToken1", username), ("IDToken2", "wrong")])
                #expect(try await isAlive(fixture, token))
                let done = try await browser.submit(wrong, credentials(fixture, username))
                #expect(done.answer.status == 303)
                let new = try #require(browser.session)
                #expect(new != token)
                #expect(try await !isAlive(fixture, token))
                let session = try #require(try await Sessions(fixture.server.context).live(token: Secret(new)))
                #expect(session.user.username == username)
                #expect(session.properties["Service"]?.string == "Quick", "nothing of the old session is carried over")
                #expect(try await ends(fixture) == ["replaced \(old.auditID)"])
                let back = try await browser.open(try #require(done.answer["Location"]))
                #expect(back.answer.parameter("code") != nil)
            }
        }
    }

    @Test("A client that expects another user leads to a sign-in, not round in a circle")
    func otherUserExpected() async throws {
        try await ServerFixture.run { fixture in
            let ben = try await fixture.session("ben")
            let hint = try await fixture.tokens(session: ben).id
            let browser = Browser(fixture, session: try await fixture.session("ana"))
            let sent = try await browser.open(fixture.authorizationURL([("id_token_hint", hint)]))
            let page = try await browser.open(try #require(sent.answer["Location"]))
            #expect(page.answer.status == 200 && page.action != nil)
        }
    }

    @Test("An upgrade ends the weaker session on record")
    func upgrade() async throws {
        try await ServerFixture.run { fixture in
            let token = try await fixture.session()
            let old = try #require(try await Sessions(fixture.server.context).live(token: Secret(token)))
            let browser = Browser(fixture, session: token)
            let first = try await browser.open(fixture.signInPage([("realm", "/alpha"), ("service", "Quick")]))
            #expect(try await browser.submit(first, credentials(fixture, "ana")).answer.status == 200)
            #expect(try await !isAlive(fixture, token))
            #expect(try await ends(fixture) == ["upgrade \(old.auditID)"])
        }
    }

    @Test("The ID token of another session ends that one, and leaves the browser's own and its cookie alone")
    func foreignHint() async throws {
        try await ServerFixture.run { fixture in
            let other = try await fixture.session("ben")
            let hint = try await fixture.tokens(session: other).id
            let mine = try await fixture.session("ana")
            let own = try await fixture.tokens(session: mine).id
            func end(_ hint: String) async throws -> Answer {
                try await fixture.send(
                    "GET", fixture.oauth("connect/endSession?") + ServerFixture.query([("id_token_hint", hint)]),
                    [("Cookie", "iPlanetDirectoryPro=\(mine)")])
            }
            let foreign = try await end(hint)
            #expect(foreign.status == 204 && foreign["Set-Cookie"] == nil)
            #expect(try await isAlive(fixture, mine))
            #expect(try await !isAlive(fixture, other))
            let done = try await end(own)
            #expect(done.status == 204 && done["Set-Cookie"]?.contains("Max-Age=0") == true)
            #expect(try await !isAlive(fixture, mine))
        }
    }
}
