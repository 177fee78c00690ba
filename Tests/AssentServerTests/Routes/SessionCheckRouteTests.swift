import AssentCore
import Testing

@testable import AssentServer

@Suite("Asking whether a session lives, and hints for the sign-in page", .server)
struct SessionCheckRouteTests {
    private static let listed = ("Origin", "https://app.bank.example")

    @Test("response_type=none without a redirect URI is 204 or 400, and a listed page may read which")
    func none() async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        let url = fixture.oauth("authorize") + "?response_type=none&client_id=bank-app&scope=openid&prompt=none"
        let alive = try await fixture.send(
            "GET", url, [Self.listed, ("Cookie", "\(ServerFixture.cookieName)=\(session)")])
        #expect(alive.status == 204 && alive.bytes.isEmpty)
        #expect(alive["Access-Control-Allow-Origin"] == Self.listed.1)
        #expect(alive["Access-Control-Allow-Credentials"] == "true")
        let gone = try await fixture.send("GET", url, [Self.listed])
        #expect(gone.status == 400 && gone.error == "login_required")
        #expect(gone["Access-Control-Allow-Origin"] == Self.listed.1)
        let other = try await fixture.send("GET", url, [("Origin", "https://evil.example")])
        #expect(other["Access-Control-Allow-Origin"] == nil)
        // A redirect with a code is not a page's to read.
        let code = try await fixture.send(
            "GET", fixture.authorizationURL(), [Self.listed, ("Cookie", "\(ServerFixture.cookieName)=\(session)")])
        #expect(code.status == 302 && code["Access-Control-Allow-Origin"] == nil)
    }

    @Test("login_hint stands in the field for the name, ui_locales chooses the language, up to the sign-in page")
    func hints() async throws {
        let fixture = try #require(ServerFixture.shared)
        let browser = Browser(fixture)
        let asked = try await browser.open(
            fixture.authorizationURL([("login_hint", #"ana"><b>"#), ("ui_locales", "fr-CH de-AT en")]))
        let page = try await browser.open(try #require(asked.answer["Location"]))
        #expect(page.text.contains(#"value="ana&quot;&gt;&lt;b&gt;""#) && !page.text.contains("<b>"))
        #expect(page.text.contains(#"<html lang="de">"#) && page.text.contains("Benutzername"))
        let hidden = try await browser.open(
            fixture.signInPage([("realm", "/alpha"), ("login_hint", "a\u{202E}b"), ("ui_locales", "xx")]))
        #expect(hidden.text.contains(#"<html lang="en">"#) && !hidden.text.contains("\u{202E}"))
    }

    @Test("An address with two slashes is nobody's", arguments: ["//.well-known/openid-configuration", "//authorize"])
    func slashes(_ path: String) async throws {
        let fixture = try #require(ServerFixture.shared)
        #expect(try await fixture.send("GET", fixture.server("/oauth2/realms/root/realms/alpha") + path).status == 404)
    }
}
