import AssentAuthorization
import AssentCore
import AssentTesting
import AssentTokens
import Foundation
import HTTPTypes
import Testing

/// What comes of an approved call, as `docs/enforcement.md` shows it.
struct EndRow: Sendable, CustomTestStringConvertible {
    let words: String
    let afterGet: String
    let afterPost: String
    let reply: @Sendable () throws -> HTTPReply

    var testDescription: String { words }

    init(_ words: String, _ afterGet: String, _ afterPost: String, _ reply: @escaping @Sendable () throws -> HTTPReply)
    {
        (self.words, self.afterGet, self.afterPost, self.reply) = (words, afterGet, afterPost, reply)
    }

    private static let reply = "the reply"

    static let rows = [
        EndRow("a reply with 2xx", reply, reply) { .json(201, [:]) },
        EndRow("403", reply, reply) { .json(403, [:]) },
        EndRow("409", reply, reply) { .json(409, [:]) },
        EndRow("502", reply, reply) { .json(502, [:]) },
        EndRow("504", reply, "`outcomeUnknown`") { .json(504, [:]) },
        EndRow("another advice", "`refused`", "`outcomeUnknown`") { World.header("another") },
        EndRow("401, the token was not accepted", "`notSent`", "`notSent`") {
            HTTPReply(
                HTTPResponse(
                    status: .unauthorized, headerFields: [.wwwAuthenticate: #"Bearer error="invalid_token""#]))
        },
        EndRow("no connection", "`notSent`", "`notSent`") { throw HTTPTransportError(.connectFailed, "offline") },
        EndRow("the connection ends without a reply", "the transport's error", "`outcomeUnknown`") {
            throw HTTPTransportError(.connectionClosed, "cut off", mayHaveHadEffect: true)
        },
    ]

    static var markdown: String {
        rows.reduce("| what comes | after GET | after POST |\n|---|---|---|\n") {
            $0 + "| \($1.words) | \($1.afterGet) | \($1.afterPost) |\n"
        }
    }
}

@Suite("The page about enforcement") struct EnforcementPageTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private func table(_ name: String) throws -> String {
        let page = try String(contentsOf: Self.root.appending(path: "docs/enforcement.md"), encoding: .utf8)
        let start = try #require(page.range(of: "<!-- \(name) -->\n")).upperBound
        let end = try #require(page.range(of: "<!-- end of \(name) -->\n")).lowerBound
        return String(page[start..<end])
    }

    private func end(of call: HTTPCall, _ row: EndRow) async throws -> String {
        let world = World()
        world.change {
            $0.states = false
            $0.gateway = { $0.url.contains("_txid=") ? try row.reply() : nil }
        }
        do {
            let reply = try await world.client(.accessToken).send(call, approve: agree)
            #expect(reply.status == (try? row.reply().status))
            #expect(reply.authorization == .approved(transactionID: txid, binding: .notStated))
            return "the reply"
        } catch let error as AuthorizationError {
            return "`\(error.code)`"
        } catch is HTTPTransportError {
            return "the transport's error"
        }
    }

    @Test("Each end of an approved call is what the row says", arguments: EndRow.rows)
    func row(_ row: EndRow) async throws {
        #expect(try await end(of: try get(), row) == row.afterGet)
        #expect(try await end(of: try post(), row) == row.afterPost)
    }

    @Test("docs/enforcement.md has the table that the tests run")
    func ends() throws { #expect(try table("ends") == EndRow.markdown) }

    /// Where the files of tests are, by their names.
    private static func files() throws -> [String: [URL]] {
        let tests = root.appending(path: "Tests")
        var files: [String: [URL]] = [:]
        for case let path as String in try #require(FileManager.default.enumerator(atPath: tests.path)) {
            let url = tests.appending(path: path)
            files[url.lastPathComponent, default: []].append(url)
        }
        return files
    }

    /// The cells of each row of a table.
    private func rows(_ name: String) throws -> [[String]] {
        try table(name).split(separator: "\n").dropFirst(2).map { row in
            row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    @Test("Every door names suites that exist")
    func doors() throws {
        let files = try Self.files()
        let doors = try rows("doors")
        #expect(doors.count == 10)
        for door in doors {
            try #require(door.count == 6, "\(door)")
            for name in door[5].components(separatedBy: ", ") {
                let suite = name.filter { $0 != "`" }
                let texts = try (files[suite + ".swift"] ?? []).map { try String(contentsOf: $0, encoding: .utf8) }
                #expect(texts.contains { Self.declares(suite, $0) }, "\(door[0]) names \(suite), which has no tests")
            }
        }
        // The table of their cells has the same doors.
        #expect(try rows("cells").map(\.first) == doors.map(\.first))
    }

    @Test(
        "Every row names tests that exist",
        arguments: [("cells", 10, 1...4), ("states", 12, 4...4), ("cuts", 23, 4...4), ("vendor", 41, 2...2)])
    func named(_ name: String, _ count: Int, _ columns: ClosedRange<Int>) throws {
        let files = try Self.files()
        let rows = try rows(name)
        #expect(rows.count == count && Set(rows.map(\.first)).count >= count - 2)
        for row in rows {
            try #require(row.count == columns.upperBound + 1, "\(row)")
            for cell in row[columns] {
                for name in cell.components(separatedBy: ", ") {
                    let isThere = try Self.isTest(name.filter { $0 != "`" }, files)
                    #expect(isThere, "\(row[0]) names \(name), which is not a test")
                }
            }
        }
    }

    /// Whether there is a test of that name: its suite's and its own, with a dot between.
    private static func isTest(_ name: String, _ files: [String: [URL]]) throws -> Bool {
        let parts = name.split(separator: ".").map(String.init)
        guard parts.count == 2 else { return false }
        let texts = try (files[parts[0] + ".swift"] ?? []).map { try String(contentsOf: $0, encoding: .utf8) }
        return texts.contains { declares(parts[0], $0) && tests(parts[1], $0) }
    }

    /// Whether a text has a test of that name: no helper of it, which no `@Test` stands before.
    private static func tests(_ name: String, _ text: String) -> Bool {
        text.components(separatedBy: "@Test").dropFirst().contains { part in
            part.components(separatedBy: "func ").dropFirst().first?.hasPrefix("\(name)(") == true
        }
    }

    /// Whether a file has a suite of that name, with tests.
    private static func declares(_ suite: String, _ text: String) -> Bool {
        text.contains("@Suite") && text.contains("@Test") && text.contains("struct \(suite) {")
    }

    @Test("A file that has the name and no tests of that suite is not taken for one")
    func pretending() {
        #expect(Self.declares("ATests", "@Suite struct ATests {\n    @Test func a() {}\n}"))
        for text in ["struct ATests {", "@Suite struct BTests { @Test func a() {} }", "@Suite struct ATests { }", ""] {
            #expect(!Self.declares("ATests", text))
        }
        let text = "    private func a() {}\n    @Test(\"it\") func b() {}\n    func c() {}\n"
        #expect(!Self.tests("a", text) && Self.tests("b", text) && !Self.tests("c", text))
    }
}
