import AssentCore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Sign-ins that leave nothing behind, over HTTP")
struct StatelessTests {
    private static func refusal(_ answer: Answer) -> String {
        "\(answer.status) \(answer.json["detail"]?["reason"]?.string ?? "")"
    }

    private static func live(_ session: String, _ door: RegistrationDoor) async throws -> LiveSession? {
        try await Sessions(door.fixture.server.context).live(token: Secret(session))
    }

    @Test("32 A session is of the kind from birth, lives as long as one access token, and gives no refresh token")
    func life() async throws {
        try await RegistrationDoor.run(app: RegistrationDoor.stateless) { door in
            let fixture = door.fixture
            let instance = try await door.instance()
            let session = try await door.statelessSession(instance)
            let found = try #require(try await Self.live(session, door))
            #expect(found.kind == .stateless && found.isOfJourney)
            #expect(found.sender?.keyThumbprint == instance.key.thumbprint)

            let reply = try await door.tokens(of: instance, session: session)
            #expect(reply.status == 200 && reply.json["refresh_token"] == nil, "\(reply.text)")
            #expect(reply.json["scope"]?.string?.contains("offline_access") == false, "\(reply.text)")
            let lifetime = try #require(reply.json["expires_in"]?.integer)
            #expect(found.expiresAt - found.createdAt == lifetime)
            let access = try #require(reply.json["access_token"]?.string)
            func status() async throws -> JSONValue {
                try await fixture.send(
                    "POST", fixture.oauth("introspect"),
                    [KindCredentials.form, KindCredentials.basic("back-office")],
                    text: ServerFixture.query([("token", access)])
                ).json
            }
            #expect(try await status()["assent_kind"] == "stateless")

            fixture.clock.advance(by: Double(lifetime))
            #expect(try await Self.live(session, door) == nil)
            #expect(try await status()["active"] == false)
        }
    }

    @Test("32 Two sign-ins do not see each other, and the end of one leaves the other")
    func two() async throws {
        try await RegistrationDoor.run(app: RegistrationDoor.stateless) { door in
            let instance = try await door.instance()
            let (first, second) = (
                try await door.statelessSession(instance), try await door.statelessSession(instance)
            )
            #expect(first != second)
            let url = door.fixture.json("sessions?_action=logout")
            let ended = try await door.fixture.send(
                "POST", url,
                [KindCredentials.json]
                    + (try await door.fixture.proved("POST", url, session: first, by: instance.key)), text: "{}")
            #expect(ended.status == 200, "\(ended.text)")
            #expect(try await Self.live(first, door) == nil)
            #expect(try await Self.live(second, door) != nil)
        }
    }

    @Test("An app that does not say so, a key that is not registered and a request without a key are refused")
    func refused() async throws {
        try await RegistrationDoor.run { door in
            let key = try await door.instance().key
            let answer = try await door.signInStateless(by: key)
            #expect(Self.refusal(answer) == "403 statelessRefused")
        }
        try await RegistrationDoor.run(app: RegistrationDoor.stateless) { door in
            for key in [try ProofKey(), nil] {
                let answer = try await door.signInStateless(by: key)
                #expect(Self.refusal(answer) == "403 statelessRefused")
            }
        }
    }

    @Test("Only the first request says so: an answer that says it gives a user's session")
    func late() async throws {
        try await RegistrationDoor.run(app: RegistrationDoor.stateless) { door in
            let (fixture, key) = (door.fixture, try await door.instance().key)
            let url = fixture.json("authenticate")
            let query = ServerFixture.query(ServerFixture.service("Quick"))
            let page = try await fixture.send(
                "POST", url + "?" + query, [try await fixture.proof("POST", url, by: key)])
            let filled = try ServerFixture.filled(page.json, fixture.answers(of: "ana")).serializedBytes()
            let end = try await fixture.send(
                "POST", url + "?stateless=true",
                [try await fixture.proof("POST", url, by: key), KindCredentials.json], body: filled)
            let session = try #require(end.json["tokenId"]?.string, "\(end.text)")
            #expect(end.json["assent_kind"] == nil)
            #expect(try await Self.live(session, door)?.kind == .user)
        }
    }

    @Test("An installation that is removed before the last answer, and after it, has no session")
    func removed() async throws {
        try await RegistrationDoor.run(app: RegistrationDoor.stateless) { door in
            let (fixture, instance) = (door.fixture, try await door.instance())
            let session = try await door.statelessSession(instance)
            let url = fixture.json("authenticate")
            let query = ServerFixture.query(ServerFixture.service("Quick") + [("stateless", "true")])
            let page = try await fixture.send(
                "POST", url + "?" + query, [try await fixture.proof("POST", url, by: instance.key)])
            let removed = try await door.manage("DELETE", instance)
            #expect(removed.status == 204, "\(removed.text)")

            // No grant hangs on it: it ends with the installation nevertheless.
            #expect(try await Self.live(session, door) == nil)
            let filled = try ServerFixture.filled(page.json, fixture.answers(of: "ana")).serializedBytes()
            let end = try await fixture.send(
                "POST", url, [try await fixture.proof("POST", url, by: instance.key), KindCredentials.json],
                body: filled)
            #expect(Self.refusal(end) == "403 statelessRefused")
        }
    }

    @Test("A server that is started again with a file that allows none any more does not know the session")
    func switchedOff() async throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        func start(_ lines: String, clock: ManualClock = ManualClock()) async throws -> ServerFixture {
            try await ServerFixture(kept: directory, clock: clock, editing: { RegistrationDoor.file($0, lines) })
        }
        let first = try await start(RegistrationDoor.stateless)
        let door = try await RegistrationDoor(first)
        let instance = try await door.instance()
        let session = try await door.statelessSession(instance)
        await first.stop()
        for (lines, isOn) in [(RegistrationDoor.stateless, true), ("", false)] {
            let node = try await start(lines, clock: first.clock)
            let url = node.json("sessions?_action=getSessionInfo")
            let answer = try await node.send(
                "POST", url,
                [KindCredentials.json] + (try await node.proved("POST", url, session: session, by: instance.key)),
                text: "{}")
            #expect(answer.status == (isOn ? 200 : 401), "\(answer.text)")

            // A journey begins beside it as beside any session that has ended.
            let journeys = node.json("authenticate")
            let begun = try await node.send(
                "POST", journeys + "?" + ServerFixture.query(ServerFixture.service("Quick")),
                try await node.proved("POST", journeys, session: session, by: instance.key))
            #expect(Self.refusal(begun) == (isOn ? "403 token_kind" : "200 "), "\(begun.text)")
            #expect((begun.json["authId"] == nil) == isOn, "\(begun.text)")
            await node.stop()
        }
    }

    @Test("It does not become a user's session by a later journey, nor a user's session one of its kind")
    func keeps() async throws {
        try await RegistrationDoor.run(app: RegistrationDoor.stateless) { door in
            let (fixture, instance) = (door.fixture, try await door.instance())
            let session = try await door.statelessSession(instance)
            for more in [[], [("ForceAuth", "true")]] {
                let later = try await fixture.runProvedJourney(
                    ServerFixture.service("Quick") + more, session: session, by: instance.key,
                    answer: fixture.answers(of: "ana"))
                #expect(Self.refusal(later) == "403 token_kind", "\(later.text)")
                let again = try await door.signInStateless(by: instance.key, session: session, more)
                #expect(Self.refusal(again) == "403 token_kind", "\(again.text)")
            }
            #expect(try await Self.live(session, door)?.kind == .stateless)

            let users = try await fixture.boundSession(to: instance.key)
            for more in [[], [("ForceAuth", "true")]] {
                let turned = try await door.signInStateless(by: instance.key, session: users, more)
                #expect(turned.status == 400 && turned.json["tokenId"] == nil, "\(turned.text)")
            }
            #expect(try await Self.live(users, door)?.kind == .user)
        }
    }

    @Test("Its code is for its own installation alone")
    func foreign() async throws {
        try await RegistrationDoor.run(app: RegistrationDoor.stateless) { door in
            let (instance, other) = (try await door.instance(), try await door.instance())
            let session = try await door.statelessSession(instance)
            for client in [other.id, "bank-app"] {
                let answer = try await door.code(
                    for: client, session: session, by: instance.key, scope: "openid")
                #expect(answer.parameter("code") == nil && answer.parameter("error") == "login_required")
            }
            let own = try await door.code(for: instance.id, session: session, by: instance.key)
            #expect(own.parameter("code") != nil, "\(own.text)")
        }
    }
}
