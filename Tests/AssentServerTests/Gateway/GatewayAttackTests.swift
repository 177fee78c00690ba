import AssentCore
import Foundation
import TestSupport
import Testing

@testable import AssentServer

@Suite("What the gateway refuses before anything happens", .server)
struct GatewayAttackTests {
    /// The end of a test of something that must have had no effect. No test of this suite may forward or be advised.
    private func expectNothingHappened(_ fixture: ServerFixture) async throws {
        #expect(fixture.upstream.seen.value.connections == 0)
        #expect(try await fixture.count("transactions") == 0)
    }

    @Test(
        "A URL that two programs could read differently is refused",
        arguments: [
            "/a/../nods", "/./nods", "/nods/..", "/nods/.", "/a/%2e%2e/nods", "/%2E/nods", "/a/.%2e/nods", "/..;x/nods",
            "/open/..%3b/nods", "/open/..%3Bx/nods", "/open/%c0%ae%c0%ae/nods", "/open/..%ff/nods", "/open/x%c0%afnods",
            "/open/%EF%BC%8E%EF%BC%8E/nods", "/open/x%EF%BC%8F..%EF%BC%8Fnods", "/nods?x=%c0%a6", "/nods?x=%ff",
            "/a%2Fnods", "/a%2fnods", "/a\\nods", "/a%5Cnods", "/a%5cnods", "/nods%00", "/nods%0d%0aX:1", "/nods%7f",
            "/%252e%252e/nods", "/a%252Fnods", "/nods%25%32%65", "/nods%", "/nods%2", "/nods%zz", "/nods#x",
            "/nods?x=1#y", "/nods?x=%00", "/nods?x=%", "http://localhost/a/../nods",
            "https://localhost/a%2Fnods", "//evil.example@localhost/../nods", "*", "nods", "/nods\"", "/nods<",
            "/nods^",
            "/nods{x}", "/nods;", "/nods;x=1", "/nods%3bx", "/nods%3Bx", "/;/nods", "/open;x/../nods",
            "/nods?x=<", "/nods?_txid=a&_txid=b", "/nods?_txid=a&_txid=a",
        ])
    func targets(_ target: String) async throws {
        let fixture = try #require(ServerFixture.shared)
        let token = try await fixture.session()
        let reply = try await fixture.raw(
            "POST \(target) HTTP/1.1\r\nHost: localhost\r\niPlanetDirectoryPro: \(token)\r\nConnection: close\r\n"
                + "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
        #expect(reply.hasPrefix("HTTP/1.1 400 "), "\(reply)")
        try await expectNothingHappened(fixture)
    }

    @Test(
        "Bytes beyond ASCII and control characters in the target are refused",
        arguments: [0x00, 0x09, 0x7F, 0xC3, 0xFF] as [UInt8])
    func bytes(_ byte: UInt8) async throws {
        let fixture = try #require(ServerFixture.shared)
        let connection = try await fixture.rawConnection()
        try await connection.send(
            Array("POST /nods".utf8) + [byte]
                + Array(" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".utf8))
        let reply = await connection.untilClosed()
        #expect(reply.isEmpty || reply.hasPrefix("HTTP/1.1 400 "), "\(reply)")
        try await expectNothingHappened(fixture)
    }

    @Test("A URL past the limit is 414")
    func tooLong() async throws {
        let fixture = try #require(ServerFixture.shared)
        let reply = try await fixture.send("GET", fixture.gateway("/" + String(repeating: "a", count: 9000)))
        #expect(reply.status == 414)
        #expect(reply.json["title"] == "URI Too Long")
        try await expectNothingHappened(fixture)
    }

    @Test(
        "A request whose end two programs could see in different places is refused or cut off",
        arguments: [
            "Content-Length: 2\r\nContent-Length: 3\r\n", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n", "Content-Length: 2, 3\r\n", "Content-Length: +2\r\n",
            "Content-Length: -2\r\n", "Content-Length: 0x2\r\n", "Content-Length: 99999999999999999999\r\n",
            "Transfer-Encoding: xchunked\r\n", "Transfer-Encoding: chunked, identity\r\n",
            "Transfer-Encoding : chunked\r\n", "Content-Length : 2\r\n", "Content-Length: 2\r\n X: 1\r\n",
            "X\u{0}Y: 1\r\nContent-Length: 2\r\n", "X: a\u{0}b\r\nContent-Length: 2\r\n",
        ])
    func framing(_ fields: String) async throws {
        let fixture = try #require(ServerFixture.shared)
        let token = try await fixture.session()
        let reply = try await fixture.raw(
            "POST /nods HTTP/1.1\r\nHost: localhost\r\niPlanetDirectoryPro: \(token)\r\nConnection: close\r\n\(fields)\r\n{}GET /files/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
        )
        #expect(reply.isEmpty || reply.hasPrefix("HTTP/1.1 400 "), "\(reply)")
        try await expectNothingHappened(fixture)
    }

    @Test(
        "Only the methods that policies know are taken",
        arguments: ["TRACE", "CONNECT", "PROPFIND", "LOCK", "get", "NONSENSE"])
    func methods(_ method: String) async throws {
        let fixture = try #require(ServerFixture.shared)
        let token = try await fixture.session()
        let target = method == "CONNECT" ? "localhost:443" : "/files/x"
        let reply = try await fixture.raw(
            "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\niPlanetDirectoryPro: \(token)\r\nConnection: close\r\n\r\n"
        )
        #expect(reply.isEmpty || reply.hasPrefix("HTTP/1.1 405 ") || reply.hasPrefix("HTTP/1.1 400 "), "\(reply)")
        try await expectNothingHappened(fixture)
    }

    @Test(
        "A body that cannot be approved is refused before there is a transaction",
        arguments: [
            ([("Content-Type", "application/json")], #"{"to":"Bob","amount":"1","to":"Eve","currency":"EUR"}"#, 400),
            ([("Content-Type", "application/json")], #"{"to":"Bob""#, 400),
            ([("Content-Type", "application/json"), ("Content-Encoding", "gzip")], "{}", 415),
            ([("Content-Type", "application/json"), ("Content-Encoding", "identity, br")], "{}", 415),
            ([("Content-Type", "application/json"), ("Content-Type", "text/plain")], "{}", 400),
            ([("Content-Type", "application/json"), ("Content-Range", "bytes 0-1/9")], "{}", 400),
            ([("Content-Type", "application/json"), ("Content-Range", "")], "{}", 400),
            ([("Content-Type", "application/json")], "\"" + String(repeating: "a", count: 4096) + "\"", 413),
            ([("Content-Type", "text/plain")], "{}", 415), ([], "{}", 415), ([("Content-Type", "")], "{}", 415),
            ([("Content-Type", "application/json; charset=utf-7")], "{}", 415),
            ([("Content-Type", "application/json;charset=IBM037")], "{}", 415),
            ([("Content-Type", "application/json; Charset=\"UTF-16\"")], "{}", 415),
            ([("Content-Type", "application/json; charset =utf-7")], "{}", 415),
            ([("Content-Type", "application/json; charset=utf-8; charset=utf-7")], "{}", 415),
            ([("Content-Type", "application/json; charset*=us-ascii'en'utf-7")], "{}", 415),
            ([("Content-Type", "application/json; x=1")], "{}", 415),
            ([("Content-Type", "application/json, text/plain")], "{}", 415),
            ([("Content-Type", "application/x-www-form-urlencoded,a+json")], "{}", 415),
            ([("Content-Type", "application/x-www-form-urlencoded a+json")], "{}", 415),
            ([("Content-Type", "application/merge-patch+json")], "{}", 415),
            ([("Content-Type", "application/json")], #"{"to":"Bob","TO":"Eve"}"#, 400),
            ([("Content-Type", "application/json")], #"{"to":"Bob","x":{"tO":"Eve","To":"Eve"}}"#, 400),
            ([("Content-Type", "application/json")], #"{"kurs":"Bob","\u212Aurs":"Eve"}"#, 400),
            ([("Content-Type", "application/json")], #"{"kurs":"Bob","kur\u017f":"Eve"}"#, 400),
            ([("Content-Type", "application/json")], #"{"amount":1e-9223372036854775808}"#, 400),
        ] as [([(String, String)], String, Int)])
    func bodies(_ fields: [(String, String)], _ body: String, _ status: Int) async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = ServerFixture.session(try await fixture.session())
        let reply = try await fixture.send("POST", fixture.gateway("/nods"), session + fields, text: body)
        #expect(reply.status == status)
        #expect(reply["Content-Type"] == "application/problem+json")
        try await expectNothingHappened(fixture)
    }

    @Test(
        "A transfer that cannot be shown to the user as it is is refused",
        arguments: [
            (#"{"to":"Bo\u001b[31mb","amount":"1.00","currency":"EUR"}"#, 400),
            (#"{"to":"Bob\u202e","amount":"1.00","currency":"EUR"}"#, 400),
            (#"{"to":"","amount":"1.00","currency":"EUR"}"#, 400), (#"{"to":"Bob","amount":"1.00"}"#, 400),
            (#"{"to":{"name":"Bob"},"amount":"1.00","currency":"EUR"}"#, 400), ("[]", 400), ("", 400),
            (#"{"to":"Bob","amount":"1.00","currency":"EUR","iban":"DE1"}"#, 400),
            (#"{"to":"Bob","amount":"1.00","currency":"EUR","reference":"x","x":{"iban":"DE1"}}"#, 400),
        ])
    func display(_ body: String, _ status: Int) async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = ServerFixture.session(try await fixture.session())
        let reply = try await fixture.send(
            "POST", fixture.gateway("/transfers"), session + [("Content-Type", "application/json")], text: body)
        #expect(reply.status == status)
        let plain = try await fixture.send(
            "POST", fixture.gateway("/transfers"), session + [("Content-Type", "text/plain")],
            text: FixtureBody.transfer)
        #expect(plain.status == 415)
        try await expectNothingHappened(fixture)
    }

    @Test(
        "With the session in a cookie, a request that changes something must come from an allowed page",
        arguments: [
            [], [("Origin", "https://evil.example")], [("Origin", "null")],
            [("Origin", "https://app.bank.example.evil.example")],
            [("Origin", "http://app.bank.example")], [("Sec-Fetch-Site", "cross-site")],
            [("Sec-Fetch-Site", "same-site")],
            [("Origin", "https://evil.example"), ("Sec-Fetch-Site", "same-origin")],
        ] as [[(String, String)]])
    func foreignOrigin(_ fields: [(String, String)]) async throws {
        let fixture = try #require(ServerFixture.shared)
        let cookie = ("Cookie", "iPlanetDirectoryPro=\(try await fixture.session())")
        for (method, target) in [("POST", "/nods"), ("POST", "/files/x"), ("DELETE", "/files/x"), ("PUT", "/nods")] {
            let reply = try await fixture.send(
                method, fixture.gateway(target), ServerFixture.jsonFields + [cookie] + fields, text: "{}")
            #expect(reply.status == 403)
        }
        try await expectNothingHappened(fixture)
    }

    @Test("An access token of another realm, revoked, flipped or none is refused, also beside a good cookie")
    func badTokens() async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        let good = try await fixture.tokens(session: session)
        let foreign = try await fixture.tokens(session: fixture.session("bob", realm: "beta"), realm: "beta")
        var bytes = Array(good.access.utf8)
        let middle = bytes.count - 20
        bytes[middle] = bytes[middle] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
        let revoked = try await fixture.tokens(session: session)
        _ = try await fixture.send(
            "POST", fixture.oauth("token/revoke"), [("Content-Type", "application/x-www-form-urlencoded")],
            text: ServerFixture.query([("token", revoked.access), ("client_id", "bank-app")]))
        let flipped = String(decoding: bytes, as: UTF8.self)
        for token in [foreign.access, flipped, revoked.access, good.id, good.refresh, "x", ""] {
            for fields in [[], [("Cookie", "iPlanetDirectoryPro=\(session)")], ServerFixture.session(session)] {
                let reply = try await fixture.send(
                    "POST", fixture.gateway("/nods"),
                    ServerFixture.jsonFields + [
                        ("Authorization", "Bearer \(token)"), ("Origin", "https://app.bank.example"),
                    ] + fields,
                    text: "{}")
                #expect(reply.status == 401)
                #expect(reply["WWW-Authenticate"] == #"Bearer error="invalid_token""#)
            }
        }
    }

    @Test("An access token that was issued for another service lets nobody in here, also beside a good cookie")
    func foreignAudience() async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        let partner = try await fixture.tokens(session: session, client: "partner-app").access
        let ours = try await fixture.tokens(session: session).access
        let both = try await fixture.tokens(session: session, client: "gateway-app").access
        let attempts: [(String, String)] = [
            (partner, "/accounts"), (partner, "/files/x"), (partner, "/nods"), (partner, "/owned"), (both, "/accounts"),
            (ours, "/owned"),
        ]
        for (token, target) in attempts {
            for fields in [[], [("Cookie", "iPlanetDirectoryPro=\(session)")]] {
                let reply = try await fixture.send(
                    "GET", fixture.gateway(target), ServerFixture.bearer(token) + fields)
                #expect(reply.status == 401, "\(target)")
                #expect(reply["WWW-Authenticate"] == #"Bearer error="invalid_token""#)
            }
        }
        try await expectNothingHappened(fixture)
    }

    @Test("Who is unknown is not \"not Ben\", and a client at a known address is not elsewhere")
    func opposites() async throws {
        let fixture = try #require(ServerFixture.shared)
        let ana = ServerFixture.session(try await fixture.session())
        let ben = ServerFixture.session(try await fixture.session("ben"))
        #expect(try await fixture.send("GET", fixture.gateway("/others")).status == 401)
        #expect(try await fixture.send("GET", fixture.gateway("/others"), ben).status == 403)
        #expect(try await fixture.send("GET", fixture.gateway("/outside"), ana).status == 403)
        let lying = ana + [("X-Forwarded-For", "8.8.8.8"), ("Forwarded", "for=8.8.8.8")]
        #expect(try await fixture.send("GET", fixture.gateway("/outside"), lying).status == 403)
        try await expectNothingHappened(fixture)
    }

    @Test("An access token whose session has ended makes no transaction, and neither does a session of another realm")
    func endedSession() async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        let tokens = try await fixture.tokens(session: session)
        try await fixture.signOut(session)
        let bob = try await fixture.session("bob", realm: "beta")
        for fields in [
            ServerFixture.bearer(tokens.access), ServerFixture.session(session), ServerFixture.session(bob), [],
        ] {
            let reply = try await fixture.send(
                "POST", fixture.gateway("/nods"), ServerFixture.jsonFields + fields, text: "{}")
            #expect(reply.status == 401)
            #expect(reply["WWW-Authenticate"]?.contains("advices=") == false)
        }
    }

    @Test("What is behind no policy is denied, also with a session")
    func noPolicy() async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = ServerFixture.session(try await fixture.session())
        #expect(try await fixture.send("GET", fixture.gateway("/secret"), session).status == 403)
        #expect(try await fixture.send("DELETE", fixture.gateway("/accounts"), session).status == 403)
        #expect(try await fixture.send("GET", fixture.gateway("/secret")).status == 401)
        try await expectNothingHappened(fixture)
    }
}
