import AssentCore
import Testing

@testable import AssentAuthorization

@Suite("The path by which a call finds its policy")
struct ComparablePathTests {
    /// What means something in a target, or is not allowed there.
    private static let pieces = [
        "/", "//", "a", "Z9-_~", ".", "..", "%61", "%2e", "%2F", "%", ";x", "@:,", "?", "?x=/../", "#", "\"", "é", " ",
        "\\",
    ]

    /// Whether a target's path is the same, read in one walk or taken apart.
    private static func isSame(_ text: String) -> Bool {
        ComparableURL.path(ofTarget: text) == (try? RequestTarget(text)).map { ComparableURL.path(of: $0) }
    }

    @Test("It is the same whether the target is read in one walk or taken apart")
    func same() {
        var different: [String] = []
        for first in Self.pieces {
            for second in Self.pieces {
                for third in Self.pieces {
                    let text = "/" + first + second + third
                    if !Self.isSame(text) { different.append(text) }
                }
            }
            for length in [1020, 1030, 8190, 8200] {
                let text = "/" + String(repeating: "a", count: length) + first
                if !Self.isSame(text) { different.append("\(length) \(first)") }
            }
        }
        #expect(different.isEmpty)
    }

    @Test("A path in that form stays as it is, and the query does not belong to it")
    func plain() {
        #expect(ComparableURL.path(ofTarget: "/transfers/1;v=2,3@x:y") == "/transfers/1;v=2,3@x:y")
        #expect(ComparableURL.path(ofTarget: "/transfers?to=/../x") == "/transfers")
        #expect(ComparableURL.path(ofTarget: "transfers") == nil)
        #expect(ComparableURL.path(ofTarget: "") == nil)
    }
}
