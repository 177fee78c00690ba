import AssentCore
import AssentTesting
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentServer

@Suite(
    "What the gateway forwards, and how it asks", .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it")
)
struct GatewayForwardingTests {
    @Test(
        "The service gets no credential, no claim and no field of the hop, and the user's name from the gateway alone")
    func fields() async throws {
        try await ServerFixture.run { fixture in
            let token = try await fixture.session()
            let access = try await fixture.tokens(session: token).access
            let connection = try await fixture.rawConnection()
            try await connection.send(
                [
                    "GET /files/a?b=c&d HTTP/1.1", "Host: localhost", "Connection: keep-alive, X-Hop", "X-Hop: 1",
                    "Authorization: Bearer \(access)", "iPlanetDirectoryPro: \(token)", "X-Remote-User: root",
                    "X_Remote_User: root", "Remote-User: root", "X-HTTP-Method-Override: DELETE",
                    "X-Original-URL: /admin", "X-Forwarded-For: 1.2.3.4", "Forwarded: for=1.2.3.4", "X-TxID: ",
                    "Cookie: a=b; iPlanetDirectoryPro=\(token); c=d", "Cookie: iPlanetDirectoryPro =\(token)",
                    "Keep-Alive: 5", "TE: trailers", "Proxy-Authorization: x", "x-authenticate-response: header",
                    "X-Custom: kept", "Idempotency-Key: mine", "Accept-Encoding: gzip", "X-Employee: 7",
                    "X-Forwarded-Email: root@bank.example", "Cookie: a=\u{600}; iPlanetDirectoryPro=\(token)",
                ].joined(separator: "\r\n") + "\r\n\r\n")
            let reply = await connection.reply()
            await connection.close()
            #expect(reply.hasPrefix("HTTP/1.1 200 "), "\(reply)")
            let request = try #require(fixture.upstream.requests.first)
            #expect(request.line == "GET /files/a?b=c&d HTTP/1.1")
            #expect(!request.head.contains(token) && !request.head.contains(access))
            #expect(request.values("X-Remote-User") == ["ana"])
            #expect(request.values("Cookie") == ["a=b; c=d"])
            #expect(request.values("X-Custom") == ["kept"])
            #expect(request.values("Idempotency-Key") == ["mine"])
            #expect(request.values("Accept-Encoding") == ["gzip"])
            #expect(request.values("X-Forwarded-Proto") == ["https"])
            #expect(request.values("X-Forwarded-For") == ["127.0.0.1"])
            #expect(request.values("Via") == ["1.1 assent"])
            #expect(request.values("X-Forwarded-Host") == ["localhost:\(fixture.gatewayPort)"])
            #expect(request.values("Host") == ["127.0.0.1:\(fixture.upstream.port)"])
            for name in [
                "X-Hop", "Authorization", "X_Remote_User", "Remote-User", "X-HTTP-Method-Override", "X-Original-URL",
                "Forwarded", "X-TxID", "Keep-Alive", "TE", "Proxy-Authorization",
                "x-authenticate-response", "iPlanetDirectoryPro", "X-Employee", "X-Forwarded-Email",
            ] { #expect(request.values(name).isEmpty, "\(name)") }
        }
    }

    @Test(
        "The service cannot set the session cookie, however it writes it; its other fields and its status come through")
    func reply() async throws {
        try await ServerFixture.run { fixture in
            let session = ServerFixture.session(try await fixture.session())
            fixture.upstream.answer { _, peer in
                peer.answer(
                    "418 Teapot",
                    fields: [
                        "Set-Cookie: iPlanetDirectoryPro=evil; Path=/", "Set-Cookie: iPlanetDirectoryPro =evil",
                        "Set-Cookie: iPlanetDirectoryPro\t=evil", "Set-Cookie: iPlanetDirectoryPro",
                        "Set-Cookie: =iPlanetDirectoryPro=evil", "Set-Cookie: own=1",
                        "Connection: X-Hop", "X-Hop: 1", "X-Custom: kept", "Content-Type: text/x-tea",
                    ], "short and stout")
            }
            let reply = try await fixture.send("GET", fixture.gateway("/files/tea"), session)
            #expect(reply.status == 418 && reply.text == "short and stout")
            #expect(reply.all("Set-Cookie") == ["own=1"])
            #expect(reply["X-Hop"] == nil && reply["X-Custom"] == "kept" && reply["Content-Type"] == "text/x-tea")
        }
    }

    @Test("The session cookie is enough for GET, and for the rest from allowed pages")
    func cookie() async throws {
        try await ServerFixture.run { fixture in
            let cookie = ("Cookie", "iPlanetDirectoryPro=\(try await fixture.session())")
            #expect(try await fixture.send("GET", fixture.gateway("/accounts"), [cookie]).status == 200)
            #expect(fixture.upstream.requests.first?.values("Cookie") == [])
            #expect(try await fixture.send("HEAD", fixture.gateway("/files/x"), [cookie]).status == 200)
            let allowed: [[(String, String)]] = [
                [("Origin", "https://app.bank.example")], [("Origin", "https://localhost:\(fixture.gatewayPort)")],
                [("Sec-Fetch-Site", "same-origin")], [("Sec-Fetch-Site", "none")],
            ]
            for fields in allowed {
                let reply = try await fixture.send(
                    "POST", fixture.gateway("/nods"), ServerFixture.jsonFields + [cookie] + fields, text: "{}")
                #expect(reply.status == 401)
                #expect(throws: Never.self) { try ServerFixture.transactionID(reply) }
            }
            #expect(try await fixture.count("transactions") == 1, "it was one request, repeated at once")
        }
    }

    @Test("An advice comes in the header to scripts and whom asked so, else as a redirect; a navigation gets 303")
    func advice() async throws {
        try await ServerFixture.run { fixture in
            let session = ServerFixture.session(try await fixture.session())
            let json = [("Content-Type", "application/json")]
            func post(_ fields: [(String, String)]) async throws -> Answer {
                try await fixture.send("POST", fixture.gateway("/nods?a=1"), session + json + fields, text: "{}")
            }
            for asked in [
                ("x-authenticate-response", "header"), ("x-authenticate-response", "HEADER"),
                ("Sec-Fetch-Mode", "cors"), ("Sec-Fetch-Mode", "same-origin"), ("Sec-Fetch-Mode", "no-cors"),
            ] {
                let reply = try await post([asked])
                #expect(reply.status == 401)
                let field = try #require(reply["WWW-Authenticate"])
                #expect(
                    field.wholeMatch(
                        of:
                            /SSOADVICE realm="\/alpha",advices="[A-Za-z0-9]+={0,2}",am_uri="https:\/\/localhost:\d+\/am"/
                    )
                        != nil, "\(field)")
                #expect(field.hasSuffix("am_uri=\"\(fixture.endpoints.server)\""))
            }
            for fields in [[], [("x-authenticate-response", "redirect")]] {
                let reply = try await post(fields)
                #expect(reply.status == 307 && reply.bytes.isEmpty)
                let location = try #require(reply["Location"])
                #expect(location.hasPrefix(fixture.endpoints.server + "/?"))
                #expect(reply.parameter("authIndexType") == "composite_advice" && reply.parameter("realm") == "/alpha")
                let value = try #require(reply.parameter("authIndexValue"))
                // Older SDKs of AM read nothing but the XML itself.
                let id = try #require(value.firstMatch(of: /<Value>([^<]*)<\/Value>/)).1
                #expect(reply.parameter("goto") == fixture.gateway("/nods?a=1&_txid=\(id)"))
            }
            let navigation = try await post([("Sec-Fetch-Mode", "navigate")])
            #expect(navigation.status == 303)
            #expect(navigation.parameter("goto")?.hasPrefix(fixture.gateway("/?_txid=")) == true)
            #expect(fixture.upstream.requests.isEmpty)
        }
    }

    @Test("A script is never redirected, whatever it sends and wherever its page is from; a navigation is")
    func scripts() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let weak = ServerFixture.session(session)
            let cookie = [("Cookie", "iPlanetDirectoryPro=\(session)")]
            func get(_ fields: [(String, String)]) async throws -> Answer {
                try await fixture.send("GET", fixture.gateway("/level"), fields)
            }
            for mode in ["cors", "no-cors", "same-origin", "websocket", "NAVIGATE", "", "navigate, navigate"] {
                for site in ["same-origin", "none", "same-site"] {
                    let browser = [("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", mode)]
                    for fields in [weak + browser, cookie + browser, cookie + browser + [("Accept", "text/html")]] {
                        let reply = try await get(fields)
                        #expect(reply.status == 401 && reply["Location"] == nil, "\(mode) \(site)")
                        #expect(reply["WWW-Authenticate"]?.hasPrefix("SSOADVICE ") == true)
                    }
                }
            }
            let page = [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Mode", "navigate")]
            #expect(try await get(cookie + page).status == 307)
            // Who has no session is never redirected.
            for mode in ["cors", "navigate"] {
                #expect(try await get([("Sec-Fetch-Mode", mode)]).status == 401)
            }
        }
    }

    @Test("On a route without a bound body both directions stream, past any limit of a bound one")
    func streaming() async throws {
        try await ServerFixture.run { fixture in
            let token = try await fixture.session()
            let half = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 20)
            let connection = try await fixture.rawConnection()
            fixture.upstream.hold()
            try await connection.send(
                "PUT /files/large HTTP/1.1\r\nHost: localhost\r\niPlanetDirectoryPro: \(token)\r\nConnection: close\r\nContent-Length: \(2 << 20)\r\n\r\n"
            )
            try await connection.send(half)
            await fixture.upstream.seen.wait { $0.bytes > 1 << 20 }
            #expect(fixture.upstream.requests.isEmpty)
            try await connection.send(half)
            await fixture.upstream.release { peer in
                peer.send("HTTP/1.1 200 OK\r\nContent-Length: \(2 << 20)\r\n\r\n")
                peer.send([UInt8](repeating: UInt8(ascii: "y"), count: 1 << 20))
            }
            await connection.wait(forBytes: 1 << 20)
            #expect(connection.bytes.count >= 1 << 20 && connection.bytes.count < 2 << 20)
            await connection.close()
            let request = try #require(fixture.upstream.requests.first)
            #expect(request.body.count == 2 << 20 && request.body.allSatisfy { $0 == UInt8(ascii: "x") })
        }
    }

    @Test("An answer to HEAD has no body that the next reply could be mistaken for", arguments: [true, false])
    func head(toGateway: Bool) async throws {
        try await ServerFixture.run { fixture in
            let connection = try await fixture.rawConnection(toGateway: toGateway)
            try await connection.send("HEAD /none HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try await connection.send("GET /none HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            let replies = await connection.untilClosed().components(separatedBy: "\r\n\r\n")
            #expect(replies.count == 3 && replies[0].hasPrefix("HTTP/1.1 4"))
            #expect(replies[1].hasPrefix("HTTP/1.1 4") && replies[2].hasPrefix("{"))
        }
    }

    @Test(
        "One request after the other on one connection is answered, however early the service answers",
        arguments: [4, 3 << 16])
    func keptAlive(length: Int) async throws {
        try await ServerFixture.run { fixture in
            let token = try await fixture.session()
            let connection = try await fixture.rawConnection()
            let head =
                "POST /files/a HTTP/1.1\r\nHost: localhost\r\niPlanetDirectoryPro: \(token)\r\nContent-Length: \(length)\r\n\r\n"
            for _ in 0..<200 {
                try await connection.send(Array(head.utf8) + [UInt8](repeating: UInt8(ascii: "x"), count: length))
                #expect(await connection.reply().hasPrefix("HTTP/1.1 201"))
            }
            #expect(fixture.upstream.requests.count == 200)
            await connection.close()
        }
    }

    @Test("A chunked body is forwarded where it is not bound, and read whole where it is")
    func chunked() async throws {
        try await ServerFixture.run { fixture in
            let token = try await fixture.session()
            func post(_ target: String, _ chunks: [String]) async throws -> String {
                let body = chunks.map { "\(String($0.utf8.count, radix: 16))\r\n\($0)\r\n" }.joined() + "0\r\n\r\n"
                return try await fixture.raw(
                    "POST \(target) HTTP/1.1\r\nHost: localhost\r\niPlanetDirectoryPro: \(token)\r\nConnection: close\r\n"
                        + "Content-Type: application/json\r\nx-authenticate-response: header\r\nTransfer-Encoding: chunked\r\n\r\n"
                        + body)
            }
            #expect(try await post("/files/x", ["{\"a\"", ":1}"]).hasPrefix("HTTP/1.1 201 "))
            let refused = try await post("/nods", ["{\"a\"", ":1}"])
            let match = try #require(refused.firstMatch(of: /advices="([^"]*)"/))
            let bytes = try #require(Data(base64Encoded: String(match.1)))
            let advice = try JSONValue.parse([UInt8](bytes))
            let id = try #require(advice["TransactionConditionAdvice"]?.strings?.first)
            #expect(try await fixture.approve(id, session: token).status == 200)
            #expect(try await post("/nods?_txid=\(id)", ["{\"a\":", "1", "}"]).hasPrefix("HTTP/1.1 201 "))
            #expect(fixture.upstream.requests.last?.body == Array("{\"a\":1}".utf8))
            let large = try await post(
                "/nods", [String(repeating: " ", count: 3000), String(repeating: " ", count: 3000)])
            #expect(large.hasPrefix("HTTP/1.1 413 "))
            #expect(fixture.upstream.requests.count == 2)
        }
    }

    @Test("A target in absolute form is the resource of its path, whatever host stands in it")
    func absoluteForm() async throws {
        try await ServerFixture.run { fixture in
            let token = try await fixture.session()
            let reply = try await fixture.raw(
                "GET http://evil.example/files/x?a=b HTTP/1.1\r\nHost: localhost\r\niPlanetDirectoryPro: \(token)\r\nConnection: close\r\n\r\n"
            )
            #expect(reply.hasPrefix("HTTP/1.1 200 "))
            let request = try #require(fixture.upstream.requests.first)
            #expect(request.line == "GET /files/x?a=b HTTP/1.1")
            #expect(!request.head.contains("evil.example"))
        }
    }

    @Test("What is allowed: the own audience of a route, an address in the range, everybody but Ben")
    func allowed() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let ana = ServerFixture.session(session)
            let both = try await fixture.tokens(session: session, client: "gateway-app").access
            for (target, fields) in [
                ("/owned", ServerFixture.bearer(both)), ("/inside", ana), ("/others", ana), ("/owned", ana),
            ] {
                #expect(try await fixture.send("GET", fixture.gateway(target), fields).status == 200, "\(target)")
            }
        }
    }

    @Test("The route with the longest path answers, wherever it stands, in upper case as in lower")
    func longestPath() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            for target in ["/down", "/DOWN"] {
                let reply = try await fixture.send("GET", fixture.gateway(target), ServerFixture.session(session))
                #expect(reply.status == 502, "\(target)")
            }
            let weak = try await fixture.tokens(session: session, scope: "openid").access
            for target in ["/scoped", "/Scoped"] {
                let reply = try await fixture.send("GET", fixture.gateway(target), ServerFixture.bearer(weak))
                #expect(reply.status == 403 && reply["WWW-Authenticate"]?.contains("insufficient_scope") == true)
            }
            #expect(fixture.upstream.requests.isEmpty)
        }
    }

    @Test("A route binds bodies of its own media type and no other, and hands that type on whatever Connection says")
    func mediaType() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let mine = ServerFixture.session(session)
            for type in ["application/json", "text/html", "text/plain; charset=iso-8859-1"] {
                let reply = try await fixture.send(
                    "POST", fixture.gateway("/notes"), mine + [("Content-Type", type)], text: "{}")
                #expect(reply.status == 415, "\(type)")
            }
            #expect(try await fixture.count("transactions") == 0)
            let type = ("Content-Type", "Text/Plain; charset=UTF-8; format=Flowed")
            let refused = try await fixture.send(
                "POST", fixture.gateway("/notes"), mine + [type, ("x-authenticate-response", "header")], text: "hi")
            let id = try ServerFixture.transactionID(refused)
            #expect(try await fixture.approve(id, session: session).status == 200)
            func post(_ type: String) async throws -> String {
                try await fixture.raw(
                    "POST /notes?_txid=\(id) HTTP/1.1\r\nHost: localhost\r\niPlanetDirectoryPro: \(session)\r\n"
                        + "Connection: close, Content-Type\r\nContent-Type: \(type)\r\nContent-Length: 2\r\n\r\nhi")
            }
            #expect(try await post("text/plain; charset=utf-8; format=flowed").hasPrefix("HTTP/1.1 403 "))
            #expect(try await post("text/plain;CHARSET=utf-8;Format=Flowed").hasPrefix("HTTP/1.1 201 "))
            let request = try #require(fixture.upstream.requests.first)
            #expect(request.values("Content-Type") == ["text/plain;CHARSET=utf-8;Format=Flowed"])
            #expect(fixture.upstream.requests.count == 1)
        }
    }

    @Test("Use by access token keeps the session alive as use by its own token does")
    func keepsAlive() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let idle = try await fixture.session()
            let tokens = try await fixture.tokens(session: session)
            var refresh = tokens.refresh
            var access = tokens.access
            for _ in 0..<5 {
                fixture.clock.advance(by: 500)
                #expect(
                    try await fixture.send("GET", fixture.gateway("/accounts"), ServerFixture.bearer(access)).status
                        == 200)
                let renewed = try await fixture.refresh(refresh).json
                access = try #require(renewed["access_token"]?.string)
                refresh = try #require(renewed["refresh_token"]?.string)
            }
            let reply = try await fixture.send("GET", fixture.gateway("/accounts"), ServerFixture.session(session))
            #expect(reply.status == 200)
            let other = try await fixture.send("GET", fixture.gateway("/accounts"), ServerFixture.session(idle))
            #expect(other.status == 401, "2500 seconds without use are past its idle time")
        }
    }

    @Test("An access token is good until its time is over")
    func expiredToken() async throws {
        try await ServerFixture.run { fixture in
            let tokens = try await fixture.tokens(session: try await fixture.session())
            let bearer = ServerFixture.bearer(tokens.access)
            fixture.clock.advance(by: 599)
            #expect(try await fixture.send("GET", fixture.gateway("/accounts"), bearer).status == 200)
            fixture.clock.advance(by: 1)
            let reply = try await fixture.send("GET", fixture.gateway("/accounts"), bearer)
            #expect(reply.status == 401 && reply["WWW-Authenticate"] == #"Bearer error="invalid_token""#)
        }
    }
}
