import Testing

@testable import AssentServer

@Suite("A request target is read one way or not at all")
struct NormalizedTargetTests {
    @Test(
        "What two readers could read differently is refused",
        arguments: [
            ("/a/../b", NormalizedTarget.Refusal.dotSegment), ("/a/./b", .dotSegment), ("/..", .dotSegment),
            ("/a/%2e%2E/b", .dotSegment), ("/a/..;x=1/b", .dotSegment), ("/a//b", .emptySegment),
            ("//evil.example/a", .emptySegment), ("/a%2fb", .encodedSeparator), ("/a%2Fb", .encodedSeparator),
            ("/a%5cb", .encodedSeparator), ("/a\\b", .invalidCharacter), ("/a%00", .controlCharacter),
            ("/a\u{0}b", .controlCharacter), ("/a?x=%00", .controlCharacter), ("/a%0d%0aX: y", .controlCharacter),
            ("/a%252e%252e/b", .doubleEncoding), ("/a?x=%252F", .doubleEncoding), ("/a%2", .invalidEscape),
            ("/a%", .invalidEscape), ("/a%zz", .invalidEscape), ("/a?%", .invalidEscape), ("/a b", .invalidCharacter),
            ("/é", .invalidCharacter), ("/a#b", .invalidCharacter), ("/a?b#c", .invalidCharacter),
            ("http://bank.example/a", .notOriginForm), ("*", .notOriginForm), ("", .notOriginForm),
            ("/a?_txid=1&_txid=1", .repeatedTransactionID), ("/a?_txid=1&%5ftxid=2", .repeatedTransactionID),
            ("/a?_tx%69d=1&_txid", .repeatedTransactionID),
        ] as [(String, NormalizedTarget.Refusal)])
    func refused(target: String, refusal: NormalizedTarget.Refusal) {
        #expect(throws: refusal) { try NormalizedTarget(target) }
    }

    @Test(
        "What means the same is written the same",
        arguments: [
            ("/transfers", "/transfers", nil), ("/", "/", nil), ("/a/", "/a/", nil), ("/%61%2d", "/a-", nil),
            ("/%c3%a9", "/%C3%A9", nil), ("/a%20b?c=%2f", "/a%20b?c=%2F", nil), ("/a?", "/a", nil),
            ("/a?b=1&c=2", "/a?b=1&c=2", nil), ("/a?b=1&_txid=42&c=2", "/a?b=1&c=2", "42"),
            ("/a?_txid=42", "/a", "42"), ("/a?%5ftxid=42", "/a", "42"), ("/a?x_txid=42", "/a?x_txid=42", nil),
            ("/a?_txid", "/a", ""), ("/a%25", "/a%25", nil), ("/a;v=1/b", "/a;v=1/b", nil),
        ] as [(String, String, String?)])
    func normalized(target: String, text: String, transactionID: String?) throws {
        let read = try NormalizedTarget(target)
        #expect(read.text == text)
        #expect(read.transactionID == transactionID)
        #expect(try NormalizedTarget(read.text).text == read.text)
    }

    @Test("A target that is too long is refused")
    func tooLong() {
        #expect(throws: NormalizedTarget.Refusal.tooLong) {
            try NormalizedTarget("/" + String(repeating: "a", count: NormalizedTarget.maxLength))
        }
    }
}
