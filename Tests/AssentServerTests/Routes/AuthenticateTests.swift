import AssentCore
import AssentTesting
import Foundation
import Testing

@testable import AssentServer

@Suite("Authenticate over HTTP", .server)
struct AuthenticateTests {
    private static let quick = "authIndexType=service&authIndexValue=Quick"

    @Test(
        "A realm is found in each form in which clients write it",
        arguments: [
            ("/json/realms/root/realms/alpha/authenticate", "/alpha"), ("/json/realms/alpha/authenticate", "/alpha"),
            ("/json/alpha/authenticate", "/alpha"), ("/json/authenticate?realm=/alpha", "/alpha"),
            ("/json/realms/root/authenticate?realm=alpha", "/alpha"),
            ("/json/realms/root/realms/beta/authenticate?realm=%2Falpha", "/alpha"),
            ("/json/realms/root/realms/beta/authenticate/", "/beta"),
        ])
    func realms(_ path: String, _ realm: String) async throws {
        let fixture = try #require(ServerFixture.shared)
        let url = fixture.server(path) + (path.contains("?") ? "&" : "?") + Self.quick
        let reply = try await fixture.send("POST", url)
        #expect(reply.status == 200)
        let parts = try #require(reply.json["authId"]?.string).split(separator: ".")
        #expect(parts.count == 3)
        let claims = try JSONValue.parse(#require(Base64URL.decode(parts[1])))
        #expect(claims["realm"]?.string == realm)
        #expect(claims["authIndexType"] == "service" && claims["authIndexValue"] == "Quick")
    }

    @Test(
        "A page is given for each way to say nothing in a body, and for each order of the version",
        arguments: [
            ([], nil), ([("Content-Type", "text/plain")], nil), ([("Content-Type", "application/json")], "{}"),
            ([("Content-Type", "Application/JSON; charset=utf-8")], " { } "), ([], "{}"),
            ([("Accept-API-Version", "resource=2.1,protocol=1.0")], nil),
            ([("Accept-API-Version", "resource=2.1, protocol=1.0")], nil),
            ([("Accept-API-Version", "protocol=1.0,resource=2.1")], nil),
            ([("Accept-API-Version", "protocol=1.0 , resource=2.0")], nil),
        ] as [([(String, String)], String?)])
    func starts(_ fields: [(String, String)], _ body: String?) async throws {
        let fixture = try #require(ServerFixture.shared)
        let reply = try await fixture.send(
            "POST", fixture.json("authenticate") + "?" + Self.quick, fields, body: body.map { Array($0.utf8) })
        #expect(reply.status == 200)
        #expect(reply["Content-API-Version"] == "resource=2.1")
        let callbacks = try #require(reply.json["callbacks"]?.array)
        #expect(callbacks.map { $0["type"] } == ["NameCallback", "PasswordCallback"])
        #expect(callbacks.map { $0["input"]?.array?.first?["name"] } == ["IDToken1", "IDToken2"])
        #expect(callbacks.map { $0["_id"] } == [0, 1])
    }

    @Test("The new session comes as a token and as a cookie that scripts and plain connections never see")
    func cookie() async throws {
        let fixture = try #require(ServerFixture.shared)
        let password = try fixture.account("ana").password.reveal()
        let answer: (String) -> JSONValue? = { ["NameCallback": "ana", "PasswordCallback": .string(password)][$0] }
        let query = [("authIndexType", "service"), ("authIndexValue", "Quick")]
        let reply = try await fixture.runJourney(query) { answer($0) }
        let token = try #require(reply.json["tokenId"]?.string)
        #expect(reply.json.object?.names == ["tokenId", "successUrl", "realm"])
        #expect(reply.json["realm"] == "/alpha")
        #expect(
            reply.all("Set-Cookie") == ["iPlanetDirectoryPro=\(token); Path=/; Secure; HttpOnly; SameSite=Lax"])

        let none = try await fixture.runJourney(query + [("noSession", "true")]) { answer($0) }
        #expect(none.status == 200)
        #expect(none.json.object?.names == ["successUrl", "realm"])
        #expect(none["Set-Cookie"] == nil)

        let known = try await fixture.send(
            "POST", fixture.json("authenticate") + "?" + Self.quick + "&ForceAuth=false", ServerFixture.session(token))
        #expect(known.json["tokenId"]?.string == token)
        let forced = try await fixture.send(
            "POST", fixture.json("authenticate") + "?" + Self.quick + "&ForceAuth=true", ServerFixture.session(token))
        #expect(forced.json["authId"] != nil)
    }

    @Test("The same answer twice gets the same reply; another answer to the same step is refused")
    func repeated() async throws {
        let fixture = try #require(ServerFixture.shared)
        let url = fixture.json("authenticate")
        let fields = [("Content-Type", "application/json")]
        let page = try await fixture.send("POST", url + "?" + Self.quick)
        let password = try fixture.account("ana").password.reveal()
        let body = ServerFixture.filled(page.json) { $0 == "NameCallback" ? "ana" : .string(password) }
            .serializedBytes()
        let first = try await fixture.send("POST", url, fields, body: body)
        let second = try await fixture.send("POST", url, fields, body: body)
        #expect(first.status == 200 && first.bytes == second.bytes)
        #expect(first["Set-Cookie"] == second["Set-Cookie"])
        let other = try await fixture.send("POST", url, fields, body: body + [UInt8(ascii: " ")])
        #expect(other.status == 400)
        let token = try #require(first.json["tokenId"]?.string)
        let info = try await fixture.send(
            "POST", fixture.json("sessions?_action=getSessionInfo"), ServerFixture.session(token))
        #expect(info.status == 200)
    }

    @Test("A cookie with one of the fields against forged requests is good, also with another method's spelling")
    func forgedRequests() async throws {
        let fixture = try #require(ServerFixture.shared)
        let token = try await fixture.session()
        let cookie = ("Cookie", "a=b; iPlanetDirectoryPro=\(token); c=d")
        let url = fixture.json("sessions?_action=getSessionInfo")
        #expect(try await fixture.send("POST", url, [cookie]).status == 403)
        #expect(try await fixture.send("POST", url, [cookie, ("X-Requested-With", "app")]).status == 200)
        #expect(try await fixture.send("POST", url, [cookie, ("Accept-API-Version", "resource=2.1")]).status == 200)
        let two = ("Cookie", "iPlanetDirectoryPro=\(token); iPlanetDirectoryPro=other")
        #expect(try await fixture.send("POST", url, [two, ("X-Requested-With", "app")]).status == 401)
    }

    @Test("The transaction of another session can be neither started nor shown, and stays as it was")
    func foreignTransaction() async throws {
        let fixture = try #require(ServerFixture.shared)
        let mine = try await fixture.session()
        let refused = try await fixture.send(
            "POST", fixture.gateway("/nods"), ServerFixture.jsonFields + ServerFixture.session(mine), text: "{}")
        let id = try ServerFixture.transactionID(refused)
        for other in [try await fixture.session(), try await fixture.session("ben")] {
            let reply = try await fixture.send(
                "POST", fixture.json("authenticate") + "?authIndexType=transaction&authIndexValue=\(id)",
                ServerFixture.session(other))
            #expect(reply.status == 401)
            #expect(
                reply.text
                    == #"{"code":401,"reason":"Unauthorized","message":"Unable to read transaction.","detail":{"errorCode":"128"}}"#
            )
        }
        #expect(try await fixture.approve(id, session: mine).status == 200)
    }

    @Test("serverinfo tells the cookie's name without a session")
    func serverInformation() async throws {
        let fixture = try #require(ServerFixture.shared)
        let reply = try await fixture.send("GET", fixture.json("serverinfo/*"))
        #expect(reply.json["cookieName"] == "iPlanetDirectoryPro" && reply.json["realm"] == "/alpha")
    }
}

@Suite("Authenticate and time")
struct AuthenticateTimeTests {
    @Test("A journey whose time is over answers 401 with 110, and an answer is repeated for half a minute only")
    func timedOut() async throws {
        try await ServerFixture.run { fixture in
            let url = fixture.json("authenticate")
            let fields = [("Content-Type", "application/json")]
            let password = try fixture.account("ana").password.reveal()
            func page() async throws -> [UInt8] {
                let page = try await fixture.send("POST", url + "?authIndexType=service&authIndexValue=Quick")
                return ServerFixture.filled(page.json) { $0 == "NameCallback" ? "ana" : .string(password) }
                    .serializedBytes()
            }
            let late = try await page()
            fixture.clock.advance(by: 300)
            let reply = try await fixture.send("POST", url, fields, body: late)
            #expect(reply.status == 401)
            #expect(
                reply.text
                    == #"{"code":401,"reason":"Unauthorized","message":"Session has timed out","detail":{"errorCode":"110"}}"#
            )
            let body = try await page()
            #expect(try await fixture.send("POST", url, fields, body: body).status == 200)
            fixture.clock.advance(by: 30)
            #expect(try await fixture.send("POST", url, fields, body: body).status == 400)
        }
    }

    @Test("A session ends by being idle and by its age; validate says so with 200")
    func sessionTimes() async throws {
        try await ServerFixture.run { fixture in
            let idle = try await fixture.session()
            func status(_ action: String, _ token: String) async throws -> Answer {
                try await fixture.send("POST", fixture.json("sessions?_action=\(action)"), ServerFixture.session(token))
            }
            fixture.clock.advance(by: 29 * 60)
            #expect(try await status("getSessionInfo", idle).status == 200)
            fixture.clock.advance(by: 60)
            #expect(try await status("getSessionInfo", idle).status == 401)
            #expect(try await status("validate", idle).text == #"{"valid":false}"#)
            #expect(try await status("logout", idle).status == 401)
            #expect(
                try await fixture.send("GET", fixture.gateway("/accounts"), ServerFixture.session(idle)).status == 401)

            let used = try await fixture.session()
            for _ in 0..<5 {
                fixture.clock.advance(by: 20 * 60)
                #expect(try await status("getSessionInfoAndResetIdleTime", used).status == 200)
            }
            fixture.clock.advance(by: 20 * 60)
            #expect(try await status("validate", used).text == #"{"valid":false}"#)
            #expect(fixture.upstream.requests.isEmpty)
        }
    }
}
