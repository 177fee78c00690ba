@testable import AssentCore
import AssentTesting
import Foundation
import TestSupport
import Testing

@Suite("A form with files")
struct MultipartFormTests {
    /// Gives these bytes in turn, and then the last again and again.
    private final class Listed: RandomSource {
        private let values: Locked<[UInt8]>
        init(_ values: [UInt8]) { self.values = Locked(values) }
        func bytes(_ count: Int) -> [UInt8] {
            let value = values.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }
            return [UInt8](repeating: value, count: count)
        }
    }

    private func text(_ form: MultipartForm) async throws -> String {
        String(decoding: try await form.body.collect(upTo: 64 << 20), as: UTF8.self)
    }

    private func stream(_ chunks: [[UInt8]], length: Int? = nil, isReplayable: Bool = true) -> HTTPBody {
        HTTPBody(length: length, isReplayable: isReplayable) {
            let rest = Locked(chunks)
            return { rest.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
        }
    }

    @Test("15 It is written as RFC 7578 says, fields before files")
    func written() async throws {
        let form = try MultipartForm(
            fields: FormItems(["a": "1 & 2"]),
            parts: [
                MultipartPart(name: "file", data: Array("x\r\ny".utf8), fileName: "ä.txt", contentType: "text/plain"),
                MultipartPart(name: "raw", data: [], fileName: "e"),
            ], random: Listed([0]))
        let boundary = String(repeating: "A", count: 43)
        #expect(form.boundary == boundary && form.contentType == "multipart/form-data; boundary=\(boundary)")
        let expected = [
            "--\(boundary)", #"Content-Disposition: form-data; name="a""#, "", "1 & 2",
            "--\(boundary)", #"Content-Disposition: form-data; name="file"; filename="ä.txt""#,
            "Content-Type: text/plain", "", "x", "y",
            "--\(boundary)", #"Content-Disposition: form-data; name="raw"; filename="e""#,
            "Content-Type: application/octet-stream", "", "", "--\(boundary)--", "",
        ].joined(separator: "\r\n")
        #expect(try await text(form) == expected)
        #expect(form.body.length == expected.utf8.count && form.body.isReplayable)
    }

    @Test("15 Names are escaped as HTML does, so that none ends its line or its quotation marks")
    func names() async throws {
        let evil = "a\"; filename=\"b\r\nX-Evil: 1\r\n\r\n--"
        let form = try MultipartForm(parts: [MultipartPart(name: evil, data: [], fileName: evil)])
        let head = try #require(try await text(form).components(separatedBy: "\r\n\r\n").first)
        let escaped = "a%22; filename=%22b%0D%0AX-Evil: 1%0D%0A%0D%0A--"
        #expect(head.contains("form-data; name=\"\(escaped)\"; filename=\"\(escaped)\"\r\n"))
        #expect(!head.contains("\nX-Evil"))
    }

    @Test("15 What no header can have is refused", arguments: ["\u{0}", "a\u{0}b", "\u{1}", "\u{1B}[", "\u{7F}"])
    func controls(name: String) {
        #expect(throws: WireError(.malformed, "")) {
            try MultipartForm(parts: [MultipartPart(name: name, data: [])])
        }
        #expect(throws: WireError(.malformed, "")) {
            try MultipartForm(parts: [MultipartPart(name: "a", data: [], fileName: name)])
        }
        #expect(throws: WireError(.malformed, "")) {
            try MultipartForm(parts: [MultipartPart(name: "a", data: [], contentType: name)])
        }
    }

    @Test("15 A media type ends no line and is not empty", arguments: ["", "a/b\r\nX: 1", "a/b\n", "ä/b"])
    func types(type: String) {
        #expect(throws: WireError(.malformed, "")) {
            try MultipartForm(parts: [MultipartPart(name: "a", data: [], contentType: type)])
        }
    }

    @Test("15 The boundary is another one where a part, its name or its file's name has it")
    func boundary() throws {
        let taken = Base64URL.encode([UInt8](repeating: 0, count: 32))
        let inContent = MultipartPart(name: "a", data: Array("…--\(taken)--".utf8))
        let inName = MultipartPart(name: taken, data: [])
        let inFile = MultipartPart(name: "a", data: [], fileName: "x\(taken)")
        for part in [inContent, inName, inFile] {
            #expect(try MultipartForm(parts: [part], random: Listed([0, 1])).boundary != taken)
            #expect(throws: WireError(.refused, "")) { try MultipartForm(parts: [part], random: Listed([0])) }
        }
        #expect(try MultipartForm(fields: FormItems(["a": "b"]), parts: [], random: Listed([0])).boundary == taken)
        let boundaries = try (0..<1000).map { _ in try MultipartForm(parts: [inContent]).boundary }
        #expect(Set(boundaries).count == 1000)
    }

    @Test("15 A stream that has the boundary is not passed on, wherever its chunks end", arguments: 1...50)
    func streamed(size: Int) async throws {
        let taken = Array(Base64URL.encode([UInt8](repeating: 0, count: 32)).utf8)
        let content = Array("before ".utf8) + taken + Array(" after".utf8)
        let chunks = stride(from: 0, to: content.count, by: size).map {
            Array(content[$0..<min($0 + size, content.count)])
        }
        let part = MultipartPart(name: "a", content: stream(chunks))
        let form = try MultipartForm(parts: [part], random: Listed([0]))
        await #expect(throws: WireError(.refused, "")) { try await form.body.collect(upTo: 1 << 20) }
        let other = try MultipartForm(parts: [part], random: Listed([1]))
        let expected = String(decoding: content, as: UTF8.self)
        #expect(try await text(other).contains("\r\n\r\n\(expected)\r\n--"))
    }

    @Test("The search finds what is there and nothing else")
    func search() throws {
        var random = SmallRandom(seed: 7)
        let pattern = "abcab"
        for _ in 0..<2_000 {
            let content = (0..<Int.random(in: 0..<40, using: &random)).map { _ in
                "abc".randomElement(using: &random) ?? "a"
            }
            let text = String(content)
            let found = BoundarySearch(Array(pattern.utf8)).finds(in: Array(text.utf8))
            #expect(found == text.contains(pattern), "\(text)")
        }
    }

    @Test("15 Parts are read as they are sent, and what they are is known beforehand")
    func laziness() async throws {
        let pulled = Locked(0)
        let endless = HTTPBody(length: nil, isReplayable: false) {
            {
                pulled.withLock { $0 += 1 }
                return [UInt8](repeating: 7, count: 10)
            }
        }
        let form = try MultipartForm(parts: [MultipartPart(name: "a", content: endless)])
        #expect(pulled.withLock { $0 } == 0 && form.body.length == nil && !form.body.isReplayable)
        var chunks = form.body.makeAsyncIterator()
        _ = try await chunks.next()
        _ = try await chunks.next()
        #expect(pulled.withLock { $0 } == 1)
        let known = try MultipartForm(parts: [MultipartPart(name: "a", content: stream([[1], [], [2]], length: 2))])
        #expect(try await known.body.collect(upTo: 1 << 10).count == known.body.length)
    }

    @Test("A part that is longer or shorter than it said ends the content", arguments: [1, 3])
    func length(said: Int) async throws {
        let form = try MultipartForm(parts: [MultipartPart(name: "a", content: stream([[1], [2]], length: said))])
        await #expect(throws: HTTPTransportError(.bodyFailed, "")) { try await form.body.collect(upTo: 1 << 10) }
    }

    @Test("15 A file is a part under its own name, and can be sent twice")
    func file() async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).bin")
        let content = [UInt8]((0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        try Data(content).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let part = try MultipartPart(name: "f", file: file.path)
        #expect(part.fileName == file.lastPathComponent && part.content.length == content.count)
        let form = try MultipartForm(parts: [part])
        let first = try await form.body.collect(upTo: 1 << 20)
        #expect(try await form.body.collect(upTo: 1 << 20) == first)
        #expect(first.count == form.body.length && first.firstRange(of: content) != nil)
        try Data(content.prefix(100_000)).write(to: file)
        await #expect(throws: HTTPTransportError(.bodyFailed, "")) { try await form.body.collect(upTo: 1 << 20) }
        for path in [file.path + ".none", FileManager.default.temporaryDirectory.path, "/dev/zero"] {
            #expect(throws: HTTPTransportError(.bodyFailed, "")) { try HTTPBody(file: path) }
        }
    }

    @Test("15 Werkzeug reads 1,000 parts as they were given", .enabled(if: Werkzeug.isThere))
    func werkzeug() async throws {
        var random = SmallRandom(seed: 11)
        let parts = (0..<1_000).map { index in
            MultipartPart(
                name: "ü\(index)",
                data: (0..<Int.random(in: 0..<300, using: &random)).map { _ in
                    [0x0D, 0x0A, 0x2D, UInt8.random(in: 0...255, using: &random)].randomElement(using: &random) ?? 0
                }, fileName: "f \(index).bin")
        }
        let form = try MultipartForm(fields: FormItems(["x": "1", "é": "a&b=ü\r\n"]), parts: parts)
        let read = try Werkzeug.read(form.contentType, try await form.body.collect(upTo: 1 << 20))
        let expected =
            [["x", "", Hex.encode(Array("1".utf8))], ["é", "", Hex.encode(Array("a&b=ü\r\n".utf8))]]
            + parts.map { [$0.name, $0.fileName ?? "", Hex.encode($0.content.inMemory ?? [])] }
        #expect(read == expected)
    }
}

/// Another reader of forms with files: that of Flask, in what `Scripts/setup.sh --tests` has made.
private enum Werkzeug {
    private static let python = URL(filePath: #filePath).appending(path: "../../../../../.build/peers/bin/python")
        .standardized.path

    private static let program = """
        import io, json, sys
        from werkzeug.formparser import FormDataParser
        from werkzeug.http import parse_options_header
        body = sys.stdin.buffer.read()
        kind, options = parse_options_header(sys.argv[1])
        parser = FormDataParser(max_form_parts=None, max_form_memory_size=None)
        _, form, files = parser.parse(io.BytesIO(body), kind, len(body), options)
        rows = [[n, "", v.encode().hex()] for n, v in form.items(multi=True)]
        rows += [[n, f.filename, f.read().hex()] for n, f in files.items(multi=True)]
        print(json.dumps(rows))
        """

    static var isThere: Bool {
        guard FileManager.default.isExecutableFile(atPath: python) else { return false }
        return (try? FinishedProcess.run(python, ["-I", "-c", "import werkzeug"]).status) == 0
    }

    static func read(_ contentType: String, _ body: [UInt8]) throws -> [[String]] {
        let process = try FinishedProcess.run(python, ["-I", "-c", program, contentType], input: body)
        return try JSONValue.parse(process.text).array?.map { $0.strings ?? [] } ?? []
    }
}
