import AssentConfiguration
import AssentCore
import Foundation
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Event streams and other replies without an end through the gateway")
struct EventStreamTests {
    /// The ends of the service, by the path that was asked for.
    private typealias Peers = Watched<[String: TestUpstream.Peer]>

    private static let eventStream = "text/event-stream"

    /// A server whose first route has these further keys, with a service that begins a stream of a type and leaves it
    /// open.
    private func run(
        _ keys: String, type: String = eventStream, _ body: (ServerFixture, Peers) async throws -> Void
    ) async throws {
        let editing = { (text: String) in
            text.replacing("      home: /accounts\n", with: "      home: /accounts\n\(keys)", maxReplacements: 1)
        }
        try await ServerFixture.run(editing: editing) { fixture in
            let peers = Peers([:])
            fixture.upstream.answer { request, peer in
                let path = String(request.line.split(separator: " ").dropFirst().first ?? "")
                peers.update { $0[path] = peer }
                let head = "HTTP/1.1 200 OK\r\nContent-Type: \(type)\r\nTransfer-Encoding: chunked\r\n\r\n"
                // In one piece: a thread that stood still in between would be silence.
                peer.send(head + Self.chunk("data: \(path)\n\n"))
            }
            try await body(fixture, peers)
        }
    }

    private static func chunk(_ text: String) -> String {
        String(text.utf8.count, radix: 16) + "\r\n" + text + "\r\n"
    }

    /// Asks for a stream and waits for its first event, or for the reply that there is none.
    private func open(
        _ fixture: ServerFixture, _ path: String, _ credentials: [(String, String)], accept: String? = eventStream
    ) async throws -> RawConnection {
        let connection = try await fixture.rawConnection()
        let fields = credentials + (accept.map { [("Accept", $0)] } ?? [])
        let lines = ["GET \(path) HTTP/1.1", "Host: localhost"] + fields.map { "\($0.0): \($0.1)" }
        try await connection.send(lines.joined(separator: "\r\n") + "\r\n\r\n")
        return connection
    }

    @Test("Events reach the client one by one, and the end that the service makes is an end")
    func events() async throws {
        try await run("") { fixture, peers in
            let mine = ServerFixture.session(try await fixture.session())
            let connection = try await open(fixture, "/files/a", mine)
            #expect(await connection.wait(for: "data: /files/a\n\n"))
            let peer = try #require(peers.value["/files/a"])
            for number in 1...3 {
                peer.send(Self.chunk("data: \(number)\n\n"))
                #expect(await connection.wait(for: "data: \(number)\n\n"))
            }
            peer.send("0\r\n\r\n")
            #expect(await connection.wait(for: "\r\n0\r\n\r\n"))
            await connection.close()
        }
    }

    @Test("After a sign-out the stream is closed at the next look, within a line, and another session's is not")
    func signOut() async throws {
        try await run("      recheckSeconds: 1\n") { fixture, peers in
            let session = try await fixture.session()
            let mine = try await open(fixture, "/files/a", ServerFixture.session(session))
            let other = try await open(fixture, "/files/b", ServerFixture.session(try await fixture.session()))
            #expect(await mine.wait(for: "data: /files/a\n\n"))
            #expect(await other.wait(for: "data: /files/b\n\n"))
            try #require(peers.value["/files/a"]).send(Self.chunk("data: {\"amount\": 1"))
            #expect(await mine.wait(for: "\"amount\": 1"))
            try await fixture.signOut(session)
            let text = await mine.untilClosed()
            // What has no end is not complete: neither the event nor the reply.
            #expect(text.contains("\"amount\": 1") && !text.hasSuffix("0\r\n\r\n"))
            try #require(peers.value["/files/b"]).send(Self.chunk("data: still here\n\n"))
            #expect(await other.wait(for: "data: still here"))
            await other.close()
            #expect(String(decoding: fixture.logged, as: UTF8.self).contains("a stream was closed"))
        }
    }

    @Test("A revoked grant closes the streams of its access token")
    func revoked() async throws {
        try await run("      recheckSeconds: 1\n") { fixture, _ in
            let tokens = try await fixture.tokens(session: try await fixture.session())
            let connection = try await open(fixture, "/files/a", ServerFixture.bearer(tokens.access))
            #expect(await connection.wait(for: "data: /files/a"))
            let reply = try await fixture.send(
                "POST", fixture.oauth("token/revoke"), [("Content-Type", "application/x-www-form-urlencoded")],
                text: ServerFixture.query([("client_id", "bank-app"), ("token", tokens.refresh)]))
            #expect(reply.status == 200)
            _ = await connection.untilClosed()
        }
    }

    @Test("A stream on which the service says nothing is closed")
    func silent() async throws {
        try await run("      timeouts: {silenceSeconds: 1}\n") { fixture, _ in
            let mine = ServerFixture.session(try await fixture.session())
            let connection = try await open(fixture, "/files/a", mine)
            let text = await connection.untilClosed()
            #expect(text.contains("data: /files/a") && !text.hasSuffix("0\r\n\r\n"))
        }
    }

    @Test("A service that ends in the middle of a line ends the client's connection there, without an end of the reply")
    func cut() async throws {
        try await run("") { fixture, peers in
            let mine = ServerFixture.session(try await fixture.session())
            let connection = try await open(fixture, "/files/a", mine)
            #expect(await connection.wait(for: "data: /files/a\n\n"))
            let peer = try #require(peers.value["/files/a"])
            peer.send(Self.chunk("id: 7\ndata: {\"paid\": tr"))
            #expect(await connection.wait(for: "{\"paid\": tr"))
            peer.close()
            let text = await connection.untilClosed()
            #expect(text.contains("{\"paid\": tr") && !text.hasSuffix("0\r\n\r\n"))
        }
    }

    @Test("Of an approved stream that was cut the gateway says that it was answered, and opens no second one")
    func approvedCut() async throws {
        try await run("") { fixture, peers in
            let session = try await fixture.session()
            let mine = ServerFixture.session(session)
            let id = try await fixture.completedTransaction(session: session)
            let body = FixtureBody.transfer
            let fields = ServerFixture.jsonFields + mine + [("X-TxID", id), ("Accept", Self.eventStream)]
            let lines = fields.map { "\($0.0): \($0.1)" } + ["Content-Length: \(body.utf8.count)", "Host: localhost"]
            let connection = try await fixture.rawConnection()
            try await connection.send(
                "POST /nods HTTP/1.1\r\n" + lines.joined(separator: "\r\n") + "\r\n\r\n" + body)
            #expect(await connection.wait(for: "data: /nods\n\n"))
            let peer = try #require(peers.value["/nods"])
            peer.send(Self.chunk("data: {\"paid\": tr"))
            #expect(await connection.wait(for: "{\"paid\": tr"))
            peer.close()
            #expect(await !connection.untilClosed().hasSuffix("0\r\n\r\n"))
            let again = try await fixture.send("POST", fixture.gateway("/nods"), fields, text: body)
            #expect(again.status == 409 && again.json["outcome"] == ["state": "answered", "status": 200])
            #expect(fixture.upstream.requests.count == 1)
        }
    }

    @Test("A route has so many streams and no more: who asks for events is told before anything is forwarded")
    func limit() async throws {
        try await run("      maxStreams: 1\n") { fixture, peers in
            let mine = ServerFixture.session(try await fixture.session())
            let first = try await open(fixture, "/files/a", mine)
            #expect(await first.wait(for: "data: /files/a\n\n"))
            let second = try await open(fixture, "/files/b", mine)
            let refused = await second.reply()
            #expect(refused.hasPrefix("HTTP/1.1 503 ") && refused.contains(#""forwarded":"no""#))
            #expect(peers.value["/files/b"] == nil)
            // Who did not say that they want events has reached the service.
            let third = try await open(fixture, "/files/c", mine, accept: nil)
            let late = await third.reply()
            #expect(late.hasPrefix("HTTP/1.1 504 ") && late.contains(#""forwarded":"unknown""#))
            #expect(peers.value["/files/c"] != nil)
            try #require(peers.value["/files/a"]).send("0\r\n\r\n")
            #expect(await first.wait(for: "\r\n0\r\n\r\n"))
            var isFree = false
            while !isFree {
                let next = try await open(fixture, "/files/d", mine)
                #expect(await next.wait(for: "\r\n\r\n"))
                let head = String(decoding: next.bytes, as: UTF8.self)
                isFree = head.hasPrefix("HTTP/1.1 200 ")
                #expect(isFree || head.hasPrefix("HTTP/1.1 503 "))
                await next.close()
            }
            for connection in [first, second, third] { await connection.close() }
        }
    }

    @Test("Where a stream without a place began before all of the request was there, nothing reads on for the service")
    func limitBeforeBody() async throws {
        try await run("      maxStreams: 1\n") { fixture, peers in
            let mine = ServerFixture.session(try await fixture.session())
            let first = try await open(fixture, "/files/a", mine)
            #expect(await first.wait(for: "data: /files/a\n\n"))
            fixture.upstream.answerEarly { _, peer in
                let fields = "Content-Type: \(Self.eventStream)\r\nTransfer-Encoding: chunked"
                peer.send("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n")
            }
            let fields = mine.map { "\($0.0): \($0.1)\r\n" }.joined()
            let head = "POST /files/b HTTP/1.1\r\nHost: localhost\r\n\(fields)Content-Length: 10\r\n\r\n"
            // Two that read one body end the process; whether they meet depends on threads.
            for _ in 0..<200 {
                let connection = try await fixture.rawConnection()
                try await connection.send(head + "01234")
                #expect(await connection.reply().hasPrefix("HTTP/1.1 504 "))
                await connection.close()
            }
            try #require(peers.value["/files/a"]).send(Self.chunk("data: still here\n\n"))
            #expect(await first.wait(for: "data: still here\n\n"))
            await first.close()
        }
    }

    @Test("A transaction is not spent where there is no place for the stream that its request asks for")
    func approvedLimit() async throws {
        try await run("      maxStreams: 1\n") { fixture, peers in
            let session = try await fixture.session()
            let mine = ServerFixture.session(session)
            let url = fixture.gateway("/nods")
            let id = try await fixture.completedTransaction(session: session)
            let first = try await open(fixture, "/files/a", mine)
            #expect(await first.wait(for: "data: /files/a\n\n"))
            let approved = ServerFixture.jsonFields + mine + [("X-TxID", id), ("Accept", "text/event-stream")]
            let full = try await fixture.send("POST", url, approved, text: FixtureBody.transfer)
            #expect(full.status == 503 && full.json["forwarded"] == "no")
            let peer = try #require(peers.value["/files/a"])
            fixture.upstream.answer(with: TestUpstream.answering)
            peer.send("0\r\n\r\n")
            #expect(await first.wait(for: "\r\n0\r\n\r\n"))
            var status = 503
            while status == 503 {
                status = try await fixture.send("POST", url, approved, text: FixtureBody.transfer).status
            }
            #expect(status == 201)
            await first.close()
        }
    }

    @Test("A reply of another type that goes on without a length is looked after too; one that says its length is not")
    func others() async throws {
        try await run("      recheckSeconds: 1\n", type: "application/x-ndjson") { fixture, peers in
            let session = try await fixture.session()
            let mine = ServerFixture.session(session)
            let endless = try await open(fixture, "/files/a", mine)
            #expect(await endless.wait(for: "data: /files/a"))
            let known = peers
            fixture.upstream.answer { _, peer in
                known.update { $0["length"] = peer }
                peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 10\r\n\r\n01234")
            }
            let long = try await open(fixture, "/files/b", mine)
            #expect(await long.wait(for: "01234"))
            try await fixture.signOut(session)
            _ = await endless.untilClosed()
            try #require(peers.value["length"]).send("56789")
            #expect(await long.wait(for: "56789"))
            await long.close()
        }
    }

    @Test(
        "A mistake is named",
        arguments: [
            ("home: /accounts", "maxStreams: 0", "maxStreams"),
            ("home: /accounts", "recheckSeconds: 0", "recheckSeconds"),
            ("public: true}", "public: true, recheckSeconds: 5}", "a public route has no recheckSeconds"),
        ])
    func mistakes(_ find: String, _ replacement: String, _ message: String) throws {
        let good = FixtureConfiguration.yaml(upstream: 9080, refusing: 9081)
        let text = good.replacing(find, with: replacement, maxReplacements: 1)
        let error = #expect(throws: ConfigurationError.self) {
            try ServerConfiguration.parse(text, file: "/etc/assent.yaml")
        }
        #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
    }
}
