import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

/// A server with an app that may sign browsers in, and what the app and browsers send for it.
struct WebLinkDoor: Sendable {
    static let target = "https://shop.example/orders?from=app"

    let door: RegistrationDoor
    let instance: RegistrationDoor.Instance

    /// Ana's session at the app.
    let session: String

    /// Her token there.
    let token: String

    var fixture: ServerFixture { door.fixture }

    static func run(
        app lines: String = "\n        webLinks: [\"\(target)\"]", _ body: (WebLinkDoor) async throws -> Void
    ) async throws {
        try await RegistrationDoor.run(app: lines) { door in
            let instance = try await door.instance()
            let session = try await door.fixture.session()
            let token = try await userToken(door, instance, session: session)
            try await body(WebLinkDoor(door: door, instance: instance, session: session, token: token))
        }
    }

    /// A token of a session's user at an instance; with a proof it belongs to the proof's key.
    static func userToken(
        _ door: RegistrationDoor, _ instance: RegistrationDoor.Instance, session: String,
        proof: [(String, String)] = []
    ) async throws -> String {
        let fixture = door.fixture
        let redirect = try await fixture.authorize(
            session: session,
            [
                ("client_id", instance.id), ("scope", "openid accounts"),
                ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
            ])
        let grant = [
            ("grant_type", "authorization_code"), ("code", try #require(redirect.parameter("code"))),
            ("client_id", instance.id), ("redirect_uri", "http://127.0.0.1/callback"),
            ("code_verifier", KeyedApp.verifier),
        ]
        let assertion = try await door.assertion(instance.id, by: instance.key)
        let answer = try await fixture.send(
            "POST", fixture.oauth("access_token"), [form] + proof, text: ServerFixture.query(grant + assertion))
        return try #require(answer.json["access_token"]?.string, "\(answer.text)")
    }

    static let form = ("Content-Type", "application/x-www-form-urlencoded")

    var endpoint: String { fixture.oauth("web_link") }

    /// Asks for a link by these fields, which are the user's token unless others are given.
    func ask(_ text: String? = nil, _ fields: [(String, String)]? = nil) async throws -> Answer {
        try await fixture.send(
            "POST", endpoint, (fields ?? ServerFixture.bearer(token)) + [Self.form],
            text: text ?? ServerFixture.query([("target", Self.target)]))
    }

    /// A new link, at the fixture's address.
    func link() async throws -> String {
        let answer = try await ask()
        #expect(answer.status == 200, "\(answer.text)")
        #expect(answer.json["expires_in"] == 60 && answer["Cache-Control"]?.contains("no-store") == true)
        let url = try #require(answer.json["url"]?.string)
        let path = try #require(url.range(of: "/UI/Link?id="))
        #expect(url.hasPrefix(fixture.endpoints.server + "/UI/Link?id="))
        return fixture.server("/UI/Link?id=" + url[path.upperBound...])
    }

    /// The id of a link.
    static func id(_ link: String) -> String { link.split(separator: "=").last.map(String.init) ?? "" }

    var origin: (String, String) { ("Origin", "https://localhost:\(fixture.serverPort)") }

    /// Sends a link's form, from the server's own page unless other fields are given.
    func post(_ text: String, _ fields: [(String, String)]? = nil) async throws -> Answer {
        try await fixture.send("POST", fixture.server("/UI/Link"), (fields ?? [origin]) + [Self.form], text: text)
    }

    func live(_ token: String?) async throws -> LiveSession? {
        guard let token else { return nil }
        return try await Sessions(fixture.server.context).live(token: Secret(token))
    }

    /// How many sessions links have made.
    func made() async throws -> Int64 {
        try #require(
            try await fixture.rows("SELECT count(*) AS n FROM sessions WHERE grant_id IS NOT NULL").first
        ).integer("n")
    }
}
