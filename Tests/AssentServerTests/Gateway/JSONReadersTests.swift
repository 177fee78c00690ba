import AssentCore
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentEngine

/// Whether services see what users saw: bodies that the gateway would let through, read by the JSON parsers that this
/// machine has.
@Suite(
    "What other parsers see in a body that can be approved",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct JSONReadersTests {
    /// A program that reads JSON from its standard input and writes what it saw.
    struct Reader: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let executables: [String]
        let arguments: [String]

        /// The executable, and whether the parser is there.
        var executable: String? {
            executables.first { path in
                guard FileManager.default.isExecutableFile(atPath: path) else { return false }
                return (try? FinishedProcess.run(path, arguments, input: Array("{}".utf8)).status) == 0
            }
        }

        /// A parser of Python's, or of PyPI's in what `Scripts/setup.sh --tests` has made.
        static func python(_ name: String, _ program: String) -> Reader {
            let package = URL(filePath: #filePath).appending(path: "../../../..").standardized
            return Reader(
                testDescription: "Python's \(name)",
                executables: [package.appending(path: ".build/peers/bin/python").path, "/usr/bin/python3"],
                arguments: ["-I", "-c", program])
        }

        static let all = [
            python("json", "import json,sys;print(json.dumps(json.loads(sys.stdin.buffer.read())))"),
            python(
                "orjson",
                "import orjson,sys;sys.stdout.buffer.write(orjson.dumps(orjson.loads(sys.stdin.buffer.read())))"),
            python("simplejson", "import simplejson as j,sys;print(j.dumps(j.loads(sys.stdin.buffer.read())))"),
            python("ujson", "import ujson as j,sys;print(j.dumps(j.loads(sys.stdin.buffer.read().decode())))"),
            // SQLite's own parser is written in C.
            python(
                "sqlite3",
                "import sqlite3,sys;print(sqlite3.connect(':memory:').execute('select json(?)',"
                    + "(sys.stdin.buffer.read().decode(),)).fetchone()[0])"),
            Reader(
                testDescription: "jq", executables: ["/usr/bin/jq", "/usr/local/bin/jq"], arguments: ["-c", "."]),
            // A number at the end of its input would be lost.
            Reader(
                testDescription: "yajl", executables: ["/bin/sh"],
                arguments: ["-c", "{ cat; echo; } | /usr/bin/json_reformat -m"]),
            Reader(
                testDescription: "Node", executables: ["/usr/bin/node", "/usr/local/bin/node"],
                arguments: [
                    "-e",
                    "process.stdout.write(JSON.stringify(JSON.parse(require('fs').readFileSync(0,'utf8'))))",
                ]),
            Reader(
                testDescription: "Perl's JSON::PP", executables: ["/usr/bin/perl"],
                arguments: [
                    "-MJSON::PP", "-e",
                    "local $/; my $j=JSON::PP->new->utf8->allow_nonref; print $j->encode($j->decode(<STDIN>))",
                ]),
            Reader(
                testDescription: "Ruby", executables: ["/usr/bin/ruby"],
                arguments: ["-rjson", "-e", "print JSON.generate(JSON.parse(STDIN.read))"]),
            Reader(
                testDescription: "PHP", executables: ["/usr/bin/php"],
                arguments: [
                    "-r",
                    "echo json_encode(json_decode(file_get_contents('php://stdin'),false,512,JSON_THROW_ON_ERROR),"
                        + "JSON_PRESERVE_ZERO_FRACTION);",
                ]),
        ]
    }

    /// Bodies of ours: ordinary ones, and those in which parsers are known to differ.
    private static let corpus =
        [
            #"{"to":"Bob","amount":"200.00"}"#, #"{"to":"Bob","amount":200.00}"#, #"{"to":"Bob","amount":0.1}"#,
            #"{"to\u0000":"Eve","to":"Bob"}"#, #"{"to":"Bob\u0000Eve"}"#, #"{"to":"Bob","to":"Eve"}"#,
            #"{"to":"Bob","TO":"Eve"}"#, #"{"caf\u00e9":"Bob","cafe\u0301":"Eve"}"#, #"{"to":"\ud800"}"#,
            #"{"to":"\ud83d\ude00 \u20ac \u00e9 é 😀"}"#, #"{"to\u0008":"Eve","to":"Bob"}"#, #"{"to\u007f":"Eve"}"#,
            #"{"amount":9007199254740992}"#, #"{"amount":9007199254740993}"#, #"{"amount":12345678901234567890}"#,
            #"{"amount":1e308}"#, #"{"amount":1e309}"#, #"{"amount":1e-400}"#, #"{"amount":-0}"#, #"{"amount":1E2}"#,
            #"{"amount":0.30000000000000004}"#, #"{"amount":0.1000000000000000055511151231257827}"#,
            #"{"amount":01}"#, #"{"amount":+1}"#, #"{"amount":NaN}"#, #"{"amount":Infinity}"#, #"{"to":"Bob",}"#,
            #"{"to":"Bob"}{"to":"Eve"}"#, #"{/*"to":"Eve",*/"to":"Bob"}"#, "{'to':'Bob'}", "\u{FEFF}{\"to\":\"Bob\"}",
            "{\"to\":\"B\u{7F}ob\"}", "{\"to\":\"B\u{2028}ob\"}", "{\"to\":\"B\nob\"}", #"{"to":"\q"}"#,
            #"{"to":"a\/b\\c\"d\b\f\n\r\te"}"#, #"{"":"Bob"}"#, #"{"to":{"name":"Bob"},"list":[1,[2,[3]]]}"#,
            #"{"__proto__":{"to":"Eve"},"to":"Bob"}"#, #"{"constructor":"Eve","to":"Bob"}"#,
            #"{"to":null,"ok":true,"no":false}"#, " \t\r\n{ \"to\" : \"Bob\" } \n", "[]", "\"Bob\"", "1", "null",
            String(repeating: "[", count: 60) + String(repeating: "]", count: 60),
            String(repeating: "[", count: 2000) + String(repeating: "]", count: 2000),
            #"{"to":""# + String(repeating: "a", count: 20_000) + #""}"#,
        ].map { Array($0.utf8) } + [
            Array(#"{"to":"B"#.utf8) + [0xFF] + Array(#"ob"}"#.utf8),
            Array(#"{"to":""#.utf8) + [0xC0, 0x80] + Array(#""}"#.utf8),
            Array(#"{"to":""#.utf8) + [0xED, 0xA0, 0x80] + Array(#""}"#.utf8), Array(#"{"to":"Bob"}"#.utf8) + [0],
        ]

    private static let accepted = corpus.filter { (try? BoundJSON.parse($0, limits: JSONLimits(depth: 64))) != nil }

    @Test("It is the same that we see", arguments: Reader.all)
    func same(_ reader: Reader) async throws {
        guard let executable = reader.executable else { return }
        for body in Self.accepted {
            let text = String(decoding: body.prefix(100), as: UTF8.self)
            let ours = try JSONValue.parse(body)
            let run = try await offPool { try FinishedProcess.run(executable, reader.arguments, input: body) }
            try #require(run.status == 0, "\(text): \(run.complaints)")
            let theirs = try JSONValue.parse(run.output, duplicates: .keep)
            #expect(Self.isSame(ours, theirs), "\(text): \(run.text.prefix(100))")
        }
    }

    @Test("The corpus has bodies that are refused and bodies that are not, and all parsers are here")
    func corpus() {
        #expect(Self.accepted.count >= 20)
        #expect(Self.corpus.count - Self.accepted.count >= 20)
        #if os(Linux)
        let missing = Reader.all.filter { $0.executable == nil }.map(\.testDescription)
        #expect(missing.isEmpty, "Scripts/setup.sh --tests installs them: \(missing)")
        #endif
    }

    /// Whether both say the same: names and texts byte by byte, numbers by their value.
    private static func isSame(_ one: JSONValue, _ other: JSONValue) -> Bool {
        switch (one, other) {
        case (.string(let one), .string(let other)): Array(one.utf8) == Array(other.utf8)
        case (.number(let one), .number(let other)): one.double == other.double
        case (.array(let one), .array(let other)):
            one.count == other.count && zip(one, other).allSatisfy { isSame($0, $1) }
        case (.object(let one), .object(let other)):
            one.members.count == other.members.count
                && one.members.allSatisfy { member in
                    other.members.contains {
                        Array($0.name.utf8) == Array(member.name.utf8) && isSame(member.value, $0.value)
                    }
                }
        default: one == other
        }
    }
}
