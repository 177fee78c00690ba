import AssentCore
import AssentTransportNIO
import HTTPTypes
import Testing

@Suite("A reply is read strictly")
struct ReplyTests {
    /// Sends `bytes` as the reply and ends the connection in order.
    private func outcome(
        of reply: String, method: HTTPRequest.Method = .get, limits: HTTPLimits = .patient(),
        configure: (inout NIOTransportConfiguration) -> Void = { _ in }
    ) async throws -> Result<(Int, String), any Error> {
        let server = try await TestServer.plaintext { _, peer in
            peer.send(reply)
            peer.close()
        }
        let transport = try makePlaintextTransport(configure: configure)
        let result: Result<(Int, String), any Error>
        do {
            let reply = try await transport.send(
                .to(server.port, scheme: "http", method: method, limits: limits))
            result = .success(
                (reply.status, String(decoding: try await reply.body.collect(upTo: 1 << 20), as: UTF8.self)))
        } catch {
            result = .failure(error)
        }
        await transport.shutdown()
        #expect(server.seen.requests.count == 1)
        await server.stop()
        return result
    }

    static let good: [(String, Int, String)] = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello"),
        ("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 200, ""),
        ("HTTP/1.1 200 \r\ncontent-length:5 \r\n\r\nhello", 200, "hello"),
        ("HTTP/1.1 404 Not here\r\nContent-Length: 1\r\n\r\nx", 404, "x"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;a=b\r\n world\r\n0\r\n\r\n", 200,
            "hello world"
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\nA\r\n0123456789\r\n0\r\nDigest: x\r\n\r\n", 200,
            "0123456789"
        ),
        ("HTTP/1.1 200 OK\r\n\r\nuntil the end", 200, "until the end"),
        ("HTTP/1.0 200 OK\r\n\r\nold", 200, "old"),
        ("HTTP/1.1 204 No Content\r\n\r\n", 204, ""),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", 304, ""),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny",
            200, "y"
        ),
    ]

    @Test("Correct replies are read", arguments: 0..<good.count)
    func rightReplies(index: Int) async throws {
        let (reply, status, body) = Self.good[index]
        let (seenStatus, seenBody) = try await outcome(of: reply).get()
        #expect(seenStatus == status)
        #expect(seenBody == body)
    }

    @Test("A reply to HEAD has no content, whatever it announces")
    func head() async throws {
        let (status, body) = try await outcome(
            of: "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", method: .head
        ).get()
        #expect(status == 200)
        #expect(body.isEmpty)
    }

    static let malformed: [String] = [
        "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", "http/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 099 X\r\n\r\n", "HTTP/1.1 600 X\r\n\r\n",
        "HTTP/1.1 200\tOK\r\n\r\n", "\r\nHTTP/1.1 200 OK\r\n\r\n", "SSH-2.0-OpenSSH\r\n\r\n",
        "\u{16}\u{3}\u{1}\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 0\n\n", "HTTP/1.1 200 OK\r\nA: b\n\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n folded\r\n\r\n", "HTTP/1.1 200 OK\r\nName : x\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: x\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\u{0}c\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nab", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nab", "HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b" + String(repeating: "\u{301}", count: 65) + "\r\nContent-Length: 0\r\n\r\n",
    ]

    @Test("Malformed replies are refused", arguments: malformed)
    func malformedHead(reply: String) async throws {
        await #expect(throws: HTTPTransportError(.malformedReply, "")) { _ = try await outcome(of: reply).get() }
    }

    @Test("Interim replies are skipped, but not for ever")
    func interim() async throws {
        let nine = String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: 9)
        await #expect(throws: HTTPTransportError(.malformedReply, "")) { try await outcome(of: nine).get() }
    }

    static let chunks: [String] = [
        "\r\n", "g\r\n", "-1\r\n", "0x5\r\nhello\r\n0\r\n\r\n", " 5\r\nhello\r\n0\r\n\r\n",
        "5 \r\nhello\r\n0\r\n\r\n",
        "5\nhello\n0\n\n", "5\r\nhelloX\r\n0\r\n\r\n", "5\r\nhello\n\n0\r\n\r\n", "FFFFFFFFFFFFFFFFF\r\n",
        "5;\u{0}\r\nhello\r\n0\r\n\r\n", "5;\(String(repeating: "x", count: 400))\r\nhello\r\n0\r\n\r\n",
        "0\r\nno colon\r\n\r\n", "0\r\n folded: x\r\n\r\n",
    ]

    @Test("Malformed chunks are refused", arguments: chunks)
    func malformedChunks(chunks: String) async throws {
        let reply = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks
        await #expect(throws: HTTPTransportError(.malformedReply, "")) { _ = try await outcome(of: reply).get() }
    }

    @Test(
        "What ends too early is an error, not a shorter reply",
        arguments: [
            "", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
        ])
    func truncated(reply: String) async throws {
        let result = try await outcome(of: reply)
        #expect(throws: HTTPTransportError(.connectionClosed, "")) { _ = try result.get() }
        if case .failure(let error as HTTPTransportError) = result { #expect(error.mayHaveHadEffect) }
    }

    @Test("Header bytes, header fields and content are bounded")
    func bounds() async throws {
        let long = "HTTP/1.1 200 OK\r\nA: " + String(repeating: "x", count: 40_000) + "\r\n\r\n"
        await #expect(throws: HTTPTransportError(.headerTooLarge, "")) { _ = try await outcome(of: long).get() }
        let many = "HTTP/1.1 200 OK\r\n" + String(repeating: "A: b\r\n", count: 200) + "\r\n"
        await #expect(throws: HTTPTransportError(.headerTooLarge, "")) { _ = try await outcome(of: many).get() }
        let fits = "HTTP/1.1 200 OK\r\n" + String(repeating: "A: b\r\n", count: 127) + "Content-Length: 0\r\n\r\n"
        #expect(try await outcome(of: fits).get().0 == 200)
        let field = "A: " + String(repeating: "x", count: 1000) + "\r\n"
        let fields = String(repeating: field, count: 40)
        let trailer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\(fields)\r\n"
        await #expect(throws: HTTPTransportError(.headerTooLarge, "")) { _ = try await outcome(of: trailer).get() }

        let limits = HTTPLimits.patient(replyBytes: 4)
        let replies = [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
        ]
        for reply in replies {
            await #expect(throws: HTTPTransportError(.bodyTooLarge, "")) {
                _ = try await outcome(of: reply, limits: limits).get()
            }
        }
        #expect(
            try await outcome(of: "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhell", limits: limits).get().1 == "hell")
    }

    @Test("A reply whose content is too long still has its status")
    func statusOfTooLong() async throws {
        let server = try await TestServer.plaintext { _, peer in
            peer.send("HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello")
        }
        let transport = try makePlaintextTransport()
        let reply = try await transport.send(.to(server.port, scheme: "http", limits: .patient(replyBytes: 4)))
        #expect(reply.status == 201)
        await #expect(throws: HTTPTransportError(.bodyTooLarge, "")) { try await reply.body.collect(upTo: 100) }
        await transport.shutdown()
        await server.stop()
    }

    @Test("Over TLS, a content without a length ends only with close_notify", arguments: [true, false])
    func closeNotify(orderly: Bool) async throws {
        let root = try TestPKI.root()
        let identity = try TestPKI.server(under: root)
        let server = try await TestServer.tls(
            { _ in identity },
            script: { _, peer in
                peer.send("HTTP/1.1 200 OK\r\n\r\npay Bob 200")
                if orderly { peer.close() } else { peer.cutOff() }
            })
        let transport = try makeTransport(roots: [root], pins: ["localhost": .unpinned])
        if orderly {
            #expect(try await transport.text(.to(server.port)) == "pay Bob 200")
        } else {
            #expect(await transport.failure(.to(server.port))?.code == .connectionClosed)
        }
        await transport.shutdown()
        await server.stop()
    }

    @Test("Redirects are handed over, not followed")
    func redirects() async throws {
        let (status, _) = try await outcome(
            of: "HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
        ).get()
        #expect(status == 307)
    }
}
