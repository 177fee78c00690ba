import AssentCore
import AssentStore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Administration over HTTP")
struct AdministrationRouteTests {
    private static let json = ("Content-Type", "application/json")

    private func act(
        _ fixture: ServerFixture, _ action: String, _ body: String, by session: String?
    ) async throws -> Answer {
        try await fixture.send(
            "POST", fixture.json("administration?_action=\(action)"),
            [Self.json] + (session.map(ServerFixture.session) ?? []), text: body)
    }

    @Test("A name with < and > is encoded for the authenticator, and the secret is not lost")
    func markupInName() async throws {
        try await ServerFixture.run { fixture in
            let admin = try await administrator(fixture)
            let made = try await act(
                fixture, "createUser", #"{"username":"<eve>","password":null,"secondFactor":true}"#, by: admin)
            #expect(made.status == 200)
            #expect(made.json["otpauth"]?.string?.hasPrefix("otpauth://totp/Assent:%3Ceve%3E?secret=") == true)
            let renewed = try await act(fixture, "renewSecondFactor", #"{"username":"<eve>"}"#, by: admin)
            #expect(renewed.status == 200 && renewed.json["otpauth"] != made.json["otpauth"])
        }
    }

    private func audit(_ fixture: ServerFixture, _ query: String = "", by session: String) async throws -> Answer {
        try await fixture.send("GET", fixture.json("audit" + query), ServerFixture.session(session))
    }

    /// Makes Ana an administrator, as an operator does.
    private func administrator(_ fixture: ServerFixture) async throws -> String {
        let session = try await fixture.session("ana")
        let file = try #require(fixture.endpoints.bootstrapFile)
        let token = try String(contentsOfFile: file, encoding: .utf8).trimmingCharacters(in: .newlines)
        let reply = try await act(fixture, "bootstrap", #"{"token":"\#(token)"}"#, by: session)
        #expect(reply.status == 200)
        #expect(try await act(fixture, "bootstrap", #"{"token":"\#(token)"}"#, by: session).status == 403)
        return session
    }

    @Test("Without a session of the realm there is nothing; without the role every act is refused and on record")
    func refused() async throws {
        try await ServerFixture.run { fixture in
            let acts = [
                ("bootstrap", #"{"token":"guess"}"#, "admin.bootstrap"),
                ("setRoles", #"{"username":"ben","roles":["admin"]}"#, "admin.roles"),
                ("setActive", #"{"username":"ana","active":false}"#, "admin.active"),
                ("rotateKeys", "{}", "admin.keys"), ("listUsers", "{}", "admin.users"),
                ("createUser", #"{"username":"eve","password":null}"#, "admin.create"),
                ("setPassword", #"{"username":"ana","password":"x"}"#, "admin.password"),
                ("renewSecondFactor", #"{"username":"ana"}"#, "admin.secondFactor"),
                ("listSessions", #"{"username":"ana"}"#, "admin.sessions"),
            ]
            let denied = #"{"code":403,"reason":"Forbidden","message":"Permission denied."}"#
            let gateway = try await fixture.session("pat")
            let elsewhere = try await fixture.session("bob", realm: "beta")
            for (action, body, event) in acts {
                for nobody in [nil, "nobody", elsewhere] {
                    let reply = try await act(fixture, action, body, by: nobody)
                    #expect(reply.text == #"{"code":401,"reason":"Unauthorized","message":"Access Denied"}"#)
                }
                let reply = try await act(fixture, action, body, by: gateway)
                #expect(reply.status == 403 && reply.text == denied)
                let records = try await fixture.rows(
                    "SELECT outcome FROM audit WHERE event = \(event)")
                #expect(try records.map { try $0.text("outcome") } == ["refused"])
            }
            #expect(try await audit(fixture, by: gateway).text == denied)
            #expect(try await audit(fixture, by: "nobody").status == 401)
            #expect(try await fixture.rows("SELECT id FROM users WHERE active = 0 OR roles = 'admin'").isEmpty)
        }
    }

    @Test("A text with U+0000, which no database keeps, is 400 wherever it comes, and changes nothing")
    func nul() async throws {
        try await ServerFixture.run { fixture in
            let session = try await administrator(fixture)
            let before = try await fixture.rows("SELECT username, roles, active FROM users ORDER BY username")
            let name = #""username":"a\u0000na""#
            for (action, body) in [
                ("setRoles", #"{\#(name),"roles":["auditor"]}"#), ("setActive", #"{\#(name),"active":false}"#),
                ("createUser", #"{\#(name),"password":null}"#),
                ("setPassword", #"{\#(name),"password":"long enough 1"}"#),
                ("renewSecondFactor", "{\(name)}"), ("listSessions", "{\(name)}"),
                ("endSession", #"{"username":"ana","session":"\u0000"}"#), ("listUsers", #"{"after":"\u0000"}"#),
                ("bootstrap", #"{"token":"\u0000"}"#),
            ] {
                let reply = try await act(fixture, action, body, by: session)
                #expect(reply.status == (action == "bootstrap" ? 403 : 400), "\(action): \(reply.text)")
            }
            let withdrawn = try await fixture.send(
                "POST", fixture.json("consents?_action=withdraw"), [Self.json, ServerFixture.session(session)[0]],
                text: #"{"clientId":"\u0000"}"#)
            #expect(withdrawn.status == 400, "\(withdrawn.text)")
            let signIn = try await fixture.runJourney([("authIndexType", "service"), ("authIndexValue", "Quick")]) {
                $0 == "NameCallback" ? "a\u{0}na" : $0 == "PasswordCallback" ? "wrong" : nil
            }
            #expect(signIn.status == 400, "\(signIn.text)")
            #expect(try await fixture.rows("SELECT username, roles, active FROM users ORDER BY username") == before)
        }
    }

    @Test("An administrator lists a user's sessions, and ends one, which is of no use afterwards")
    func sessions() async throws {
        try await ServerFixture.run { fixture in
            let admin = try await administrator(fixture)
            let ben = try await fixture.session("ben")
            let listed = try await act(fixture, "listSessions", #"{"username":"ben"}"#, by: admin)
            let session = try #require(listed.json["result"]?.array?.first)
            #expect(listed.json["resultCount"] == 1 && session["token"] == true && session["bound"] == false)
            #expect(session["kind"] == "user")
            #expect(session["clients"] == [] && session["acr"] == nil && !listed.text.contains(ben))
            let id = try #require(session["session"]?.string)
            #expect(
                try await act(fixture, "endSession", #"{"username":"ana","session":"\#(id)"}"#, by: admin).status == 404
            )
            let body = #"{"username":"ben","session":"\#(id)"}"#
            #expect(try await act(fixture, "endSession", body, by: ben).status == 403)
            #expect(try await act(fixture, "endSession", body, by: admin).status == 200)
            #expect(try await act(fixture, "endSession", body, by: ben).status == 401)
            #expect(try await act(fixture, "endSession", body, by: admin).status == 404)
            let none = try await act(fixture, "listSessions", #"{"username":"ben"}"#, by: admin)
            #expect(none.json["result"] == [] && none.status == 200)
        }
    }

    @Test("The audit log is asked for by user, event, time, place in the log and transaction")
    func auditQueries() async throws {
        try await ServerFixture.run { fixture in
            let admin = try await administrator(fixture)
            let ended = try await fixture.send(
                "POST", fixture.json("sessions?_action=logout"),
                ServerFixture.jsonFields + ServerFixture.session(try await fixture.session("ben")), text: "{}")
            #expect(ended.status == 200, "\(ended.text)")
            let begun = Int(fixture.clock.now.timeIntervalSince1970)
            fixture.clock.advance(by: 10)
            _ = try await act(fixture, "setActive", #"{"username":"ben","active":true}"#, by: admin)
            func records(_ query: String) async throws -> [JSONValue] {
                let answer = try await audit(fixture, query, by: admin)
                #expect(answer.status == 200, "\(query): \(answer.text)")
                return answer.json["result"]?.array ?? []
            }
            let everything = try await records("?limit=1000")
            let numbers = everything.compactMap { $0["position"]?.integer }
            #expect(numbers.count == everything.count && numbers == numbers.sorted(by: >))
            let about = try await records("?user=ben")
            #expect(!about.isEmpty && about.count < everything.count)
            #expect(about.allSatisfy { $0["user"] == "ben" })
            let bootstraps = try await records("?event=admin.bootstrap")
            #expect(!bootstraps.isEmpty && bootstraps.allSatisfy { $0["event"] == "admin.bootstrap" })
            let late = try await records("?since=\(begun + 10)&event=admin.active")
            #expect(late.count == 1)
            #expect(try await records("?since=\(begun + 11)").isEmpty)
            #expect(try await records("?since=\(begun + 10)&user=nobody").isEmpty)
            let first = try await records("?after=0&limit=2").compactMap { $0["position"]?.integer }
            #expect(first == numbers.suffix(2).reversed())
            let next = try await records("?after=\(first.last ?? 0)&limit=1").compactMap { $0["position"]?.integer }
            #expect(next == Array(numbers.dropLast(2).suffix(1)))
            #expect(try await records("?transaction=none").isEmpty)
            for wrong in ["?since=now", "?after=first", "?since=99999999999999", "?since=-9223372036854775808"] {
                #expect(try await audit(fixture, wrong, by: admin).status == 400, "\(wrong)")
            }
            // The query is read before the role is asked for: nobody stops the process by it.
            let other = try await fixture.session("pat")
            #expect(try await audit(fixture, "?since=-9223372036854775808", by: other).status == 400)
        }
    }

    @Test("An administrator gives roles and shuts users out at once; an auditor reads and changes nothing")
    func roles() async throws {
        try await ServerFixture.run { fixture in
            let admin = try await administrator(fixture)
            let ben = try await fixture.session("ben")
            let tokens = try await fixture.tokens(session: ben)
            #expect(try await audit(fixture, by: ben).status == 403)
            let given = try await act(fixture, "setRoles", #"{"username":"ben","roles":["auditor"]}"#, by: admin)
            #expect(given.status == 200)
            let records = try await audit(fixture, "?limit=2", by: ben)
            #expect(records.status == 200 && records.json["resultCount"] == 2)
            #expect(records.json["result"]?.array?.allSatisfy { $0["event"]?.string != nil } == true)
            let now = fixture.clock.now.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
            #expect(records.json["result"]?.array?.allSatisfy { $0["at"]?.string == now } == true, "\(records.text)")
            let numbers = records.json["result"]?.array?.compactMap { $0["sequence"]?.integer } ?? []
            #expect(numbers.count == 2 && numbers == numbers.sorted(by: >))
            #expect(
                records.json["result"]?.array?.allSatisfy {
                    $0["node"] == .string(fixture.server.context.auditSeries.node)
                } == true)
            for (action, body) in [
                ("setRoles", #"{"username":"ben","roles":["admin"]}"#),
                ("setActive", #"{"username":"ana","active":false}"#), ("rotateKeys", "{}"),
            ] {
                #expect(try await act(fixture, action, body, by: ben).status == 403)
            }
            let out = #"{"username":"ben","active":false}"#
            #expect(try await act(fixture, "setActive", out, by: admin).status == 200)
            #expect(try await audit(fixture, by: ben).status == 401)
            #expect(
                try await fixture.send("GET", fixture.gateway("/accounts"), ServerFixture.bearer(tokens.access)).status
                    == 401)
            #expect(try await fixture.refresh(tokens.refresh).status == 400)
            let last = try await act(fixture, "setActive", #"{"username":"ana","active":false}"#, by: admin)
            #expect(last.status == 409)
            #expect(try await act(fixture, "setRoles", #"{"username":"ana","roles":[]}"#, by: admin).status == 409)
            let back = try await act(fixture, "setActive", #"{"username":"ben","active":true}"#, by: admin)
            #expect(back.status == 200)
            #expect(try await fixture.signIn("ben").isEmpty == false)
        }
    }

    @Test("What is wrong, missing, huge or repeated is refused and changes nothing")
    func badInput() async throws {
        try await ServerFixture.run { fixture in
            let admin = try await administrator(fixture)
            let before = try await fixture.rows("SELECT username, roles, active FROM users ORDER BY username")
            let keys = try await fixture.count("server_keys")
            let long = String(repeating: "a", count: 20_000)
            let cases: [(String, String, Int)] = [
                ("bootstrap", "{}", 400), ("bootstrap", #"{"token":7}"#, 400), ("bootstrap", #"{"token":""}"#, 403),
                ("setRoles", "{}", 400), ("setRoles", #"{"username":"ben"}"#, 400),
                ("setRoles", #"{"username":"ben","roles":"admin"}"#, 400),
                ("setRoles", #"{"username":"ben","roles":["king"]}"#, 400),
                ("setRoles", #"{"username":"ben","roles":[null]}"#, 400),
                ("createUser", "{}", 400), ("createUser", #"{"username":"eve"}"#, 400),
                ("createUser", #"{"username":"eve","password":7}"#, 400),
                ("createUser", #"{"username":"eve","password":""}"#, 400),
                ("createUser", #"{"username":"e ve","password":null}"#, 400),
                ("createUser", #"{"username":"eve","password":"a"}"#, 400),
                ("createUser", #"{"username":"..","password":null}"#, 400),
                ("createUser", #"{"username":"javascript:eve","password":null,"secondFactor":true}"#, 400),
                ("setPassword", #"{"username":"ben","password":"password1"}"#, 400),
                ("createUser", #"{"username":"eve","password":null,"roles":["king"]}"#, 400),
                ("createUser", #"{"username":"eve","password":null,"secondFactor":1}"#, 400),
                ("createUser", #"{"username":"eve","password":null,"attributes":[]}"#, 400),
                ("createUser", #"{"username":"ANA","password":null}"#, 409),
                ("setPassword", #"{"username":"ben"}"#, 400),
                ("setPassword", #"{"username":"nobody","password":"x"}"#, 404),
                ("renewSecondFactor", "{}", 400), ("renewSecondFactor", #"{"username":"nobody"}"#, 404),
                ("listSessions", "{}", 400), ("listSessions", #"{"username":"nobody"}"#, 404),
                ("endSession", #"{"username":"ben"}"#, 400), ("endSession", #"{"username":"ben","session":1}"#, 400),
                ("endSession", #"{"session":"a"}"#, 400), ("endSession", #"{"username":"ben","session":""}"#, 404),
                ("listUsers", #"{"limit":0}"#, 400), ("listUsers", #"{"limit":1001}"#, 400),
                ("setRoles", #"{"username":["ben"],"roles":[]}"#, 400),
                ("setRoles", #"{"username":"nobody","roles":[]}"#, 404),
                ("setRoles", #"{"username":"' OR 1=1 --","roles":["admin"]}"#, 404),
                ("setRoles", #"{"username":"bob","roles":["admin"]}"#, 404),
                ("setRoles", #"{"username":"ben","username":"ana","roles":[]}"#, 400),
                ("setActive", #"{"username":"ben"}"#, 400), ("setActive", #"{"username":"ben","active":"no"}"#, 400),
                ("setActive", #"{"username":"ben","active":0}"#, 400),
                ("rotateKeys", #"{"purpose":"all"}"#, 400), ("rotateKeys", #"{"purpose":null}"#, 400),
                ("rotateKeys", #"{"discardOld":1}"#, 400),
                ("setRoles", "[]", 400), ("setRoles", #"{"username":"#, 400),
                ("setRoles", #"{"a":"# + String(repeating: "[", count: 5000), 400),
                ("setRoles", #"{"username":"\#(long)","roles":[]}"#, 413),
                ("", "{}", 501), ("dance", "{}", 501),
            ]
            for (action, body, status) in cases {
                let reply = try await act(fixture, action, body, by: admin)
                #expect(reply.status == status, "\(action) \(body.prefix(80)): \(reply.text.prefix(200))")
                #expect(reply.json["code"] == .integer(status))
            }
            let url = fixture.json("administration")
            let session = ServerFixture.session(admin)
            #expect(try await fixture.send("POST", url, session).status == 400)
            #expect(try await fixture.send("GET", url + "?_action=setRoles", session).status == 405)
            #expect(try await fixture.send("POST", fixture.json("audit"), session).status == 405)
            let text = try await fixture.send(
                "POST", url + "?_action=setRoles", session + [("Content-Type", "text/plain")], text: "{}")
            #expect(text.status == 415)
            let twice = try await fixture.send("POST", url + "?_action=setRoles&_action=setRoles", session)
            #expect(twice.status == 400)
            let cookie = [("Cookie", "iPlanetDirectoryPro=\(admin)"), Self.json]
            let forged = try await fixture.send(
                "POST", url + "?_action=setActive", cookie, text: #"{"username":"ben","active":false}"#)
            #expect(forged.status == 403)
            for query in ["?limit=-5", "?limit=0", "?limit=99999999999999999999", "?limit=x"] {
                #expect(try await audit(fixture, query, by: admin).status == 200)
            }
            let none = try await audit(fixture, "?transaction=" + String(repeating: "z", count: 3000), by: admin)
            #expect(none.json["resultCount"] == 0)
            #expect(try await fixture.rows("SELECT username, roles, active FROM users ORDER BY username") == before)
            #expect(try await fixture.count("server_keys") == keys)
        }
    }

    @Test("After a rotation new tokens have new keys and old ones count; with discardOld they do not")
    func rotation() async throws {
        try await ServerFixture.run { fixture in
            let admin = try await administrator(fixture)
            let old = try await fixture.tokens(session: admin)
            let keysBefore = try await keyIDs(fixture)
            #expect(try await act(fixture, "rotateKeys", "{}", by: admin).status == 200)
            let keysAfter = try await keyIDs(fixture)
            #expect(keysAfter.isSuperset(of: keysBefore) && keysAfter.count == keysBefore.count * 2)
            let new = try await fixture.tokens(session: admin)
            for (before, after) in [(old.access, new.access), (old.id, new.id)] {
                #expect(try keysBefore.contains(keyID(before)))
                #expect(try keysAfter.subtracting(keysBefore).contains(keyID(after)))
            }
            for tokens in [old, new] { #expect(try await accepts(tokens, fixture)) }

            let only = #"{"purpose":"access_token","discardOld":true}"#
            #expect(try await act(fixture, "rotateKeys", only, by: admin).status == 200)
            for tokens in [old, new] { #expect(try await !accepts(tokens, fixture)) }
            #expect(try await accepts(fixture.tokens(session: admin), fixture))
            let left = try await keyIDs(fixture)
            #expect(try left.contains(keyID(old.id)) && !left.contains(keyID(old.access)))
            // The grants are as they were: a refresh token gives a token that counts.
            #expect(try await fixture.refresh(new.refresh).status == 200)
            let records = try await fixture.rows(
                "SELECT detail FROM audit WHERE event = 'admin.keys' AND outcome = 'success'")
            #expect(records.count == 3)
        }
    }

    @Test("An administrator of another realm than the first neither changes shared keys nor reads others' records")
    func anotherRealm() async throws {
        try await ServerFixture.run { fixture in
            let first = try await administrator(fixture)
            let made = try await act(fixture, "addPayloadKey", #"{"days":1}"#, by: first)
            let kid = try #require(made.json["kid"]?.string)
            try await AuditLog(fixture.server.context).write(
                AuditRecord(.transactionTake, .success, realm: "/alpha", transactionID: "t"))
            _ = try await fixture.server.context.database.run(
                SQLStatement("UPDATE users SET roles = 'admin auditor' WHERE username = 'bob'"))
            let bob = ServerFixture.session(try await fixture.session("bob", realm: "beta"))
            let keys = try await keyIDs(fixture)
            for (action, body, status) in [
                ("listUsers", "{}", 200), ("rotateKeys", #"{"discardOld":true}"#, 403),
                ("addPayloadKey", #"{"days":1}"#, 403), ("listPayloadKeys", "{}", 403),
                ("withdrawPayloadKey", #"{"kid":"\#(kid)"}"#, 403),
            ] as [(String, String, Int)] {
                let url = fixture.json("administration?_action=\(action)", realm: "beta")
                let answer = try await fixture.send("POST", url, [Self.json] + bob, text: body)
                #expect(answer.status == status, "\(action): \(answer.text)")
            }
            #expect(try await keyIDs(fixture) == keys)
            #expect(try await fixture.rows("SELECT kid FROM payload_keys WHERE withdrawn_at IS NOT NULL").isEmpty)
            let refused = try await fixture.rows(
                "SELECT event FROM audit WHERE realm = '/beta' AND outcome = 'refused' AND reason = 'realm'")
            #expect(refused.count == 4)
            for (query, isEmpty) in [
                ("?limit=1000", false), ("?after=0&limit=1000", false), ("?transaction=t", true),
            ] as [(String, Bool)] {
                let seen = try await fixture.send("GET", fixture.json("audit" + query, realm: "beta"), bob)
                let realms = try #require(seen.json["result"]?.array).map { $0["realm"]?.string }
                #expect(realms.isEmpty == isEmpty && realms.allSatisfy { $0 == "/beta" }, "\(query)")
            }
            let all = try await audit(fixture, "?limit=1000", by: first)
            let realms = Set(try #require(all.json["result"]?.array).compactMap { $0["realm"]?.string })
            #expect(realms.isSuperset(of: ["/alpha", "/beta"]))
        }
        try await ServerFixture.run(editing: { $0 + "\nadministrationRealm: beta\n" }) { fixture in
            let admin = try await administrator(fixture)
            #expect(try await act(fixture, "rotateKeys", "{}", by: admin).status == 403)
        }
    }

    private func keyIDs(_ fixture: ServerFixture) async throws -> Set<String> {
        let reply = try await fixture.send("GET", fixture.oauth("connect/jwk_uri"))
        return Set(try #require(reply.json["keys"]?.array).compactMap { $0["kid"]?.string })
    }

    private func keyID(_ token: String) throws -> String {
        let header = try #require(token.split(separator: ".").first.flatMap { Base64URL.decode(String($0)) })
        return try #require(JSONValue.parse(header)["kid"]?.string)
    }

    private func accepts(_ tokens: ServerFixture.Tokens, _ fixture: ServerFixture) async throws -> Bool {
        try await fixture.send("GET", fixture.gateway("/accounts"), ServerFixture.bearer(tokens.access)).status == 200
    }
}
