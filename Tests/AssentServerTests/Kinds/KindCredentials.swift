import AssentCore
import AssentStore
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

/// A kind of caller, by the name of its column in docs/resources.md.
enum KindColumn: String, CaseIterable, Sendable {
    case user, stateless, implicit, device, client, nobody

    /// For what its session is made, where it has one.
    var session: SessionKind? { SessionKind(rawValue: rawValue) }
}

/// What a caller of one kind really has at a server.
struct KindCredentials: Sendable {
    let kind: KindColumn

    /// The session's token; `nil` for a caller without a user.
    var session: String?

    /// The access token; `nil` for nobody.
    var access: String?

    /// The refresh token that came with the access token.
    var refresh: String?

    /// The installation that the access token, and the session, belongs to.
    var instance: RegistrationDoor.Instance?

    /// The caller of a kind, at a server with the app `pay` and the client `jobs`. The user is Ana.
    static func make(_ kind: KindColumn, at door: RegistrationDoor) async throws -> KindCredentials {
        let fixture = door.fixture
        switch kind {
        case .stateless:
            let instance = try await door.instance()
            let session = try await door.statelessSession(instance)
            let reply = try await door.tokens(of: instance, session: session)
            #expect(reply.json["token_type"] == "DPoP" && reply.json["refresh_token"] == nil, "\(reply.text)")
            return KindCredentials(
                kind: kind, session: session, access: try #require(reply.json["access_token"]?.string),
                instance: instance)
        case .user, .implicit:
            let session = try await fixture.session("ana")
            let tokens = try await fixture.tokens(session: session)
            if let made = kind.session { try await fixture.turn(session, into: made) }
            return KindCredentials(kind: kind, session: session, access: tokens.access, refresh: tokens.refresh)
        case .device:
            let instance = try await door.instance()
            let reply = try await door.ownToken(instance.id, by: instance.key, isBound: true)
            #expect(reply.json["token_type"] == "DPoP" && reply.json["refresh_token"] == nil, "\(reply.text)")
            return KindCredentials(
                kind: kind, access: try #require(reply.json["access_token"]?.string), instance: instance)
        case .client:
            let reply = try await fixture.send(
                "POST", fixture.oauth("access_token"), [form, basic("jobs")], text: "grant_type=client_credentials")
            #expect(reply.json["refresh_token"] == nil)
            return KindCredentials(kind: kind, access: try #require(reply.json["access_token"]?.string))
        case .nobody: return KindCredentials(kind: kind)
        }
    }

    /// The fields of a request with the access token, proved where the token belongs to a key; none for nobody.
    func byToken(_ fixture: ServerFixture, _ method: String, _ url: String) async throws -> [(String, String)] {
        guard let access else { return [] }
        guard let key = instance?.key else { return ServerFixture.bearer(access) }
        return try await fixture.proved(method, url, token: access, by: key)
    }

    /// The fields of each way in which the caller can present what it has: the access token, and the session. Nobody
    /// has the one way to present nothing.
    func ways(_ fixture: ServerFixture, _ method: String, _ url: String) async throws -> [[(String, String)]] {
        let byToken = try await byToken(fixture, method, url)
        guard session != nil else { return [byToken] }
        return [byToken, try await bySession(fixture, method, url)]
    }

    /// The fields of a request with the session, proved where it belongs to a key; none without one.
    func bySession(
        _ fixture: ServerFixture, _ method: String, _ url: String, other: String? = nil
    ) async throws -> [(String, String)] {
        guard let session = other ?? session else { return [] }
        guard let key = instance?.key else { return ServerFixture.session(session) }
        return try await fixture.proved(method, url, session: session, by: key)
    }

    static let form = ("Content-Type", "application/x-www-form-urlencoded")
    static let json = ("Content-Type", "application/json")

    /// How a client of the fixture says who it is.
    static func basic(_ client: String) -> (String, String) {
        let text = "\(client):\(FixtureConfiguration.clientSecret)"
        return ("Authorization", "Basic \(Data(text.utf8).base64EncodedString())")
    }
}

extension ServerFixture {
    /// Turns a session into one of another kind, which no login does, so the row is changed in place.
    func turn(_ session: String, into kind: SessionKind) async throws {
        let id = try #require(await Sessions(server.context).live(token: Secret(session))).id
        _ = try await server.context.database.run(
            SQLStatement(
                "UPDATE sessions SET kind = \(kind.rawValue) WHERE id = \(id)", expecting: .exactly(1)))
        #expect(try await Sessions(server.context).live(token: Secret(session))?.kind == kind)
    }
}
