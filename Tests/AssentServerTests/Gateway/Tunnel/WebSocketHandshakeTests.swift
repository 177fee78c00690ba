import HTTPTypes
import Testing

@testable import AssentServer

@Suite("The handshake of a WebSocket")
struct WebSocketHandshakeTests {
    /// The example of RFC 6455 §1.3.
    private static let key = "dGhlIHNhbXBsZSBub25jZQ=="
    private static let accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    /// Letters of flags, which join: backwards through them each character takes as long as all before it.
    private static let flags = String(repeating: "\u{1F1E6}", count: 20_000)

    private static func fields(_ changes: [(String, String?)] = []) throws -> HTTPFields {
        var fields = HTTPFields()
        let all = [
            ("Connection", "keep-alive, Upgrade"), ("Upgrade", "WebSocket"), ("Sec-WebSocket-Key", key),
            ("Sec-WebSocket-Version", "13"),
        ]
        for (name, value) in all where !changes.contains(where: { $0.0 == name }) {
            fields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
        }
        for (name, value) in changes {
            guard let value else { continue }
            fields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
        }
        return fields
    }

    private static func head(_ lines: [String]) -> ServiceHead? {
        ServiceHead(Array(lines.joined(separator: "\r\n").utf8))
    }

    private static let good = [
        "HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Accept: \(accept)", "Sec-WebSocket-Protocol: chat", "Set-Cookie: a=b", "X-Own: c",
    ]

    @Test("The RFC's example is accepted, and only what belongs to the handshake goes back")
    func example() throws {
        let handshake = try WebSocketHandshake(.get, try Self.fields())
        #expect(handshake.accept == Self.accept)
        let head = try #require(Self.head(Self.good))
        let reply = try #require(handshake.reply(to: head))
        #expect(
            reply == "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                + "Sec-WebSocket-Accept: \(Self.accept)\r\nSec-WebSocket-Protocol: chat\r\n\r\n")
    }

    @Test(
        "Anything but one whole handshake is refused",
        arguments: [
            ([("Upgrade", "h2c")], 400), ([("Upgrade", "websocket, h2c")], 400),
            ([("Upgrade", "websocket"), ("Upgrade", "websocket")], 400),
            ([("Upgrade", "h2c"), ("Upgrade", "websocket")], 400), ([("Upgrade", nil)], 400),
            ([("Connection", "keep-alive")], 400), ([("Connection", nil)], 400), ([("Connection", flags)], 400),
            ([("Sec-WebSocket-Version", "8")], 426), ([("Sec-WebSocket-Version", nil)], 426),
            ([("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Version", "13")], 426),
            ([("Sec-WebSocket-Key", nil)], 400), ([("Sec-WebSocket-Key", "short")], 400),
            ([("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25j")], 400),
            ([("Sec-WebSocket-Key", key), ("Sec-WebSocket-Key", key)], 400),
            ([("Content-Length", "1")], 400), ([("Transfer-Encoding", "chunked")], 400),
        ] as [([(String, String?)], Int)])
    func refused(_ changes: [(String, String?)], _ status: Int) throws {
        let fields = try Self.fields(changes)
        let error = #expect(throws: RequestError.self) { try WebSocketHandshake(.get, fields) }
        #expect(error?.status == status)
    }

    @Test(
        "Connection is read byte by byte: a sign that joins a comma hides no word",
        arguments: ["Upgrade,\u{301}x", "x,\u{301}, \tUpgrade \t,\u{301}", "keep-alive , upgrade\t"])
    func joined(_ connection: String) throws {
        let handshake = try WebSocketHandshake(.get, try Self.fields([("Connection", connection)]))
        #expect(handshake.key == Self.key)
    }

    @Test("Only GET opens a WebSocket", arguments: [HTTPRequest.Method.post, .head, .options])
    func methods(_ method: HTTPRequest.Method) throws {
        let fields = try Self.fields()
        #expect(throws: RequestError.self) { try WebSocketHandshake(method, fields) }
    }

    @Test(
        "An answer that is not this handshake's opens nothing",
        arguments: [
            (0, "HTTP/1.1 200 OK"), (0, "HTTP/1.1 100 Continue"), (1, "Upgrade: h2c"), (2, "Connection: close"),
            (3, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOp="), (3, "X-None: 1"), (6, "Upgrade: websocket"),
            (6, "Sec-WebSocket-Accept: \(accept)"),
        ])
    func otherAnswers(_ line: Int, _ replacement: String) throws {
        var lines = Self.good
        lines[line] = replacement
        let head = try #require(Self.head(lines))
        #expect(try WebSocketHandshake(.get, try Self.fields()).reply(to: head) == nil)
    }

    @Test(
        "What is no head of HTTP/1.1 is not read",
        arguments: [
            "", "HTTP/1.0 101 x", "HTTP/2 101", "HTTP/1.1 1x1 a", "HTTP/1.1 99 a", "HTTP/1.1 099 a", "SSH-2.0",
            "HTTP/1.1 101 a\r\nno colon", "HTTP/1.1 101 a\r\nUpgrade : websocket", "HTTP/1.1 101 a\r\n: x",
            "HTTP/1.1 101 a\r\nX: a\nUpgrade: websocket", "HTTP/1.1 101 a\r\nX: a\rb", "HTTP/1.1 101 a\r\nX: a\u{0}",
            "HTTP/1.1 101 a\r\n folded: x",
        ])
    func noHead(_ text: String) { #expect(ServiceHead(Array(text.utf8)) == nil) }

    @Test("A head that is slow to compare is not read, as that of any other answer of a service")
    func marks() {
        for (count, isRead) in [(64, true), (65, false)] {
            let marks = String(repeating: "\u{301}", count: count)
            #expect((Self.head(["HTTP/1.1 101 a", "Sec-WebSocket-Accept: e\(marks)"]) != nil) == isRead, "\(count)")
        }
    }
}
