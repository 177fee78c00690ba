import AssentCore
import Foundation
import Testing

@testable import AssentServer

@Suite("The form post response mode", .server)
struct FormPostTests {
    private func fields(_ page: String) -> [String: String] {
        var fields: [String: String] = [:]
        for match in page.matches(of: /<input type="hidden" name="([^"]+)" value="([^"]*)">/) {
            fields[String(match.1)] = String(match.2).replacing("&amp;", with: "&")
        }
        return fields
    }

    @Test("The answer is a form that sends itself to the redirect URI, and the code in it is good")
    func answer() async throws {
        let fixture = try #require(ServerFixture.shared)
        let reply = try await fixture.authorize(
            session: try await fixture.session(), [("response_mode", "form_post")])
        #expect(reply.status == 200 && reply["Location"] == nil)
        #expect(reply.text.contains(#"<form method="post" action="http://127.0.0.1/callback">"#), "\(reply.text)")
        let fields = fields(reply.text)
        #expect(fields["state"] == "st/1" && fields["client_id"] == "bank-app")
        #expect(fields["iss"] == fixture.oauth("").dropLast().description)
        #expect(fields["code"]?.isEmpty == false)
        // The one script is the one that the policy names, and the form may go to the client alone.
        let policy = try #require(reply["Content-Security-Policy"])
        let script = try #require(reply.text.firstMatch(of: /<script>(.*)<\/script>/)).1
        let digest = Data(SHA2.sha256(Array(script.utf8))).base64EncodedString()
        #expect(policy.contains("script-src 'sha256-\(digest)'"), "\(policy)")
        #expect(policy.contains("form-action 'self' http://127.0.0.1"), "\(policy)")
        #expect(reply["Cache-Control"] == "no-store")
    }

    @Test("An error goes the same way, what is in it as text, and a mode that nobody knows is refused")
    func errors() async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        let state = "\"><script>alert(1)</script>"
        let reply = try await fixture.authorize(
            session: session, [("response_mode", "form_post"), ("scope", "secrets"), ("state", state)])
        #expect(reply.status == 200 && fields(reply.text)["error"] == "invalid_scope", "\(reply.text)")
        #expect(!reply.text.contains("<script>alert"), "\(reply.text)")
        let unknown = try await fixture.authorize(session: session, [("response_mode", "fragment")])
        #expect(unknown.status == 302 && unknown.parameter("error") == "invalid_request")
        let discovery = try await fixture.send("GET", fixture.oauth(".well-known/openid-configuration"))
        #expect(discovery.json["response_modes_supported"] == ["query", "form_post"])
    }
}
