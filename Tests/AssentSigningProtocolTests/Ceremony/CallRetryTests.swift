import AssentSigningProtocol
import Foundation
import TestSupport
import Testing

@Suite("Signing: what a device does when a call fails")
struct CallRetryTests {
    typealias Failure = CallRetry.Failure

    struct Row: Sendable, CustomTestStringConvertible {
        let failure: Failure
        let signature: CallRetry.Signature
        let first: CallRetry.Next
        let again: CallRetry.Next

        var testDescription: String { "\(failure.rawValue), \(signature.rawValue)" }
    }

    /// The rows of the page.
    static func rows() throws -> [Row] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "docs/transaction-signing.md"), encoding: .utf8)
        let rest = try #require(page.components(separatedBy: "<!-- retries -->\n").last)
        let table = try #require(rest.components(separatedBy: "<!-- end of retries -->").first)
        return try table.split(separator: "\n").dropFirst(2).map { line in
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            try #require(cells.count == 4, "\(line)")
            return Row(
                failure: try #require(Failure(rawValue: cells[0]), "\(line)"),
                signature: try #require(CallRetry.Signature(rawValue: cells[1]), "\(line)"),
                first: try #require(CallRetry.Next(rawValue: cells[2]), "\(line)"),
                again: try #require(CallRetry.Next(rawValue: cells[3]), "\(line)"))
        }
    }

    @Test("The table does what each row of the page says, and the page has each kind of failure")
    func table() throws {
        let rows = try Self.rows()
        #expect(Set(rows.filter { $0.signature == .fresh }.map(\.failure)) == Set(Failure.allCases))
        #expect(Set(rows.map(\.testDescription)).count == rows.count)
        for failure in Failure.allCases {
            for signature in CallRetry.Signature.allCases {
                let row = try #require(
                    rows.first { $0.failure == failure && $0.signature == signature }
                        ?? rows.first { $0.failure == failure })
                var retry = CallRetry(sends: 1, signature: signature)
                #expect(retry.next(after: failure) == row.first, "\(row.testDescription), \(signature.rawValue)")
                #expect(retry.next(after: failure) == row.again, "\(row.testDescription), \(signature.rawValue)")
            }
        }
    }

    @Test("Without an answer the same is sent as often as the app says, each time with a new nonce and configuration")
    func sends() {
        for sends in 0...5 {
            var retry = CallRetry(sends: sends)
            for _ in 0..<sends {
                #expect(retry.next(after: .useNonce) == .send)
                #expect(retry.next(after: .useNonce) == .fail)
                #expect(retry.next(after: .unknownKey) == .refreshAndSend)
                #expect(retry.next(after: .noAnswer) == .send)
            }
            #expect(retry.next(after: .noAnswer) == .fail)
        }
    }

    @Test("No order of failures goes on for ever")
    func ends() {
        var random = SmallRandom(seed: 24)
        for _ in 0..<2000 {
            let sends = Int.random(in: 0...5, using: &random)
            let signature = CallRetry.Signature.allCases.randomElement(using: &random) ?? .fresh
            var retry = CallRetry(sends: sends, signature: signature)
            var repetitions = 0
            for _ in 0..<200 {
                let failure = Failure.allCases.randomElement(using: &random) ?? .refused
                if retry.next(after: failure) != .fail { repetitions += 1 }
            }
            // Two for each time that it is sent, and the keys and the signature once.
            #expect(repetitions <= (sends + 1) * 2 + sends + 2)
        }
    }
}
