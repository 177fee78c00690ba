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
