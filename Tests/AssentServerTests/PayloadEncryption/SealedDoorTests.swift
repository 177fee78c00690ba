import AssentCore
import AssentPayload
import AssentTesting
import Foundation
import HTTPTypes
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Payload encryption at a listener")
struct SealedDoorTests {
    private static let form: HTTPFields = [.contentType: "text/plain"]

    @Test("The server answers a sealed request as it answers the plain one", arguments: ["GET", "HEAD", "DELETE"])
    func server(method: String) async throws {
        try await ServerFixture.run { fixture in
            let client = try await SealedClient(fixture, SealedClient.key(fixture), toGateway: false)
            let path = "/am/json/realms/root/realms/alpha/serverinfo/*"
            let plain = try await fixture.send(method, fixture.root(path))
            let name = try #require(HTTPRequest.Method(method))
            let opened = try await client.call(try client.sealed(client.request(name, path), number: 1))
            #expect(opened.status == plain.status)
            #expect(opened.content == plain.bytes)
            #expect(opened.response.headerFields[.contentType] == plain["content-type"])
        }
    }

    @Test("A sealed refusal says what time it is at the server, as a plain one does")
    func refusalTime() async throws {
        #expect(DateField.text(of: Date(timeIntervalSince1970: 784_111_777)) == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(DateField.text(of: Date(timeIntervalSince1970: 951_825_600)) == "Tue, 29 Feb 2000 12:00:00 GMT")
        try await ServerFixture.run { fixture in
            let client = try await SealedClient(fixture, SealedClient.key(fixture), toGateway: false)
            let content = Array("grant_type=client_credentials&client_id=nobody".utf8)
            let fields: HTTPFields = [
                .contentType: "application/x-www-form-urlencoded", .contentLength: "\(content.count)",
            ]
            let path = "/am/oauth2/realms/root/realms/alpha/access_token"
            let opened = try await client.call(
                try client.sealed(client.request(.post, path, fields), content, number: 1))
            #expect([400, 401].contains(opened.status) && opened.json["error"] == "invalid_client")
            #expect(opened.response.headerFields[.date] == DateField.text(of: fixture.clock.now))
            let plain = try await fixture.send("POST", fixture.root(path), body: content)
            #expect(plain["date"] != nil)
        }
    }

    @Test("The gateway forwards the content of a sealed request, and seals the service's reply")
    func gateway() async throws {
        try await ServerFixture.run { fixture in
            fixture.upstream.answer { _, peer in peer.answer("201 Created", fields: ["X-Kind: paid"], "done") }
            let client = try await SealedClient(fixture, SealedClient.key(fixture))
            let content = Array("amount=200".utf8)
            var fields = Self.form
            fields[.contentLength] = "10"
            let opened = try await client.call(
                try client.sealed(client.request(.post, "/open/pay?to=bob", fields), content, number: 1))
            #expect(opened.status == 201)
            #expect(opened.content == Array("done".utf8))
            let arrived = try #require(fixture.upstream.requests.last)
            #expect(arrived.line == "POST /open/pay?to=bob HTTP/1.1")
            #expect(arrived.body == content)
        }
    }

    @Test("A content that says its length arrives whole, and a long reply is sealed in pieces")
    func long() async throws {
        try await ServerFixture.run { fixture in
            let reply = String(repeating: "r", count: 200_000)
            fixture.upstream.answer { _, peer in peer.answer("200 OK", reply) }
            let client = try await SealedClient(fixture, SealedClient.key(fixture))
            let content = [UInt8](repeating: 7, count: 150_000)
            var fields = Self.form
            fields[.contentLength] = "150000"
            let opened = try await client.call(
                try client.sealed(client.request(.put, "/open/file", fields), content, number: 1))
            #expect(opened.status == 200)
            #expect(opened.content == Array(reply.utf8))
            let arrived = try #require(fixture.upstream.requests.last)
            #expect(arrived.body == content)
            #expect(arrived.values("content-length") == ["150000"])
        }
    }

    @Test("Neither path nor content of a sealed call is in what was sent, and both are in the plain call")
    func hidden() async throws {
        try await ServerFixture.run { fixture in
            let client = try await SealedClient(fixture, SealedClient.key(fixture))
            let (request, content) = (client.request(.post, "/open/hidden-path", Self.form), Array("secret-body".utf8))
            let plain = try BinaryHTTPWriter.request(request, content: content)
            for text in ["hidden-path", "secret-body"] {
                #expect(plain.firstRange(of: Array(text.utf8)) != nil)
                let sealed = try client.sealed(request, content, number: 1)
                #expect(sealed.bytes.firstRange(of: Array(text.utf8)) == nil)
            }
        }
    }

    @Test("A message is refused as the page says, and nothing comes to the service")
    func refusals() async throws {
        try await ServerFixture.run { fixture in
            let client = try await SealedClient(fixture, SealedClient.key(fixture))
            let request = client.request(.post, "/open", Self.form)
            func refusal(_ bytes: [UInt8]) async throws -> PayloadRefusal? { try await client.send(bytes).refusal }
            let good = try client.sealed(request, [1, 2, 3], number: 2000)
            #expect(try await refusal(Array(good.bytes.prefix(40))) == .malformed)
            #expect(try await refusal([3] + good.bytes.dropFirst()) == .malformed)
            #expect(try await refusal([2] + good.bytes.dropFirst()) == .malformed)
            let zero = good.bytes.prefix(17) + [UInt8](repeating: 0, count: 8) + good.bytes.dropFirst(25)
            #expect(try await refusal(Array(zero)) == .malformed)
            #expect(try await refusal(Array(good.bytes.dropLast())) == .malformed)
            var foreign = good.bytes
            foreign[3] ^= 1
            #expect(try await refusal(foreign) == .unknownSession)
            for index in [20, 30, 41, 45, 60, good.bytes.count - 1] {
                var changed = good.bytes
                changed[index] ^= 1
                #expect(try await client.send(changed).status != 200, "byte \(index)")
            }
            #expect(try await refusal(good.bytes + [0]) == .malformed)
            #expect(fixture.upstream.requests.isEmpty)
        }
    }

    @Test("A number is used once, and one below the window is not used at all")
    func numbers() async throws {
        try await ServerFixture.run { fixture in
            let client = try await SealedClient(fixture, SealedClient.key(fixture))
            var fields = Self.form
            fields[.contentLength] = "1"
            let request = client.request(.post, "/open", fields)
            let first = try client.sealed(request, [1], number: 5000)
            _ = try await client.call(first)
            #expect(try await client.send(first.bytes).refusal == .repeated)
            let again = try client.sealed(request, [2], number: 5000)
            #expect(try await client.send(again.bytes).refusal == .repeated)
            let old = try client.sealed(request, [3], number: 5000 - NumberWindow.size)
            #expect(try await client.send(old.bytes).refusal == .repeated)
            _ = try await client.call(try client.sealed(request, [4], number: 5001 - NumberWindow.size))
            _ = try await client.call(try client.sealed(request, [5], number: .max))
            #expect(fixture.upstream.requests.map(\.body) == [[1], [4], [5]])
        }
    }

    @Test("Content that is not acceptable gets a sealed refusal, and does not come to the service")
    func content() async throws {
        try await ServerFixture.run { fixture in
            let client = try await SealedClient(fixture, SealedClient.key(fixture))
            var elsewhere = client.request(.get, "/open")
            elsewhere.authority = "other.example"
            var chunked = client.request(.get, "/open")
            chunked.headerFields[.transferEncoding] = "chunked"
            let inside = client.request(.post, "/assent-pe/1/message")
            for (index, (request, status)) in [(elsewhere, 421), (chunked, 400), (inside, 400)].enumerated() {
                let opened = try await client.call(try client.sealed(request, number: UInt64(index + 1)))
                #expect(opened.status == status)
            }
            let broken = try client.sealed(plaintext: [9, 9, 9], number: 9)
            #expect(try await client.call(broken).status == 400)
            #expect(fixture.upstream.requests.isEmpty)
        }
    }

    @Test("A session of one listener is not one of the other")
    func listeners() async throws {
        try await ServerFixture.run { fixture in
            let client = try await SealedClient(fixture, SealedClient.key(fixture), toGateway: false)
            let sealed = try client.sealed(client.request(.get, "/am/json/serverinfo/*"), number: 1)
            let answer = try await fixture.send(
                "POST", fixture.gateway("/assent-pe/1/message"), SealedClient.field, body: sealed.bytes)
            #expect(answer.refusal == .unknownSession)
            #expect(try await client.call(sealed).status != 421)
        }
    }

    @Test("A session ends after ten minutes without a message that opens")
    func idle() async throws {
        try await ServerFixture.run { fixture in
            let client = try await SealedClient(fixture, SealedClient.key(fixture))
            fixture.clock.advance(by: 599)
            _ = try await client.call(try client.sealed(client.request(.get, "/open"), number: 1))
            fixture.clock.advance(by: 900)
            let late = try client.sealed(client.request(.get, "/open"), number: 2)
            #expect(try await client.send(late.bytes).refusal == .unknownSession)
        }
    }

    @Test("Below the routes there is nothing else, and they take POST and their media type alone")
    func routes() async throws {
        try await ServerFixture.run { fixture in
            for url in [
                fixture.root("/assent-pe/1/other"), fixture.gateway("/assent-pe"), fixture.gateway("/assent-pe/"),
            ] {
                #expect(try await fixture.send("POST", url).status == 404)
            }
            #expect(try await fixture.send("GET", fixture.gateway("/assent-pe/1/message")).status == 405)
            let untyped = try await fixture.send("POST", fixture.gateway("/assent-pe/1/message"), body: [1])
            #expect(untyped.refusal == .malformed)
        }
    }

    @Test("When a message breaks off after its service was called, neither side gets a regular end")
    func abort() async throws {
        try await ServerFixture.run { fixture in
            let client = try await SealedClient(fixture, SealedClient.key(fixture))
            var fields = Self.form
            fields[.contentLength] = "200000"
            let whole = try client.sealed(
                client.request(.post, "/open/cut", fields), [UInt8](repeating: 1, count: 200_000), number: 1)
            var changed = whole.bytes
            changed[changed.count - 1] ^= 1
            let answer = try await client.send(changed)
            #expect(answer.refusal == .malformed)
            #expect(answer["connection"] == "close")
            #expect(!fixture.upstream.requests.contains { $0.line.contains("/open/cut") })
        }
    }
}
