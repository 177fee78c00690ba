import AssentCore
import AssentStore
import Foundation
import StoreTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Sessions over HTTP", .server)
struct SessionRouteTests {
    private func call(
        _ fixture: ServerFixture, _ query: String, _ fields: [(String, String)] = [], body: String? = nil
    ) async throws -> Answer {
        try await fixture.send(
            "POST", fixture.json("sessions?" + query),
            fields + (body == nil ? [] : [("Content-Type", "application/json")]), body: body.map { Array($0.utf8) })
    }

    @Test("getSessionInfo tells six texts and the audit id")
    func information() async throws {
        let fixture = try #require(ServerFixture.shared)
        let token = try await fixture.session()
        let reply = try await call(fixture, "_action=getSessionInfo", ServerFixture.session(token))
        #expect(reply.status == 200)
        #expect(
            reply.json.object?.names == [
                "username", "universalId", "realm", "latestAccessTime", "maxIdleExpirationTime",
                "maxSessionExpirationTime", "properties",
            ])
        #expect(reply.json["username"] == "ana" && reply.json["realm"] == "/alpha")
        #expect(reply.json["universalId"]?.string?.hasPrefix("id=ana,ou=user") == true)
        #expect(reply.json["properties"]?["AMCtxId"]?.string?.isEmpty == false)
        func date(_ name: String) throws -> Date {
            try Date(#require(reply.json[name]?.string), strategy: .iso8601)
        }
        #expect(try date("maxIdleExpirationTime").timeIntervalSince(date("latestAccessTime")) == 1800)
        #expect(try date("maxSessionExpirationTime").timeIntervalSince(date("latestAccessTime")) == 7200)
    }

    @Test("validate tells whose session it is")
    func validate() async throws {
        let fixture = try #require(ServerFixture.shared)
        let token = try await fixture.session()
        let reply = try await call(fixture, "_action=validate", ServerFixture.session(token))
        #expect(reply.json["valid"] == true && reply.json["uid"] == "ana" && reply.json["realm"] == "/alpha")
        #expect(reply.json["sessionUid"]?.string?.isEmpty == false)
        #expect(
            try await call(fixture, "_action=validate", ServerFixture.session("nobody")).text == #"{"valid":false}"#)
    }

    @Test("A page that one realm lists neither sees nor ends the session of another realm that is in the cookie")
    func pageOfAnotherRealm() async throws {
        let fixture = try #require(ServerFixture.shared)
        let bob = try await fixture.session("bob", realm: "beta")
        let page = [("Origin", "https://app.bank.example"), ("X-Requested-With", "test")]
        let cookie = [("Cookie", "\(ServerFixture.cookieName)=\(bob)")]
        for action in ["getSessionInfo", "getSessionInfoAndResetIdleTime", "logout"] {
            let refused = try await call(fixture, "_action=\(action)", page + cookie)
            #expect(refused.status == 401 && !refused.text.contains("bob"), "\(action)")
        }
        #expect(try await call(fixture, "_action=validate", page + cookie).text == #"{"valid":false}"#)
        let ana = try await fixture.session()
        let own = [("Cookie", "\(ServerFixture.cookieName)=\(ana)")]
        #expect(try await call(fixture, "_action=getSessionInfo", page + own).json["username"] == "ana")
        // Who knows the token may ask about it, and a program without a page in whichever realm.
        let known = try await call(fixture, "_action=getSessionInfo&tokenId=\(bob)", page)
        #expect(known.json["username"] == "bob")
        let program = try await call(fixture, "_action=logout", [("X-Requested-With", "test")] + cookie)
        #expect(program.status == 200)
    }

    @Test(
        "A session does not end without its record: not by logout, and not by an ID token",
        .enabled(if: !TestDatabase.isPostgreSQL, "it makes a trigger of SQLite"))
    func withoutRecord() async throws {
        try await ServerFixture.run { fixture in
            let token = try await fixture.session()
            let hint = try await fixture.tokens(session: token).id
            let database = fixture.server.context.database
            let endSession =
                fixture.oauth("connect/endSession?") + ServerFixture.query([("id_token_hint", hint)])
            _ = try await database.run(
                SQLStatement(
                    "CREATE TRIGGER no_records BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'none'); END"))
            #expect(try await call(fixture, "_action=logout", ServerFixture.session(token)).status >= 500)
            #expect(try await fixture.send("GET", endSession).status >= 500)
            #expect(try await Sessions(fixture.server.context).live(token: Secret(token)) != nil)
            _ = try await database.run(SQLStatement("DROP TRIGGER no_records"))
            #expect(try await fixture.send("GET", endSession).status == 204)
            #expect(try await Sessions(fixture.server.context).live(token: Secret(token)) == nil)
            #expect(try await fixture.send("GET", endSession).status == 204)
            let ends = try await AuditLog(fixture.server.context).newest(100).filter { $0.event == .sessionEnd }
            #expect(ends.map(\.reason) == ["end_session"])
        }
    }

    @Test("logout ends the session and the cookie, with a date that old SDKs look for")
    func logout() async throws {
        let fixture = try #require(ServerFixture.shared)
        let token = try await fixture.session()
        let tokens = try await fixture.tokens(session: token)
        let reply = try await call(fixture, "_action=logout", ServerFixture.session(token))
        #expect(reply.status == 200)
        #expect(reply.text == #"{"result":"Successfully logged out"}"#)
        #expect(
            reply["Set-Cookie"]
                == "iPlanetDirectoryPro=; Path=/; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Secure; HttpOnly; SameSite=Lax"
        )
        let denied = #"{"code":401,"reason":"Unauthorized","message":"Access Denied"}"#
        #expect(try await call(fixture, "_action=logout", ServerFixture.session(token)).text == denied)
        #expect(try await call(fixture, "_action=getSessionInfo", ServerFixture.session(token)).text == denied)
        for credentials in [ServerFixture.session(token), ServerFixture.bearer(tokens.access)] {
            #expect(try await fixture.send("GET", fixture.gateway("/accounts"), credentials).status == 401)
        }
    }

    @Test("The session that is meant: named in the body, then the query, then the field, then the cookie")
    func precedence() async throws {
        let fixture = try #require(ServerFixture.shared)
        let body = try await fixture.session("ana")
        let query = try await fixture.session("ben")
        let field = try await fixture.session("pat")
        let cookie = try await fixture.session("ana")
        let all =
            ServerFixture.session(field) + [
                ("Cookie", "iPlanetDirectoryPro=\(cookie)"), ("X-Requested-With", "app"),
            ]
        let action = "_action=getSessionInfo"
        let named = "{\"tokenId\":\"\(body)\"}"
        let first = try await call(fixture, action + "&tokenId=\(query)", all, body: named)
        let second = try await call(fixture, action + "&tokenId=\(query)", all, body: "{}")
        let third = try await call(fixture, action, all)
        let last = try await call(fixture, action, Array(all.dropFirst()))
        #expect([first, second, third, last].map { $0.json["username"] } == ["ana", "ben", "pat", "ana"])
        let ended = try await call(fixture, "_action=logout", all, body: named)
        // The browser keeps the session that it has.
        #expect(ended.status == 200 && ended["Set-Cookie"] == nil)
        #expect(try await call(fixture, action, ServerFixture.session(body)).status == 401)
        #expect(try await call(fixture, action, ServerFixture.session(cookie)).status == 200)
        #expect(try await call(fixture, action, ServerFixture.session(field)).status == 200)
    }

    @Test(
        "What is no action, no token or no POST is refused",
        arguments: [
            ("POST", "_action=dance", 501, "Action dance not implemented for this resource"),
            ("POST", "x=y", 400, nil), ("POST", "_action=getSessionInfo", 401, "Access Denied"),
            ("POST", "_action=logout", 401, "Access Denied"), ("GET", "_action=getSessionInfo", 405, nil),
            ("POST", "_action=logout&_action=validate", 400, nil),
        ] as [(String, String, Int, String?)])
    func refused(_ method: String, _ query: String, _ status: Int, _ message: String?) async throws {
        let fixture = try #require(ServerFixture.shared)
        let reply = try await fixture.send(method, fixture.json("sessions?" + query))
        #expect(reply.status == status)
        if let message { #expect(reply.json["message"]?.string == message) }
    }
}
