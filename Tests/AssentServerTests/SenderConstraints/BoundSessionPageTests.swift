import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Sessions that belong to a key, in a browser", .server)
struct BoundSessionPageTests {
    private static let html = [("Accept", "text/html"), ("Sec-Fetch-Mode", "navigate")]

    @Test("A sign-in that fails with a session's proof says so, and does not ask for the proof a second time")
    func failedSignIn() async throws {
        try await ServerFixture.run { fixture in
            let key = try ProofKey()
            let session = try await fixture.boundSession(to: key)
            let browser = Browser(fixture, session: session)
            let page = fixture.server("/UI/Login")
            func proof(_ method: String) async throws -> (String, String) {
                try await fixture.proof(method, page, session: session, by: key)
            }
            let url = fixture.signInPage([("realm", "/alpha"), ("service", "Quick")])
            let first = try await browser.open(url, [try await proof("GET")])
            #expect(first.answer.status == 200 && first.action != nil)
            let failed = try await browser.post(
                first, [("IDToken1", "ana"), ("IDToken2", "wrong")],
                fields: [("Origin", browser.origin), try await proof("POST")])
            #expect(failed.answer["WWW-Authenticate"] == nil, "\(failed.text)")
            let again = try await browser.open(url, [try await proof("GET")])
            #expect(again.answer.status == 200 && again.action != nil)
        }
    }

    @Test("A session that belongs to a key is not set as a cookie, and one without a key is")
    func noCookie() async throws {
        try await ServerFixture.run { fixture in
            let answers = try fixture.answers(of: "ana")
            let key = try ProofKey()
            for by in [key, nil] {
                let reply = try await fixture.runProvedJourney(ServerFixture.service("Quick"), by: by, answer: answers)
                #expect(reply.json["tokenId"] != nil, "\(reply.text)")
                #expect((reply["Set-Cookie"] == nil) == (by != nil))
            }
        }
    }

    @Test("A browser whose cookie has a session that belongs to a key loses the cookie, and signs in anew")
    func lockedOut() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.boundSession(to: try ProofKey())
            let url = fixture.signInPage([("realm", "/alpha"), ("service", "Quick")])
            for isSignOut in [false, true] {
                let browser = Browser(fixture, session: session)
                let refused: Browser.Page
                if isSignOut {
                    let answer = try await fixture.send(
                        "POST", url,
                        [
                            ("Cookie", "\(ServerFixture.cookieName)=\(session)"), ("Origin", browser.origin),
                            ("Content-Type", "application/x-www-form-urlencoded"),
                        ], text: "signout=1")
                    refused = Browser.Page(url: url, answer: answer)
                } else {
                    refused = try await browser.open(url)
                    #expect(browser.session == nil)
                }
                #expect(refused.answer.status == 401)
                #expect(refused.sessionCookie?.contains("Max-Age=0") == true)
                // The session itself needs its key.
                #expect(try await Sessions(fixture.server.context).live(token: Secret(session)) != nil)
            }
            let browser = Browser(fixture)
            let proof = try await fixture.proof("GET", fixture.server("/UI/Login"), by: try ProofKey())
            let first = try await browser.open(url, [proof])
            let password = try fixture.account("ana").password.reveal()
            let done = try await browser.submit(first, [("IDToken1", "ana"), ("IDToken2", password)])
            #expect(done.answer.status == 200, "\(done.text)")
            let token = try #require(browser.session)
            let live = try #require(try await Sessions(fixture.server.context).live(token: Secret(token)))
            #expect(live.sender == nil)
        }
    }

    @Test("The end of another session, by its ID token, spends no proof of the browser's own")
    func foreignHint() async throws {
        try await ServerFixture.run { fixture in
            let key = try ProofKey()
            let session = try await fixture.boundSession(to: key)
            let hint = try await fixture.tokens(session: try await fixture.session("ben")).id
            let url = fixture.oauth("connect/endSession")
            let fields =
                Self.html + [
                    ("Cookie", "\(ServerFixture.cookieName)=\(session)"),
                    try await fixture.proof("GET", url, session: session, by: key),
                ]
            let query = ServerFixture.query([("id_token_hint", hint)])
            let ended = try await fixture.send("GET", "\(url)?\(query)", fields)
            #expect(ended.status == 200 && ended["Set-Cookie"] == nil)
            #expect(try await fixture.send("GET", url, fields).status == 200)
            #expect(try await fixture.send("GET", url, fields).status == 401)
        }
    }
}
