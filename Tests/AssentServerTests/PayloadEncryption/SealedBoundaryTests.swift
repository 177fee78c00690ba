import AssentCore
import AssentPayload
import HTTPTypes
import Testing

@testable import AssentEngine
@testable import AssentServer

/// What is inside a message is a request like others: it reaches no more than a plain one, and says no more.
@Suite("Payload encryption: what the inside of a message cannot reach")
struct SealedBoundaryTests {
    /// Sends sealed calls of one session, one number after the other, and opens their replies.
    private struct Calls {
        let client: SealedClient
        var number: UInt64 = 0

        init(_ node: ServerFixture, _ key: PayloadKeys.Listed, toGateway: Bool = true) async throws {
            client = try await SealedClient(node, key, toGateway: toGateway)
        }

        mutating func send(
            _ request: HTTPRequest, _ content: [UInt8] = [], outside fields: [(String, String)] = []
        ) async throws -> SealedClient.Opened {
            number += 1
            let sealed = try client.sealed(request, content, number: number)
            let url = SealedClient.url(client.node, toGateway: client.toGateway, "/assent-pe/1/message")
            let answer = try await client.node.send("POST", url, SealedClient.field + fields, body: sealed.bytes)
            return try client.open(answer, to: sealed.head)
        }
    }

    private static let json = ("Content-Type", "application/json")

    private static func fields(_ named: [(String, String)]) throws -> HTTPFields {
        var fields = HTTPFields()
        for (name, value) in named { fields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value)) }
        return fields
    }

    @Test("36: Where a call comes from is what the proxy says beside the message, and nothing that stands in it")
    func address() async throws {
        try await ServerFixture.run { configuration in
            configuration.trustedProxies.networks = ["127.0.0.1", "::1"].compactMap(TrustedProxies.Network.init)
        } _: { fixture in
            let ana = ServerFixture.session(try await fixture.session())
            var calls = try await Calls(fixture, SealedClient.key(fixture))
            let (field, here, elsewhere) = ("X-Forwarded-For", "127.5.5.5", "8.8.8.8")
            for inside in [[], [elsewhere], [here], [elsewhere, here], ["\(here), \(elsewhere)"]] {
                let fields = try Self.fields(ana + inside.map { (field, $0) } + [("Forwarded", "for=\(here)")])
                for (path, outside, isAllowed) in [
                    ("/inside", here, true), ("/outside", here, false), ("/inside", elsewhere, false),
                    ("/outside", elsewhere, true),
                ] {
                    let request = calls.client.request(.get, path, fields)
                    let opened = try await calls.send(request, outside: [(field, outside)])
                    #expect((opened.status == 403) != isAllowed, "\(path) from \(outside), with \(inside) inside")
                    guard isAllowed else { continue }
                    #expect(fixture.upstream.requests.last?.values(field) == [outside])
                }
            }
        }
    }

    @Test("36: A message in a session of one listener reaches nothing of the other, by authority, Host or path")
    func otherListener() async throws {
        try await ServerFixture.run { fixture in
            let key = try await SealedClient.key(fixture)
            let host = try #require(HTTPField.Name("Host"))
            let paths = (server: "/am/json/realms/root/realms/alpha/serverinfo/*", gateway: "/open")
            for toGateway in [true, false] {
                var calls = try await Calls(fixture, key, toGateway: toGateway)
                let other = try SealedClient.origin(fixture, toGateway: !toGateway)
                let foreign = toGateway ? paths.server : paths.gateway
                for path in [paths.server, paths.gateway] {
                    var named = calls.client.request(.get, path)
                    named.authority = other.authority
                    #expect(try await calls.send(named).status == 421, "\(path)")
                    let hosted = calls.client.request(.get, path, [host: other.authority])
                    #expect(try await calls.send(hosted).status == 421, "\(path)")
                }
                // Under its own name a listener knows nothing of the other's paths.
                let status = try await calls.send(calls.client.request(.get, foreign)).status
                #expect(status == (toGateway ? 401 : 404))
                #expect(fixture.upstream.requests.isEmpty)
                // The control, which the gateway would forward.
                guard !toGateway else { continue }
                #expect(try await calls.send(calls.client.request(.get, paths.server)).status == 200)
            }
        }
    }

    @Test("36: A method that no plain call may have is refused inside, too, and nothing is forwarded")
    func methods() async throws {
        try await ServerFixture.run { fixture in
            let key = try await SealedClient.key(fixture)
            for toGateway in [true, false] {
                let methods = ["TRACE", "CONNECT"] + (toGateway ? ["PROPFIND", "get"] : [])
                var calls = try await Calls(fixture, key, toGateway: toGateway)
                for method in methods {
                    let method = try #require(HTTPRequest.Method(method))
                    let path = toGateway ? "/open" : "/am/json/realms/root/realms/alpha/serverinfo/*"
                    #expect(try await calls.send(calls.client.request(method, path)).status == 405, "\(method)")
                }
            }
            #expect(fixture.upstream.requests.isEmpty)
        }
    }

    @Test("36: A URL that two programs could read differently is refused inside, too, and makes no transaction")
    func targets() async throws {
        try await ServerFixture.run { fixture in
            var calls = try await Calls(fixture, SealedClient.key(fixture))
            let fields = try Self.fields(ServerFixture.session(try await fixture.session()) + ServerFixture.jsonFields)
            for target in [
                "/a/../nods", "/./nods", "/nods/..", "/a/%2e%2e/nods", "/..;x/nods", "/open/..%3b/nods",
                "/open/%c0%ae%c0%ae/nods", "/open/x%EF%BC%8F..%EF%BC%8Fnods", "/nods?x=%ff", "/a%2Fnods", "/a\\nods",
                "/a%5Cnods", "/nods%00", "/nods%0d%0aX:1", "/%252e%252e/nods", "/nods%", "/nods#x", "/nods?x=1#y",
                "/nods;x", "/nods%3Bx",
                "//evil.example@localhost/../nods", "*", "nods", "/nods<", "/nods?_txid=a&_txid=b",
                "https://localhost/nods", "/nods x",
            ] {
                let opened = try await calls.send(calls.client.request(.post, target, fields), Array("{}".utf8))
                #expect(opened.status == 400, "\(target)")
            }
            #expect(fixture.upstream.requests.isEmpty)
            #expect(try await fixture.count("transactions") == 0)
            // The control: written as it should be, it needs an approval.
            let advised = try await calls.send(calls.client.request(.post, "/nods", fields), Array("{}".utf8))
            #expect(advised.status == 401)
            #expect(try await fixture.count("transactions") == 1)
        }
    }

    /// A call that is refused, and by what status.
    private struct Refused {
        var method = HTTPRequest.Method.post
        let path: String
        var fields: [(String, String)] = [SealedBoundaryTests.json]
        var hasSession = true
        var text: String? = "{}"
        let status: Int
    }

    @Test("What is refused plainly is refused in the same words when it is sealed, and nothing is forwarded either way")
    func refusals() async throws {
        try await ServerFixture.run { fixture in
            var calls = try await Calls(fixture, SealedClient.key(fixture))
            let session = ServerFixture.session(try await fixture.session())
            let cookie = ("Cookie", "iPlanetDirectoryPro=\(try await fixture.session())")
            let long = "\"" + String(repeating: "a", count: 4096) + "\""
            for refused in [
                Refused(path: "/nods", hasSession: false, status: 401),
                Refused(path: "/nods", text: long, status: 413),
                Refused(path: "/nods", fields: [("Content-Type", "text/plain")], status: 415),
                Refused(path: "/nods", fields: [Self.json, ("Content-Encoding", "gzip")], status: 415),
                Refused(path: "/nods", text: #"{"to":"Bob","amount":"1","to":"Eve"}"#, status: 400),
                Refused(
                    path: "/files/x", fields: [Self.json, cookie, ("Origin", "https://evil.example")],
                    hasSession: false, status: 403),
                Refused(
                    path: "/files/x", fields: [Self.json, ("Authorization", "Bearer x")], hasSession: false,
                    status: 401),
                Refused(method: .get, path: "/secret", fields: [], text: nil, status: 403),
                Refused(method: .delete, path: "/accounts", fields: [], text: nil, status: 403),
                Refused(
                    method: .get, path: "/" + String(repeating: "a", count: 9000), fields: [], text: nil, status: 414),
            ] {
                let fields = refused.fields + (refused.hasSession ? session : [])
                let content = refused.text.map { Array($0.utf8) }
                let plain = try await fixture.send(
                    refused.method.rawValue, fixture.gateway(refused.path), fields, body: content)
                let request = calls.client.request(refused.method, refused.path, try Self.fields(fields))
                let opened = try await calls.send(request, content ?? [])
                #expect(plain.status == refused.status, "\(refused.path.prefix(20)), \(plain.text)")
                #expect(opened.status == refused.status, "\(refused.path.prefix(20)), \(opened.json)")
                #expect(opened.json == plain.json && plain.json != .null, "\(refused.path.prefix(20))")
                #expect(opened.response.headerFields[.wwwAuthenticate] == plain["WWW-Authenticate"])
            }
            #expect(fixture.upstream.requests.isEmpty)
            #expect(try await fixture.count("transactions") == 0)
        }
    }

    @Test("36: A handshake with a member twice, too much, or a role that does not fit is refused by the listener")
    func handshakes() async throws {
        try await ServerFixture.run { fixture in
            let body = try SealedClient.handshake(fixture, try await SealedClient.key(fixture)).request.body
            let object = try #require(try JSONValue.parse(body).object)
            var bad = object.members.map { member in
                JSONValue.object(JSONObject(object.members + [member])).serializedBytes()
            }
            #expect(bad.count == 7)
            bad.append(body + [UInt8](repeating: UInt8(ascii: " "), count: HandshakeRequest.sizeLimit))
            for (name, value) in [("role", "device"), ("role", "server"), ("client", "pay~1"), ("v", 2)]
                as [(String, JSONValue)]
            {
                var changed = object
                changed[name] = value
                bad.append(JSONValue.object(changed).serializedBytes())
            }
            for (index, body) in bad.enumerated() {
                #expect(try await SealedClient.send(fixture, body).refusal == .malformed, "\(index)")
            }
            #expect(try await SealedClient.send(fixture, body).status == 200, "the control")
        }
    }
}
