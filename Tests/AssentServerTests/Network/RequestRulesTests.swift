import AssentCore
import AssentEngine
import Foundation
import Hummingbird
import TestSupport
import Testing

@testable import AssentServer

@Suite("What HTTP/1 says, on the wire", .server)
struct RequestRulesTests {
    private static let health = "/healthz"

    private func reply(_ text: String, toGateway: Bool = false) async throws -> String {
        try await #require(ServerFixture.shared).raw(text, toGateway: toGateway)
    }

    @Test("A request without a host, with two or with a bad one is 400", arguments: [true, false])
    func hosts(toGateway: Bool) async throws {
        for hosts in ["", "Host: a\r\nHost: b\r\n", "Host: a b\r\n"] {
            let reply = try await reply("GET \(Self.health) HTTP/1.1\r\n\(hosts)\r\n", toGateway: toGateway)
            #expect(reply.hasPrefix("HTTP/1.1 400 "), "\(hosts): \(reply)")
        }
    }

    @Test("A field that is slow to compare is 400 before anybody looks at it", arguments: [true, false])
    func marks(toGateway: Bool) async throws {
        let marks = String(repeating: "\u{301}\u{316}", count: 10_000)
        for field in ["Sec-Fetch-Site: s\(marks)", "Cookie: a=\(marks)", "Accept-Language: \(marks)"] {
            let reply = try await reply(
                "GET \(Self.health) HTTP/1.1\r\nHost: localhost\r\n\(field)\r\n\r\n", toGateway: toGateway)
            #expect(reply.hasPrefix("HTTP/1.1 400 "), "\(field.prefix(10)): \(reply)")
        }
        let few = String(repeating: "\u{301}", count: 64)
        let served = try await reply(
            "GET \(Self.health) HTTP/1.1\r\nHost: localhost\r\nA: b\(few)\r\nConnection: close\r\n\r\n")
        #expect(served.hasPrefix("HTTP/1.1 200 "), "\(served)")
    }

    @Test(
        "A request that names another host than the public URL's is 400, but for its health", arguments: [true, false])
    func foreignHosts(toGateway: Bool) async throws {
        let configuration = "/am/oauth2/realms/root/realms/alpha/.well-known/openid-configuration"
        let path = toGateway ? "/open/x" : configuration
        for (host, isServed) in [
            ("localhost", true), ("LOCALHOST:1", true), ("127.0.0.1", true), ("[::1]:8443", true),
            ("evil.example", false), ("localhost.evil.example", false), ("evil.example:443", false),
            ("192.0.2.1", false), ("localhost@evil.example", false), ("127.1", false), ("localhost:x", false),
        ] {
            let reply = try await reply(
                "GET \(path) HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n", toGateway: toGateway)
            #expect(reply.hasPrefix("HTTP/1.1 400 ") != isServed, "\(host): \(reply)")
        }
        let told = try await reply(
            "GET \(path) HTTP/1.1\r\nHost: backend:8443\r\nConnection: close\r\n\r\n", toGateway: toGateway)
        #expect(told.contains("A proxy must pass the field Host on"), "\(told)")
        let health = try await reply("GET \(Self.health) HTTP/1.1\r\nHost: 192.0.2.1\r\nConnection: close\r\n\r\n")
        #expect(health.hasPrefix("HTTP/1.1 200 "), "\(health)")
    }

    @Test("A file lists further hosts, and a server that is for others is not served under this machine's names")
    func listedHosts() throws {
        let hosts = try ServedHosts(urls: ["https://am.bank.example/am"], names: ["am.internal", "192.0.2.7"])
        for host in ["am.bank.example", "AM.bank.example.:443", "am.internal:8443", "192.0.2.7"] {
            #expect(hosts.serve(host), "\(host)")
        }
        for host in ["bank.example", "x.am.bank.example", "localhost", "127.0.0.1", "", ":443", "[192.0.2.7]"] {
            #expect(!hosts.serve(host), "\(host)")
        }
        #expect(hosts.serve(nil))
        #expect(throws: (any Error).self) { try ServedHosts(urls: [], names: ["a b"]) }
    }

    @Test("HTTP/1.0 gets a reply without chunks and the end of the connection at once")
    func http10() async throws {
        // A connection that were only silent would not end.
        try await ServerFixture.run(configuring: { $0.idleSeconds = Patience.seconds }) { fixture in
            let reply = try await fixture.raw("GET \(Self.health) HTTP/1.0\r\n\r\n", toGateway: false)
            #expect(reply.hasPrefix("HTTP/1.0 200 "), "\(reply)")
            #expect(!reply.lowercased().contains("transfer-encoding"))
        }
    }

    @Test("A streamed reply of a service goes to HTTP/1.0 without chunks")
    func http10Streamed() async throws {
        try await ServerFixture.run { fixture in
            let token = try await fixture.session()
            fixture.upstream.answer { _, peer in
                peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
            }
            let reply = try await fixture.raw("GET /files/x HTTP/1.0\r\niPlanetDirectoryPro: \(token)\r\n\r\n")
            #expect(reply.hasPrefix("HTTP/1.0 200 "), "\(reply)")
            #expect(reply.hasSuffix("\r\n\r\nhello"), "\(reply)")
        }
    }

    @Test("TRACE is refused everywhere")
    func trace() async throws {
        for path in [Self.health, "/am/json/serverinfo/*"] {
            let reply = try await reply("TRACE \(path) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            #expect(reply.hasPrefix("HTTP/1.1 405 "), "\(reply)")
        }
    }

    @Test("What only reads and needs nobody can be asked for by HEAD")
    func head() async throws {
        let fixture = try #require(ServerFixture.shared)
        for url in [fixture.oauth(".well-known/openid-configuration"), fixture.oauth("connect/jwk_uri")] {
            let reply = try await fixture.send("HEAD", url)
            #expect(reply.status == 200)
            #expect(reply.bytes.isEmpty)
        }
        #expect(try await fixture.send("HEAD", fixture.oauth("authorize")).status == 405)
    }

    @Test("A client that waits to be asked for its body is asked, and one that is refused is not")
    func expectation() async throws {
        let fixture = try #require(ServerFixture.shared)
        let asked = try await fixture.rawConnection(toGateway: false)
        try await asked.send(
            "POST /am/json/realms/root/realms/alpha/authenticate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
                + "Content-Type: application/json\r\nExpect: 100-continue\r\n\r\n")
        #expect(await asked.reply() == "HTTP/1.1 100 Continue\r\n\r\n")
        try await asked.send("{}")
        #expect(await asked.reply().hasPrefix("HTTP/1.1 200 "))
        await asked.close()

        let refused = try await reply(
            "POST /nods HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Type: application/json\r\n"
                + "Expect: 100-continue\r\n\r\n", toGateway: true)
        #expect(refused.hasPrefix("HTTP/1.1 401 "), "\(refused)")
    }

    @Test("Who has no session is refused before a bound body has come, and the rest is not read")
    func callerFirst() async throws {
        let refused = try await reply(
            "POST /nods HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000\r\nConnection: close\r\n"
                + "Content-Type: application/json\r\n\r\n{", toGateway: true)
        #expect(refused.hasPrefix("HTTP/1.1 401 "), "\(refused)")
    }

    @Test("After 413 and 401 the connection ends, whatever else is sent")
    func uploads() async throws {
        let fixture = try #require(ServerFixture.shared)
        let token = try await fixture.session()
        for (session, path, status) in [(token, "/nods", "413"), ("none", "/files/x", "401")] {
            let connection = try await fixture.rawConnection()
            try await connection.send(
                "POST \(path) HTTP/1.1\r\nHost: localhost\r\niPlanetDirectoryPro: \(session)\r\n"
                    + "Content-Length: 1000000000\r\nContent-Type: application/json\r\n\r\n")
            let reply = await connection.reply()
            #expect(reply.hasPrefix("HTTP/1.1 \(status) "), "\(reply)")
            #expect(reply.lowercased().contains("connection: close"))
            for _ in 0..<64 { try await connection.send([UInt8](repeating: 0x61, count: 64 << 10)) }
            _ = await connection.untilClosed()
        }
    }

    @Test("A client's own broken chunk is its mistake, and not the service's")
    func brokenChunk() async throws {
        try await ServerFixture.run { fixture in
            let token = try await fixture.session()
            let reply = try await fixture.raw(
                "PUT /files/x HTTP/1.1\r\nHost: localhost\r\niPlanetDirectoryPro: \(token)\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\nzz\r\n")
            #expect(reply.hasPrefix("HTTP/1.1 400 "), "\(reply)")
        }
    }

    @Test("A request that could not be recorded as forwarded is 503, and says that nothing was")
    func notRecorded() {
        let response = Forwarding.response(to: .notRecorded, transaction: "t")
        #expect(response.status.code == 503)
    }

    @Test(
        "No other transfer coding than chunked is taken, and what follows is no request", arguments: [true, false],
        ["", " ", "gzip, chunked", "chunked, chunked"])
    func codings(toGateway: Bool, coding: String) async throws {
        let fixture = try #require(ServerFixture.shared)
        let token = try await fixture.session()
        let path = toGateway ? "/files/x" : "/am/json/authenticate"
        let reply = try await reply(
            "POST \(path) HTTP/1.1\r\nHost: localhost\r\niPlanetDirectoryPro: \(token)\r\n"
                + "Transfer-Encoding: \(coding)\r\n\r\nGET \(Self.health) HTTP/1.1\r\nHost: localhost\r\n\r\n",
            toGateway: toGateway)
        #expect(reply.hasPrefix("HTTP/1.1 400 "), "\(reply)")
        #expect(reply.components(separatedBy: "HTTP/1.1 ").count == 2, "\(reply)")
    }

    @Test("A body that came too late is 408")
    func late() async throws {
        let request = Request(
            head: .init(method: .post, scheme: "https", authority: "localhost", path: "/"),
            body: RequestBody(asyncSequence: LateBody()))
        await #expect(throws: RequestError(408, "The request's body did not come in time.")) {
            _ = try await request.bytes(upTo: 10)
        }
    }

    private struct LateBody: AsyncSequence, Sendable {
        typealias Element = ByteBuffer

        func makeAsyncIterator() -> Iterator { Iterator() }

        struct Iterator: AsyncIteratorProtocol {
            func next() async throws -> ByteBuffer? { throw BodyTimeout() }
        }
    }
}
