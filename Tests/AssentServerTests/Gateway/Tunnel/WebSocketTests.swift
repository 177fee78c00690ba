import AssentConfiguration
import AssentCore
import Foundation
import TestSupport
import Testing

@testable import AssentServer

@Suite("WebSockets through the gateway")
struct WebSocketTests {
    private static let listed = "https://app.bank.example"

    /// The route `live` to an echo service, with these further keys.
    private static func route(_ port: Int, _ keys: String) -> String {
        """
            - {name: live, path: /files/live, upstream: "http://127.0.0.1:\(port)", realm: alpha, policySet: bank, \(keys)}
            - {name: public-live, path: /open/live, upstream: "http://127.0.0.1:\(port)", public: true, websocket: true}
            - {name: down,
        """
    }

    private func run(
        _ keys: String = "websocket: true, allowedOrigins: [\"\(listed)\"]", settings: String = "",
        _ body: (ServerFixture, EchoService) async throws -> Void
    ) async throws {
        let echo = try await EchoService.start()
        let editing = { (text: String) in
            text.replacing("    - {name: down,", with: Self.route(echo.port, keys))
                .replacing("passwordCost: 1024", with: "passwordCost: 1024\(settings)")
        }
        do {
            try await ServerFixture.run(editing: editing) { fixture in try await body(fixture, echo) }
        } catch {
            await echo.stop()
            throw error
        }
        await echo.stop()
    }

    /// Opens a WebSocket and returns its connection with the head of the answer.
    private func open(
        _ fixture: ServerFixture, _ fields: [(String, String)], path: String = "/files/live"
    ) async throws -> (RawConnection, head: String) {
        let connection = try await fixture.rawConnection()
        try await connection.send(EchoService.handshake(fields, path: path))
        return (connection, await connection.reply())
    }

    private func isOpen(_ head: String) -> Bool { head.hasPrefix("HTTP/1.1 101 ") }

    @Test("Messages go both ways, and the service is told who has opened it, and nothing of the session")
    func echo() async throws {
        try await run { fixture, echo in
            let session = try await fixture.session()
            let (connection, head) = try await open(
                fixture,
                ServerFixture.session(session) + [("X-Remote-User", "eve"), ("Sec-WebSocket-Protocol", "chat")])
            #expect(isOpen(head) && head.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))
            for text in ["hello", "", "again"] { #expect(try await connection.echoes(text)) }
            let seen = try #require(echo.seen.value.heads.first)
            #expect(seen.hasPrefix("GET /files/live HTTP/1.1\r\n") && seen.contains("X-Remote-User: ana"))
            #expect(seen.contains("Sec-WebSocket-Protocol: chat") && !seen.contains("eve") && !seen.contains(session))
            await connection.close()
            await echo.seen.wait { $0.ended == 1 }
        }
    }

    @Test("What the service closes is closed for the client, after everything that it has sent")
    func serviceCloses() async throws {
        try await run { fixture, echo in
            let session = ServerFixture.session(try await fixture.session())
            let (connection, head) = try await open(fixture, session)
            #expect(isOpen(head))
            #expect(try await connection.echoes("last"))
            echo.hangUp()
            let rest = await connection.untilClosed()
            #expect(rest.hasSuffix("last"))
        }
    }

    @Test("A megabyte that the service sends last reaches the client whole, though the service is gone before")
    func last() async throws {
        try await run { fixture, echo in
            let rest = String(repeating: "0123456789abcdef", count: 1 << 16)
            echo.answer(
                .last(
                    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n" + rest))
            let session = ServerFixture.session(try await fixture.session())
            let (connection, head) = try await open(fixture, session)
            #expect(isOpen(head))
            let text = await connection.untilClosed()
            #expect(text.utf8.count == rest.utf8.count)
        }
    }

    @Test("Four megabytes there and back do not stop, though neither end can hold them")
    func large() async throws {
        try await run { fixture, echo in
            echo.answer(.bytes)
            let session = ServerFixture.session(try await fixture.session())
            let (connection, head) = try await open(fixture, session)
            #expect(isOpen(head))
            let block = (0..<65_536).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            for _ in 0..<64 { try await connection.send(block) }
            await connection.wait(forBytes: 64 * block.count)
            #expect(connection.bytes.count == 64 * block.count)
            #expect(connection.bytes.suffix(block.count).elementsEqual(block))
            await connection.close()
        }
    }

    @Test("After a sign-out the socket is closed at the next look, and another session's is not")
    func signOut() async throws {
        try await run("websocket: true, recheckSeconds: 1") { fixture, _ in
            let session = try await fixture.session()
            let (mine, head) = try await open(fixture, ServerFixture.session(session))
            let (other, otherHead) = try await open(fixture, ServerFixture.session(try await fixture.session()))
            #expect(isOpen(head) && isOpen(otherHead))
            try await fixture.signOut(session)
            _ = await mine.untilClosed()
            #expect(try await other.echoes("still here"))
            await other.close()
        }
    }

    @Test("A revoked grant closes the sockets of its access token")
    func revoked() async throws {
        try await run("websocket: true, recheckSeconds: 1") { fixture, _ in
            let tokens = try await fixture.tokens(session: try await fixture.session())
            let (connection, head) = try await open(fixture, ServerFixture.bearer(tokens.access))
            #expect(isOpen(head))
            #expect(try await connection.echoes("a"))
            let reply = try await fixture.send(
                "POST", fixture.oauth("token/revoke"), [("Content-Type", "application/x-www-form-urlencoded")],
                text: ServerFixture.query([("client_id", "bank-app"), ("token", tokens.refresh)]))
            #expect(reply.status == 200)
            _ = await connection.untilClosed()
        }
    }

    @Test("A socket on which nobody says anything is closed")
    func silent() async throws {
        try await run("websocket: true, tunnelSilenceSeconds: 1") { fixture, echo in
            let session = ServerFixture.session(try await fixture.session())
            let (connection, head) = try await open(fixture, session)
            #expect(isOpen(head))
            _ = await connection.untilClosed()
            await echo.seen.wait { $0.ended == 1 }
        }
    }

    @Test("A page must be the gateway's own or listed; a browser that names none opens nothing with the cookie")
    func origins() async throws {
        try await run { fixture, echo in
            let session = try await fixture.session()
            let (cookie, field) = ([("Cookie", "iPlanetDirectoryPro=\(session)")], ServerFixture.session(session))
            let own = fixture.gateway("")
            for (fields, status) in [
                (cookie + [("Origin", own)], 101), (cookie + [("Origin", Self.listed)], 101),
                (cookie + [("Origin", "https://evil.example")], 403), (cookie + [("Origin", "null")], 403),
                (cookie + [("Origin", own), ("Origin", "https://evil.example")], 403), (cookie, 403),
                (cookie + [("Sec-Fetch-Site", "same-origin")], 403), (field, 101),
                (field + [("Origin", "https://evil.example")], 403), ([], 401),
            ] {
                let (connection, head) = try await open(fixture, fields)
                #expect(head.hasPrefix("HTTP/1.1 \(status) "), "\(fields)")
                await connection.close()
            }
            let (connection, head) = try await open(
                fixture, [("Origin", "https://evil.example")], path: "/open/live")
            #expect(head.hasPrefix("HTTP/1.1 403 "))
            await connection.close()
            #expect(echo.seen.value.connections == 3)
        }
    }

    @Test("A handshake that is not exactly one reaches no service, and its connection is closed")
    func badHandshakes() async throws {
        try await run { fixture, echo in
            let session = ServerFixture.session(try await fixture.session())
            for (replacing, status) in [
                ([("Upgrade", ["websocket", "h2c"])], 400), ([("Upgrade", ["websocket, h2c"])], 400),
                ([("Upgrade", ["h2c"])], 400), ([("Upgrade", ["websocket", "websocket"])], 400),
                ([("Connection", ["close"])], 400), ([("Sec-WebSocket-Version", ["8"])], 426),
                // Backwards through these each takes as long as all before it.
                ([("Connection", [String(repeating: "\u{1F1E6}", count: 10_000)])], 400),
                ([("Sec-WebSocket-Key", ["x"])], 400), ([("Content-Length", ["2"])], 400),
            ] as [([(String, [String])], Int)] {
                let body = replacing.contains { $0.0 == "Content-Length" } ? "{}" : ""
                let reply = try await fixture.raw(EchoService.handshake(session, replacing: replacing) + body)
                #expect(reply.hasPrefix("HTTP/1.1 \(status) "), "\(replacing) \(reply)")
                #expect(reply.contains("Sec-WebSocket-Version: 13") == (status == 426))
            }
            #expect(echo.seen.value.connections == 0)
        }
    }

    @Test(
        "On other routes an Upgrade is removed, and the connection ends with the answer",
        arguments: ["websocket", "h2c"])
    func removed(_ name: String) async throws {
        try await run { fixture, _ in
            let session = ServerFixture.session(try await fixture.session())
            let reply = try await fixture.raw(
                EchoService.handshake(session, path: "/files/x", replacing: [("Upgrade", [name])]))
            #expect(reply.hasPrefix("HTTP/1.1 200 ") && reply.lowercased().contains("connection: close"))
            let seen = try #require(fixture.upstream.requests.first)
            #expect(seen.values("Upgrade") == [])
            #expect(!seen.values("Connection").contains { $0.lowercased().contains("upgrade") })
        }
    }

    @Test("Frames before the answer open nothing: with the handshake, and while the service thinks")
    func early() async throws {
        try await run { fixture, echo in
            let session = ServerFixture.session(try await fixture.session())
            let frame = EchoService.frame("early", isMasked: true)
            let together = try await fixture.rawConnection()
            try await together.send(Array(EchoService.handshake(session).utf8) + frame)
            #expect(await together.untilClosed().hasPrefix("HTTP/1.1 400 "))
            #expect(echo.seen.value.connections == 0)

            echo.answer(.nothing)
            let between = try await fixture.rawConnection()
            try await between.send(EchoService.handshake(session))
            await echo.seen.wait { $0.heads.count == 1 }
            try await between.send(frame)
            #expect(await between.untilClosed().isEmpty)
        }
    }

    @Test("A service that does not open the socket is answered for, and nothing of what it says opens one")
    func serviceRefuses() async throws {
        try await run { fixture, echo in
            let session = ServerFixture.session(try await fixture.session())
            let switching = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            for (manner, status) in [
                (.closing, 502), (.text("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), 404),
                (.text("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"), 502), (.text(switching + "\r\n"), 502),
                (.text(switching + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOp=\r\n\r\n"), 502),
                (.text("HTTP/1.1 101 x\r\nX: " + String(repeating: "a", count: 20_000) + "\r\n\r\n"), 502),
                (.text("SSH-2.0\r\n\r\n"), 502),
            ] as [(EchoService.Manner, Int)] {
                echo.answer(manner)
                let reply = try await fixture.raw(EchoService.handshake(session))
                #expect(reply.hasPrefix("HTTP/1.1 \(status) "), "\(manner)")
            }
        }
    }

    @Test("What comes with the service's answer reaches the client behind it")
    func eager() async throws {
        try await run { fixture, echo in
            // To the gateway it is bytes, so these stand for a frame.
            let hello = "hello"
            echo.answer(
                .text(
                    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n" + hello))
            let session = ServerFixture.session(try await fixture.session())
            let (connection, head) = try await open(fixture, session)
            #expect(isOpen(head))
            await connection.wait(forBytes: hello.utf8.count)
            #expect(connection.bytes == Array(hello.utf8))
            await connection.close()
        }
    }

    @Test("A 101 that nobody asked for is no answer")
    func unasked() async throws {
        try await run { fixture, _ in
            fixture.upstream.answer { _, peer in
                peer.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
            }
            let session = ServerFixture.session(try await fixture.session())
            let reply = try await fixture.send("GET", fixture.gateway("/files/x"), session)
            #expect(reply.status == 504 && reply["Upgrade"] == nil)
        }
    }

    @Test("A route has so many sockets and no more, and a place is free again when one has ended")
    func limit() async throws {
        try await run("websocket: true, maxTunnels: 2") { fixture, _ in
            let session = ServerFixture.session(try await fixture.session())
            let (first, second) = (try await open(fixture, session), try await open(fixture, session))
            #expect(isOpen(first.head) && isOpen(second.head))
            let (third, head) = try await open(fixture, session)
            #expect(head.hasPrefix("HTTP/1.1 503 "))
            await third.close()
            await first.0.close()
            var isFree = false
            while !isFree {
                let (next, head) = try await open(fixture, session)
                isFree = isOpen(head)
                #expect(isFree || head.hasPrefix("HTTP/1.1 503 "))
                await next.close()
            }
            await second.0.close()
        }
    }

    @Test("One address leaves sockets for others, also where all connections are those of a proxy in front")
    func share() async throws {
        let settings = "\ntrustedProxies: [127.0.0.1, \"::1\"]\nconnectionsPerAddress: 2"
        try await run(settings: settings) { fixture, _ in
            func visit(from address: String) async throws -> (RawConnection, head: String) {
                let fields = [("Origin", fixture.gateway("")), ("X-Forwarded-For", address)]
                return try await open(fixture, fields, path: "/open/live")
            }
            let first = try await visit(from: "192.0.2.7")
            let second = try await visit(from: "192.0.2.7")
            #expect(isOpen(first.head) && isOpen(second.head))
            let third = try await visit(from: "192.0.2.7")
            #expect(third.head.hasPrefix("HTTP/1.1 503 "))
            let other = try await visit(from: "192.0.2.8")
            #expect(isOpen(other.head))
            for (connection, _) in [first, second, third, other] { await connection.close() }
        }
    }

    @Test("A stop of the server does not wait for sockets")
    func stop() async throws {
        try await run { fixture, echo in
            let session = ServerFixture.session(try await fixture.session())
            let (connection, head) = try await open(fixture, session)
            #expect(isOpen(head))
            await fixture.triggerShutdown()
            _ = await connection.untilClosed()
            await fixture.waitUntilEnded()
            await echo.seen.wait { $0.ended == 1 }
        }
    }

    @Test("A public route opens sockets for everybody whose page may")
    func everybody() async throws {
        try await run { fixture, echo in
            let (connection, head) = try await open(
                fixture, [("Origin", fixture.gateway(""))], path: "/open/live")
            #expect(isOpen(head))
            #expect(try await connection.echoes("hello"))
            #expect(echo.seen.value.heads.first?.contains("X-Remote-User") == false)
            await connection.close()
        }
    }

    @Test(
        "A route that cannot keep its promise is refused with what to do",
        arguments: [
            ("home: /accounts", "maxTunnels: 5", "maxTunnels: belongs to websocket: true"),
            ("home: /accounts", "websocket: true\n      recheckSeconds: 0", "recheckSeconds"),
            ("home: /accounts", "websocket: true\n      maxTunnels: 0", "maxTunnels"),
            (
                "upstream: http://127.0.0.1:9080", "websocket: true\n      upstream: https://127.0.0.1:9080",
                "must be one http URL"
            ),
            (
                "policySet: bank\n      maxBodyBytes: 4096", "policySet: rest\n      websocket: true",
                "withdraw asks for a transaction for GET"
            ),
        ])
    func mistakes(_ find: String, _ replacement: String, _ message: String) throws {
        let good = FixtureConfiguration.yaml(upstream: 9080, refusing: 9081)
        let range = try #require(good.range(of: find))
        let text = good.replacingCharacters(in: range, with: replacement)
        let error = #expect(throws: ConfigurationError.self) {
            try ServerConfiguration.parse(text, file: "/etc/assent.yaml")
        }
        #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
    }
}
