import AssentCore
import AssentTransportNIO
import Foundation
import HTTPTypes
import Testing

@Suite("A request is written as it must be")
struct RequestTests {
    private func seen(_ call: (Int) -> HTTPCall) async throws -> TestServer.Request {
        let server = try await TestServer.plaintext()
        let transport = try makePlaintextTransport()
        _ = try await transport.send(call(server.port))
        await transport.shutdown()
        let request = try #require(server.seen.requests.first)
        await server.stop()
        return request
    }

    @Test("Line, host, fields and content")
    func whole() async throws {
        var port = 0
        let request = try await seen {
            port = $0
            return .to(
                $0, scheme: "http", method: .post, path: "/a?b=c",
                fields: [.accept: "text/plain", .cookie: "a=1", .contentLength: "2"], body: HTTPBody("hi"))
        }
        #expect(
            request.head.components(separatedBy: "\r\n") == [
                "POST /a?b=c HTTP/1.1", "Host: localhost:\(port)", "Accept: text/plain", "Cookie: a=1",
                "Content-Length: 2",
            ])
        #expect(request.body == Array("hi".utf8))
    }

    @Test("A length only where content is expected")
    func lengths() async throws {
        let without = try await seen { .to($0, scheme: "http") }
        #expect(!without.head.contains("Content-Length"))
        let empty = try await seen { .to($0, scheme: "http", body: .empty) }
        #expect(!empty.head.contains("Content-Length"))
        let post = try await seen { .to($0, scheme: "http", method: .post) }
        #expect(post.head.contains("Content-Length: 0"))
    }

    @Test("Several cookies go in one field")
    func cookies() async throws {
        var fields = HTTPFields()
        fields.append(HTTPField(name: .cookie, value: "a=1"))
        fields.append(HTTPField(name: .cookie, value: "b=2"))
        let request = try await seen { .to($0, scheme: "http", fields: fields) }
        #expect(request.head.contains("\r\nCookie: a=1; b=2"))
    }

    @Test("A stream without a length is chunked, one with a length is not", arguments: [nil, 100_000])
    func streams(length: Int?) async throws {
        let body = HTTPBody(length: length, isReplayable: false) {
            let left = Locked(10)
            return {
                left.withLock { left in
                    guard left > 0 else { return nil }
                    left -= 1
                    return [UInt8](repeating: UInt8(left), count: 10_000)
                }
            }
        }
        let request = try await seen { .to($0, scheme: "http", method: .post, body: body) }
        let expected = (0..<10).reversed().flatMap { [UInt8](repeating: $0, count: 10_000) }
        if length == nil {
            #expect(request.head.contains("Transfer-Encoding: chunked"))
            // Each chunk with "2710", CRLF and CRLF around it, and the last chunk.
            let wire = 10 * (10_000 + 8) + 5
            #expect(request.body.count == wire)
        } else {
            #expect(request.head.contains("Content-Length: 100000"))
            #expect(request.body == expected)
        }
    }

    @Test("A large content in memory arrives whole")
    func large() async throws {
        let bytes = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let request = try await seen { .to($0, scheme: "http", method: .put, body: HTTPBody(bytes)) }
        #expect(request.body == bytes)
    }

    @Test("A content that is not as long as it says, or fails, ends the exchange", arguments: [1, 3, nil])
    func badStreams(length: Int?) async throws {
        struct Broken: Error {}
        let server = try await TestServer.plaintext()
        let transport = try makePlaintextTransport()
        let body = HTTPBody(length: length, isReplayable: true) {
            let isDone = Locked(false)
            return {
                let wasDone = isDone.withLock { done in
                    defer { done = true }
                    return done
                }
                if wasDone, length == nil { throw Broken() }
                return wasDone ? nil : [1, 2]
            }
        }
        let error = await transport.failure(.to(server.port, scheme: "http", method: .put, body: body))
        #expect(error?.code == .bodyFailed)
        #expect(error?.mayHaveHadEffect == true)
        await transport.shutdown()
        await server.waitUntilAllClosed()
        #expect(server.seen.requests.isEmpty)
        await server.stop()
    }

    @Test(
        "Fields about the connection or the framing are not for the caller",
        arguments: [
            "Host", "Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "TE", "Trailer", "Upgrade",
            "Expect", "Content-Length",
        ])
    func reserved(name: String) async throws {
        let field = HTTPField(name: try #require(HTTPField.Name(name)), value: "close")
        try await expectInvalid { .to($0, scheme: "http", fields: HTTPFields([field])) }
    }

    @Test("Line breaks cannot be smuggled in", arguments: ["a\r\nX: y", "a\nX: y", "a\rX: y", "a\0b"])
    func lineBreaks(value: String) async throws {
        // The field type turns them into spaces; the server must see one harmless line.
        let name = try #require(HTTPField.Name("X-Test"))
        let request = try await seen { .to($0, scheme: "http", fields: [name: value]) }
        let lines = request.head.components(separatedBy: "\r\n")
        #expect(lines.count == 3)
        #expect(lines.last?.hasPrefix("X-Test: a ") == true)
        try await expectInvalid { .to($0, scheme: "http", path: "/\(value)") }
    }

    @Test("Targets, hosts, schemes and methods that are not usable", arguments: 0..<9)
    func unusable(index: Int) async throws {
        try await expectInvalid { port in
            switch index {
            case 0: .to(port, scheme: "http", path: "/a b")
            case 1: .to(port, scheme: "http", path: "http://elsewhere.example/")
            case 2: .to(port, scheme: "http", path: "/a#b")
            case 3: .to(port, scheme: "http", path: "/é")
            case 4: .to(port, host: "user@localhost", scheme: "http")
            case 5: .to(port, scheme: "ftp")
            case 6: .to(port, scheme: "http", method: .connect)
            case 7: .to(0, scheme: "http")
            default: .to(port, host: "", scheme: "http")
            }
        }
    }

    @Test("http:// is refused without the option, and elsewhere than to this machine with it")
    func plaintext() async throws {
        let server = try await TestServer.plaintext()
        let without = try NIOTransport(configuration: .init(trustRoots: .system, pins: ["localhost": .unpinned]))
        #expect(await without.failure(.to(server.port, scheme: "http"))?.code == .invalidRequest)
        #expect(server.seen.connections == 0)
        let with = try makePlaintextTransport()
        for host in ["192.0.2.1", "example.com", "localhost.example.com", "127.0.0.1.example.com", "[2001:db8::1]"] {
            #expect(await with.failure(.to(server.port, host: host, scheme: "http"))?.code == .invalidRequest)
        }
        for host in ["localhost", "127.0.0.1"] {
            #expect(try await with.text(.to(server.port, host: host, scheme: "http")) == "ok")
        }
        await with.shutdown()
        await server.stop()
    }

    private func expectInvalid(
        sourceLocation: SourceLocation = #_sourceLocation, _ call: (Int) -> HTTPCall
    ) async throws {
        let server = try await TestServer.plaintext()
        let transport = try makePlaintextTransport()
        let error = await transport.failure(call(server.port))
        #expect(error?.code == .invalidRequest, sourceLocation: sourceLocation)
        #expect(error?.mayHaveHadEffect == false, sourceLocation: sourceLocation)
        #expect(server.seen.requestBytes == 0, sourceLocation: sourceLocation)
        await transport.shutdown()
        await server.stop()
    }
}
