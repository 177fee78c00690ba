import AssentCore
import AssentPayload
import HTTPTypes
import TestSupport
import Testing

@Suite("Payload encryption: Binary HTTP (RFC 9292)")
struct BinaryHTTPTests {
    private func parts(
        _ bytes: [UInt8], _ kind: FrameHead.Kind = .request, piece: Int = .max
    ) throws -> [BinaryHTTPReader.Part] {
        var reader = BinaryHTTPReader(kind)
        var parts: [BinaryHTTPReader.Part] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            parts += try reader.read(Array(rest.prefix(piece)))
            rest = rest.dropFirst(piece)
        }
        parts += try reader.finish()
        // Content comes in whatever pieces it came in.
        return parts.reduce(into: []) { joined, part in
            if case .content(let more) = part, case .content(let before)? = joined.last {
                joined[joined.count - 1] = .content(before + more)
            } else {
                joined.append(part)
            }
        }
    }

    private let post = HTTPRequest(
        method: .post, scheme: "https", authority: "api.bank.example:8443", path: "/transfers",
        headerFields: [.contentType: "application/json", .acceptLanguage: ""])

    @Test("The standard's example of a known length is read, also cut off behind its head and padded")
    func standard() throws {
        // RFC 9292 §5.1, but for the authority, which is empty there.
        let bytes = try #require(
            Hex.decode(
                "00034745540568747470730b7777772e6578616d706c65"
                    + "0a2f68656c6c6f2e747874406c0a757365722d6167656e7434637572"
                    + "6c2f372e31362e33206c69626375726c2f372e31362e33204f70656e53534c2f302e392e376c207a6c69622f312e322e33"
                    + "04686f73740f7777772e6578616d706c652e636f6d0f6163636570742d6c616e677561676506656e2c206d69"
                    + "0000"))
        let expected = HTTPRequest(
            method: .get, scheme: "https", authority: "www.example", path: "/hello.txt",
            headerFields: [
                .userAgent: "curl/7.16.3 libcurl/7.16.3 OpenSSL/0.9.7l zlib/1.2.3",
                HTTPField.Name("host")!: "www.example.com", .acceptLanguage: "en, mi",
            ])
        #expect(try parts(bytes) == [.request(expected)])
        #expect(try parts(bytes.dropLast(2)) == [.request(expected)])
        #expect(try parts(bytes + [UInt8](repeating: 0, count: 100)) == [.request(expected)])
    }

    @Test(
        "What is written is read again, in pieces of any size, of known length and streamed",
        arguments: [8, 100, 70_000])
    func both(piece: Int) throws {
        let content = (0..<70_000).map { UInt8(truncatingIfNeeded: $0) }
        let known = try BinaryHTTPWriter.request(post, content: content)
        #expect(try parts(known, piece: piece) == [.request(post), .content(content)])
        let streamed =
            try BinaryHTTPWriter.head(post) + BinaryHTTPWriter.piece(Array(content.prefix(10)))
            + BinaryHTTPWriter.piece([]) + BinaryHTTPWriter.piece(Array(content.dropFirst(10))) + BinaryHTTPWriter.end
        #expect(try parts(streamed, piece: piece) == [.request(post), .content(content)])
        let reply = HTTPResponse(status: .notFound, headerFields: [.contentType: "text/plain"])
        let answer = BinaryHTTPWriter.response(reply, content: [1, 2])
        #expect(try parts(answer, .reply, piece: piece) == [.response(reply), .content([1, 2])])
        let stream = BinaryHTTPWriter.head(reply) + BinaryHTTPWriter.piece([1, 2]) + BinaryHTTPWriter.end
        #expect(
            try parts(stream + Padding.bytes(behind: stream.count), .reply, piece: piece)
                == [.response(reply), .content([1, 2])])
    }

    @Test("Content in very many tiny pieces that come at once is read in one pass")
    func tiny() throws {
        let count = 262_144
        var reader = BinaryHTTPReader(.request)
        var bytes = try BinaryHTTPWriter.head(post)
        for _ in 0..<count { bytes += [1, 0x61] }
        let read = try reader.read(bytes + BinaryHTTPWriter.end)
        #expect(read.count == count + 1 && read.first == .request(post) && read.last == .content([0x61]))
        #expect(try reader.finish() == [])
    }

    @Test("A message that ends inside a part is refused")
    func cut() throws {
        let streamed = try BinaryHTTPWriter.head(post) + BinaryHTTPWriter.piece([1, 2, 3]) + BinaryHTTPWriter.end
        let head = try BinaryHTTPWriter.head(post).count
        // Where the field section would begin, it may be left out.
        let control =
            try BinaryHTTPWriter.head(
                HTTPRequest(method: .post, scheme: "https", authority: "api.bank.example:8443", path: "/transfers")
            ).count - 1
        #expect(try parts(Array(streamed.prefix(control))).count == 1)
        for length in 1..<head - 1 where length != control {
            #expect(throws: PayloadError.self, "\(length)") { try parts(Array(streamed.prefix(length))) }
        }
        for length in head + 1..<head + 4 {
            #expect(throws: PayloadError.self, "\(length)") { try parts(Array(streamed.prefix(length))) }
        }
        #expect(throws: PayloadError.self) { try parts([]) }
    }

    /// Known length: control data, one field, and what follows.
    private func message(
        _ control: [String] = ["GET", "https", "a.example", "/"], field: (String, String)? = nil,
        then rest: [UInt8] = [0, 0]
    ) -> [UInt8] {
        func text(_ text: String) -> [UInt8] { [UInt8(text.utf8.count)] + text.utf8 }
        let section = field.map { text($0.0) + text($0.1) } ?? []
        return [0] + control.flatMap(text) + [UInt8(section.count)] + section + rest
    }

    @Test("The control: such a message is read")
    func control() throws {
        #expect(try parts(message(field: ("a", "b"))).count == 1)
    }

    @Test(
        "What another reader could read differently is refused",
        arguments: [
            (["G T", "https", "a.example", "/"], ("a", "b")), (["GET", "http", "a.example", "/"], ("a", "b")),
            (["GET", "https", "u@a.example", "/"], ("a", "b")), (["GET", "https", "", "/"], ("a", "b")),
            (["GET", "https", "a.example", "x"], ("a", "b")), (["GET", "https", "a.example", "/\u{0}"], ("a", "b")),
            (["GET", "https", "a.example", "/ "], ("a", "b")), (["GET", "https", "a.example", ""], ("a", "b")),
            (["GET", "https", "a.example", "/"], ("A", "b")), (["GET", "https", "a.example", "/"], ("a b", "b")),
            (["GET", "https", "a.example", "/"], (":path", "b")), (["GET", "https", "a.example", "/"], ("", "b")),
            (["GET", "https", "a.example", "/"], ("a", "b\r\nc: d")),
            (["GET", "https", "a.example", "/"], ("a", "b\u{0}")), (["GET", "https", "a.example", "/"], ("a", " b")),
            (["GET", "https", "a.example", "/"], ("a", "b\t")), (["GET", "https", "a.example", "/"], ("a", "\u{7F}b")),
            (["GET", "https", "a.example", "/"], ("aB", "b")), (["GET", "https", "a.example", "/"], ("a", " ")),
        ] as [([String], (String, String))])
    func refused(control: [String], field: (String, String)) {
        #expect(throws: PayloadError.self) { try parts(message(control, field: field)) }
    }

    @Test("A field with more marks in a row than a text may have is refused: it would be slow to compare")
    func marks() throws {
        for (count, isTaken) in [(64, true), (65, false), (10_000, false)] {
            var request = post
            request.headerFields[.userAgent] = "a" + String(repeating: "\u{301}", count: count)
            let bytes = try BinaryHTTPWriter.request(request, content: [])
            #expect(((try? parts(bytes)) != nil) == isTaken, "\(count)")
        }
    }

    @Test("Trailers, padding that is not zero or has no end, a reply for a request, informational replies")
    func rest() throws {
        #expect(throws: PayloadError.self) { try parts(message(then: [0, 3, 1, 97, 0])) }
        #expect(throws: PayloadError.self) { try parts(message(then: [0, 0, 0, 1])) }
        #expect(throws: PayloadError.self) { try parts(message() + [UInt8](repeating: 0, count: 70_000)) }
        #expect(try parts(message() + [UInt8](repeating: 0, count: 60_000)).count == 1)
        #expect(throws: PayloadError.self) { try parts(message(), .reply) }
        for status in [[100], [0x40, 103], [0], [0x42, 0x58]] as [[UInt8]] {
            #expect(throws: PayloadError.self) { try parts([1] + status + [0, 0, 0], .reply) }
        }
        #expect(throws: PayloadError.self) { try parts([4] + message().dropFirst()) }
    }

    @Test("Heads are bounded in bytes, fields and pieces")
    func limits() throws {
        func request(_ count: Int, value: String) -> HTTPRequest {
            var request = post
            for index in 0..<count { request.headerFields.append(HTTPField(name: .init("x-\(index)")!, value: value)) }
            return request
        }
        #expect(try parts(BinaryHTTPWriter.request(request(200, value: "v"), content: [])).count == 1)
        for request in [request(255, value: "v"), request(20, value: String(repeating: "v", count: 4_000))] {
            #expect(throws: PayloadError.self) { try parts(BinaryHTTPWriter.request(request, content: [])) }
            #expect(throws: PayloadError.self) { try parts(BinaryHTTPWriter.head(request) + BinaryHTTPWriter.end) }
        }
        #expect(throws: PayloadError.self) {
            try parts(BinaryHTTPWriter.request(request(20, value: "v"), content: []), piece: 1)
        }
        // A length of 2^62 − 1 where a text, a section or a content is expected.
        let huge = [UInt8](repeating: 0xFF, count: 8)
        #expect(throws: PayloadError.self) { try parts([0] + huge) }
        #expect(throws: PayloadError.self) { try parts(Array(message().prefix(20)) + huge) }
        #expect(throws: PayloadError.self) { try parts(message(then: huge + [1, 2, 3])) }
    }
    /// A number in more bytes than it needs (RFC 9000 §16).
    private func number(_ value: Int, in count: Int) -> [UInt8] {
        let prefix: UInt8 = count == 8 ? 0xC0 : count == 4 ? 0x80 : 0x40
        var bytes = (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        bytes[0] |= prefix
        return bytes
    }

    @Test("Numbers in more bytes than they need are the same numbers, also in pieces", arguments: [2, 4, 8])
    func longForms(count: Int) throws {
        func text(_ text: String) -> [UInt8] { number(text.utf8.count, in: count) + Array(text.utf8) }
        let section = text("accept") + text("*/*")
        let control = ["GET", "https", "a.example", "/x"].flatMap(text)
        let known: [UInt8] = number(0, in: count) + control + number(section.count, in: count) + section
        let streamed: [UInt8] = number(2, in: count) + control + section + [0]
        let content: [UInt8] = number(1, in: count) + [7]
        let expected = HTTPRequest(
            method: .get, scheme: "https", authority: "a.example", path: "/x", headerFields: [.accept: "*/*"])
        for piece in [3, 50, .max] {
            #expect(try parts(known + content + [0], piece: piece) == [.request(expected), .content([7])])
            let end = number(0, in: count) + [0]
            #expect(try parts(streamed + content + end, piece: piece) == [.request(expected), .content([7])])
        }
        // What is refused stays refused: an informational reply, and content that is not there.
        let reply = number(1, in: count)
        #expect(try parts(reply + number(200, in: count) + [0, 0, 0], .reply).count == 1)
        for status in [100, 103, 199, 600] {
            #expect(throws: PayloadError.self) { try parts(reply + number(status, in: count) + [0, 0, 0], .reply) }
        }
        #expect(throws: PayloadError.self) { try parts(known + number(2, in: count) + [7]) }
    }

    @Test("A length is written in the shortest form (RFC 9000 §16)")
    func lengths() throws {
        let reply = HTTPResponse(status: .ok)
        let forms = [
            0: "00", 63: "3f", 64: "4040", 16_383: "7fff", 16_384: "80004000", (1 << 30) - 1: "bfffffff",
            1 << 30: "c000000040000000",
        ]
        for (length, form) in forms {
            // A reply, its status, and no fields.
            let head = try #require(Hex.decode("0140c800" + form))
            #expect(BinaryHTTPWriter.head(reply, contentLength: length) == head, "\(length)")
        }
    }

    @Test("What is padded has the zero bytes behind it that its length asks for")
    func padded() {
        for count in [0, 1, 255, 256, 257, 65_536, 65_537, 70_000] {
            let content = [UInt8](repeating: 1, count: count)
            var padded = content
            Padding.pad(&padded)
            let zeros = [UInt8](repeating: 0, count: Padding.length(of: count) - count)
            #expect(padded == content + zeros, "\(count)")
            #expect(Padding.bytes(behind: count) == zeros, "\(count)")
        }
    }

    @Test("Padding is read up to its limit, however it comes, and a reader stops there: it may have no end")
    func endlessPadding() throws {
        let whole = try BinaryHTTPWriter.request(post, content: [UInt8](repeating: 7, count: 80_000))
        // The page's: 65,536 bytes and an eighth of what stands before.
        let most = 65_536 + whole.count / 8
        func padded(_ count: Int) -> [UInt8] { whole + [UInt8](repeating: 0, count: count) }
        for piece in [1_500, 70_000, .max] {
            #expect(try parts(padded(most), piece: piece).count == 2)
            #expect(throws: PayloadError.self) { try parts(padded(most + 1), piece: piece) }
        }
        var reader = BinaryHTTPReader(.request)
        _ = try reader.read(whole)
        var count = 0
        #expect(throws: PayloadError.self) {
            while count < 1 << 24 {
                _ = try reader.read([UInt8](repeating: 0, count: 1_000))
                count += 1_000
            }
        }
        #expect(count == most / 1_000 * 1_000)
    }
}
