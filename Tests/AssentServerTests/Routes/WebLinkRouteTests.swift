import AssentCore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Asking for a link into a browser")
struct WebLinkRouteTests {
    @Test("The endpoint is in the metadata where an app has links, and answers its users' tokens with one")
    func metadata() async throws {
        try await WebLinkDoor.run { door in
            let metadata = try await door.fixture.send("GET", door.fixture.oauth(".well-known/openid-configuration"))
            #expect(
                metadata.json["assent_web_link_endpoint"]?.string == door.fixture.published(door.endpoint))
            _ = try await door.link()
        }
        try await WebLinkDoor.run(app: "") { door in
            let metadata = try await door.fixture.send("GET", door.fixture.oauth(".well-known/openid-configuration"))
            #expect(metadata.json["assent_web_link_endpoint"] == nil)
            let off = try await door.ask()
            #expect(off.status == 403 && off.error == "web_link_disabled")
        }
    }

    @Test("41: Targets that are not listed byte for byte, missing, repeated or huge are refused")
    func targets() async throws {
        try await WebLinkDoor.run { door in
            let target = ServerFixture.escaped(WebLinkDoor.target)
            for text in [
                "", "target=", "x=1", "target=https%3A%2F%2Fevil.example%2F", "target=\(target)%2F", "TARGET=\(target)",
                "target=\(target)&target=\(target)", "target=" + String(repeating: "a", count: 8000),
            ] {
                let answer = try await door.ask(text)
                let expected = text.contains("&") ? "invalid_request" : "invalid_target"
                #expect(answer.status == 400 && answer.error == expected, "\(text.prefix(60)): \(answer.text)")
            }
            #expect(try await door.ask("target=" + String(repeating: "a", count: 20_000)).status == 413)
            #expect(try await door.fixture.send("GET", door.endpoint).status == 405)
            #expect(try await door.fixture.count("web_links") == 0)
        }
    }

    @Test("41: An installation's token is 403 token_kind, another client's is refused, and nobody is 401")
    func kinds() async throws {
        try await WebLinkDoor.run { door in
            let own = try await door.door.ownToken(door.instance.id, by: door.instance.key)
            let device = try #require(own.json["access_token"]?.string)
            let kind = try await door.ask(nil, ServerFixture.bearer(device))
            #expect(kind.status == 403 && kind.error == "token_kind" && kind["WWW-Authenticate"] == nil)
            let bank = try await door.fixture.tokens(session: door.session).access
            let other = try await door.ask(nil, ServerFixture.bearer(bank))
            #expect(other.status == 403 && other.error == "web_link_disabled")
            for fields in [[], ServerFixture.session(door.session), ServerFixture.bearer("x")] {
                #expect(try await door.ask(nil, fields).status == 401)
            }
            #expect(try await door.fixture.count("web_links") == 0)
        }
    }

    @Test("41: A link, and the browser's session, end with the app's sign-out")
    func ends() async throws {
        try await WebLinkDoor.run { door in
            let (first, second) = (try await door.link(), try await door.link())
            let browser = Browser(door.fixture)
            #expect(try await browser.post(try await browser.open(first), []).answer.status == 303)
            #expect(try await door.live(browser.session) != nil)
            let app = try #require(try await door.live(door.session))
            #expect(try await Sessions(door.fixture.server.context).end(id: app.id))
            #expect(try await door.live(browser.session) == nil)
            #expect(try await door.fixture.send("GET", second).status == 410)
            #expect(try await door.post("id=" + WebLinkDoor.id(second)).status == 410)
            #expect(try await door.ask().status == 401)
        }
    }

    @Test("41: A link is not a fresh authentication: it gets no invite for a device")
    func notFresh() async throws {
        try await WebLinkDoor.run { door in
            let browser = Browser(door.fixture)
            _ = try await browser.post(try await browser.open(try await door.link()), [])
            let session = try #require(browser.session)
            func invite(_ token: String) async throws -> Answer {
                try await door.fixture.send(
                    "POST", door.fixture.signing("invites"),
                    ServerFixture.session(token) + [("Content-Type", "application/json")], text: "{}")
            }
            let refused = try await invite(session)
            #expect(refused.status >= 400 && refused.text.contains("fresh"), "\(refused.text)")
            #expect(try await door.live(session)?.isOfJourney == false)
        }
    }

    @Test("41: After a fence no link is good")
    func fence() async throws {
        try await WebLinkDoor.run { door in
            let link = try await door.link()
            let outcome = try await RestoredDatabase(door.fixture.server.context).fence(keepingSessions: true)
            #expect(outcome.counts[.webLinks] == 1)
            #expect(try await door.fixture.send("GET", link).status == 410)
            #expect(try await door.post("id=" + WebLinkDoor.id(link)).status == 410)
            #expect(try await door.made() == 0)
        }
    }
}
