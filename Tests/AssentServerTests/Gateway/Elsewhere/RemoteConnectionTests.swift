import AssentCore
import Foundation
import TestSupport
import Testing

@testable import AssentServer

@Suite("WebSockets and event streams through a gateway elsewhere")
struct RemoteConnectionTests {
    /// The latest end of the service.
    private typealias Service = Watched<TestUpstream.Peer?>

    private static let listed = "https://app.bank.example"

    /// A gateway's file with a route `live` to an echo service at this path.
    private static func withSockets(_ text: String, at path: String, to port: Int) -> String {
        text.replacing(
            "    - {name: open,",
            with: """
                    - name: live
                      path: \(path)
                      upstream: http://127.0.0.1:\(port)
                      realm: alpha
                      policySet: bank
                      websocket: true
                      recheckSeconds: 1
                      allowedOrigins: ["\(listed)"]
                    - {name: open,
                """, maxReplacements: 1)
    }

    /// Runs `body` beside a gateway of this engine whose route `live` leads to an echo service.
    private func run(
        at engine: ServerFixture, path: String = "/files/live",
        _ body: (GatewayAlone, EchoService) async throws -> Void
    ) async throws {
        let echo = try await EchoService.start()
        let editing = { (text: String) in Self.withSockets(text, at: path, to: echo.port) }
        do {
            try await GatewayAlone.run(at: engine, editing: editing) { alone in try await body(alone, echo) }
        } catch {
            await echo.stop()
            throw error
        }
        await echo.stop()
    }

    private func run(_ body: (GatewayAlone, EchoService) async throws -> Void) async throws {
        try await ServerFixture.run { engine in try await run(at: engine, body) }
    }

    /// Shakes hands and returns the connection with the head of the answer.
    private func open(
        _ alone: GatewayAlone, _ fields: [(String, String)], path: String = "/files/live"
    ) async throws -> (RawConnection, head: String) {
        let connection = try await RawConnection.open(port: alone.port)
        try await connection.send(EchoService.handshake(fields, path: path))
        return (connection, await connection.reply())
    }

    private func isOpen(_ head: String) -> Bool { head.hasPrefix("HTTP/1.1 101 ") }

    @Test("After a sign-out the socket is closed at the next look, and another session's is not")
    func signedOut() async throws {
        try await run { alone, echo in
            let session = try await alone.engine.session()
            let (mine, head) = try await open(alone, ServerFixture.session(session) + [("X-Remote-User", "eve")])
            let (other, otherHead) = try await open(
                alone, ServerFixture.session(try await alone.engine.session("ben")))
            #expect(isOpen(head) && isOpen(otherHead))
            #expect(try await mine.echoes("hello"))
            let seen = try #require(echo.seen.value.heads.first)
            #expect(seen.contains("X-Remote-User: ana") && !seen.contains("eve") && !seen.contains(session))
            try await alone.engine.signOut(session)
            _ = await mine.untilClosed()
            #expect(try await other.echoes("still here"))
            await other.close()
        }
    }

    @Test("A revoked grant closes the sockets of its access token")
    func revoked() async throws {
        try await run { alone, _ in
            let tokens = try await alone.engine.tokens(session: try await alone.engine.session())
            let (connection, head) = try await open(alone, ServerFixture.bearer(tokens.access))
            #expect(isOpen(head))
            #expect(try await connection.echoes("a"))
            let reply = try await alone.engine.send(
                "POST", alone.engine.oauth("token/revoke"), [("Content-Type", "application/x-www-form-urlencoded")],
                text: ServerFixture.query([("client_id", "bank-app"), ("token", tokens.refresh)]))
            #expect(reply.status == 200)
            _ = await connection.untilClosed()
        }
    }

    @Test("While the engine is away no socket is opened, and an open one is closed at the next look")
    func away() async throws {
        try await run { alone, echo in
            let session = ServerFixture.session(try await alone.engine.session())
            let (connection, head) = try await open(alone, session)
            #expect(isOpen(head))
            #expect(try await connection.echoes("hello"))
            alone.relay.lead(to: nil)
            _ = await connection.untilClosed()
            let (late, refusal) = try await open(alone, session)
            #expect(refusal.hasPrefix("HTTP/1.1 503 ") && refusal.contains(#""forwarded":"no""#))
            await late.close()
            #expect(echo.seen.value.connections == 1)
        }
    }

    @Test("A page must be the gateway's own or listed; a browser that names none opens nothing with the cookie")
    func origins() async throws {
        try await run { alone, echo in
            let session = try await alone.engine.session()
            let cookie = [("Cookie", "\(ServerFixture.cookieName)=\(session)")]
            for (fields, status) in [
                (cookie + [("Origin", GatewayAlone.origin)], 101), (cookie + [("Origin", Self.listed)], 101),
                (cookie + [("Origin", "https://evil.example")], 403), (cookie + [("Origin", "null")], 403),
                (cookie, 403), (cookie + [("Sec-Fetch-Site", "same-origin")], 403),
                (ServerFixture.session(session), 101), ([], 401),
            ] {
                let (connection, head) = try await open(alone, fields)
                #expect(head.hasPrefix("HTTP/1.1 \(status) "), "\(fields)")
                await connection.close()
            }
            #expect(echo.seen.value.connections == 3)
        }
    }

    @Test("Where the engine's policy asks for a transaction no socket can be had, not even with one that is approved")
    func transaction() async throws {
        // The gateway cannot know it when it starts: the policies are the engine's.
        let editing = { (text: String) in
            text.replacing(
                "          - name: nod\n",
                with: """
                              - name: socket
                                resources: ["https://localhost:*/sockets"]
                                actionValues: {GET: true}
                                subject: {type: AuthenticatedUsers}
                                condition: {type: Transaction, strategySpecifier: Nod, ttl: 180}
                                bind: [method, query]
                              - name: nod

                    """, maxReplacements: 1)
        }
        try await ServerFixture.run(editing: editing) { engine in
            try await run(at: engine, path: "/sockets") { alone, echo in
                let session = try await engine.session()
                let mine = ServerFixture.session(session)
                let (asking, head) = try await open(
                    alone, mine + [("x-authenticate-response", "header")], path: "/sockets")
                #expect(head.hasPrefix("HTTP/1.1 401 ") && head.contains("SSOADVICE"))
                await asking.close()
                #expect(echo.seen.value.connections == 0)
                let refused = try await alone.get("/sockets", mine + [("x-authenticate-response", "header")])
                echo.answer(.text("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"))
                let id = try ServerFixture.transactionID(refused)
                #expect(try await engine.approve(id, session: session).status == 200)
                let (approved, answer) = try await open(alone, mine + [("X-TxID", id)], path: "/sockets")
                #expect(answer.hasPrefix("HTTP/1.1 ") && !isOpen(answer))
                await approved.close()
                #expect(!echo.seen.value.heads.contains { $0.lowercased().contains("upgrade: websocket") })
            }
        }
    }

    /// Runs `body` beside a gateway whose first route looks callers up each second, with a service that begins an event
    /// stream and leaves it open.
    private func runStreams(_ body: (GatewayAlone, Service) async throws -> Void) async throws {
        let editing = { (text: String) in
            text.replacing(
                "      maxBodyBytes: 4096\n", with: "      maxBodyBytes: 4096\n      recheckSeconds: 1\n",
                maxReplacements: 1)
        }
        try await GatewayAlone.run(editing: editing) { alone in
            let service = Service(nil)
            alone.upstream.answer { _, peer in
                service.update { $0 = peer }
                peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
                peer.send(Self.chunk("data: first\n\n"))
            }
            try await body(alone, service)
        }
    }

    private static func chunk(_ text: String) -> String {
        String(text.utf8.count, radix: 16) + "\r\n" + text + "\r\n"
    }

    /// Asks for a stream.
    private func ask(
        _ alone: GatewayAlone, _ request: String, _ fields: [(String, String)], body: String = ""
    ) async throws -> RawConnection {
        let connection = try await RawConnection.open(port: alone.port)
        let all = [("Host", "localhost"), ("Accept", "text/event-stream")] + fields
        let lines = ["\(request) HTTP/1.1"] + all.map { "\($0.0): \($0.1)" }
        try await connection.send(lines.joined(separator: "\r\n") + "\r\n\r\n" + body)
        return connection
    }

    @Test("After a sign-out the stream is closed at the next look, within a line")
    func signedOutOfStream() async throws {
        try await runStreams { alone, service in
            let session = try await alone.engine.session()
            let connection = try await ask(alone, "GET /files/a", ServerFixture.session(session))
            #expect(await connection.wait(for: "data: first\n\n"))
            let peer = try #require(service.value)
            peer.send(Self.chunk("data: {\"amount\": 1"))
            #expect(await connection.wait(for: "\"amount\": 1"))
            try await alone.engine.signOut(session)
            let text = await connection.untilClosed()
            // What has no end is not complete: neither the event nor the reply.
            #expect(text.contains("\"amount\": 1") && !text.hasSuffix("0\r\n\r\n"))
        }
    }

    @Test("A stream that a transaction has opened goes on at each look, makes no other one, and ends with the session")
    func approvedStream() async throws {
        try await runStreams { alone, service in
            let session = try await alone.engine.session()
            let id = try await alone.approved(session: session)
            let made = try await alone.engine.count("transactions")
            let body = FixtureBody.transfer
            let connection = try await ask(
                alone, "POST /nods",
                ServerFixture.session(session) + [
                    ("Content-Type", "application/json"), ("Content-Length", "\(body.utf8.count)"), ("X-TxID", id),
                ], body: body)
            #expect(await connection.wait(for: "data: first\n\n"))
            await alone.waitUntilHeard()
            #expect(try await alone.outcome(id, session: session) == ["state": "answered", "status": 200])
            let before = alone.relay.count("decide")
            await alone.relay.calls.wait { calls in calls.count { $0 == "decide" } >= before + 2 }
            try #require(service.value).send(Self.chunk("data: still here\n\n"))
            #expect(await connection.wait(for: "data: still here\n\n"))
            #expect(try await alone.engine.count("transactions") == made)
            let looks = try alone.relay.requests("decide").suffix(2).map { try JSONValue.parse($0.body) }
            for look in looks {
                #expect(look["recheck"] == true && look["approved"] == true)
                #expect(look["transaction"] == nil)
            }
            try await alone.engine.signOut(session)
            let text = await connection.untilClosed()
            #expect(!text.hasSuffix("0\r\n\r\n"))
            #expect(alone.upstream.requests.count == 1)
        }
    }

    #if PostgreSQL && os(Linux)
    @Test("A policy that has changed closes the sockets that it had allowed")
    func changedPolicy() async throws {
        // The second node has the file of after the change.
        let editing = { (text: String) in
            text.replacing("https://localhost:*/files/*", with: "https://localhost:*/archive/*")
        }
        try await TwoNodes.run(editing: editing) { nodes in
            try await run(at: nodes.first) { alone, _ in
                let session = ServerFixture.session(try await nodes.first.session())
                let (connection, head) = try await open(alone, session)
                #expect(isOpen(head))
                #expect(try await connection.echoes("hello"))
                alone.relay.lead(to: nodes.second)
                _ = await connection.untilClosed()
                let (late, refusal) = try await open(alone, session)
                #expect(refusal.hasPrefix("HTTP/1.1 403 "))
                await late.close()
                // The control: it is neither the session nor the way to the second node.
                #expect(try await alone.get("/accounts", session).status == 200)
            }
        }
    }
    #endif
}
