import AssentCore
import Testing

@testable import AssentCLI

@Suite("Following the audit log")
struct AuditFollowerTests {
    private struct End: Error {}

    private static func record(_ node: String, _ position: Int64) -> JSONValue {
        ["node": .string(node), "position": .integer(position)]
    }

    /// Looks at a log that grows from look to look; returns what was shown.
    private func follow(_ log: [[JSONValue]], newest: Int, now: Int64 = .max) async throws -> [JSONValue] {
        var written: [JSONValue] = log.first ?? []
        var rest = log.dropFirst()
        let shown = Locked<[JSONValue]>([])
        let position = { (record: JSONValue) in record["position"]?.integer ?? 0 }
        let follower = AuditFollower(
            fetch: { path in
                let sorted = written.sorted { position($0) < position($1) }
                guard let after = path.firstMatch(of: /after=(\d+)/).flatMap({ Int64($0.1) }) else {
                    return Array(sorted.reversed().prefix(AuditFollower.page))
                }
                return Array(sorted.filter { position($0) > after }.prefix(AuditFollower.page))
            },
            wait: {
                guard let more = rest.popFirst() else { throw End() }
                written += more
            },
            now: { now },
            show: { record in shown.withLock { $0.append(record) } })
        await #expect(throws: End.self) { try await follower.run(newest: newest) {} }
        return shown.withLock { $0 }
    }

    @Test("The newest come first, oldest of them first, then each new one once, also one that was committed late")
    func late() async throws {
        let second: Int64 = 1_000_000
        let records = (1...5).map { Self.record("a", $0 * second) }
        let late = Self.record("b", 2 * second + 1)
        let new = Self.record("a", 6 * second)
        #expect(try await follow([records, [], [new], [late], []], newest: 2) == [records[3], records[4], new, late])
    }

    @Test("A node whose clock is a minute behind is followed, too")
    func behind() async throws {
        let second: Int64 = 1_000_000
        let (ahead, behind) = (Self.record("a", 200 * second), Self.record("b", 140 * second))
        #expect(try await follow([[ahead], [behind], []], newest: 10) == [ahead, behind])
    }

    @Test("A node that is a day ahead hides no other's records, however many are its own", arguments: [3, 1500])
    func ahead(count: Int) async throws {
        let (second, now): (Int64, Int64) = (1_000_000, 1_000_000_000_000)
        let day = 86_400 * second
        let ahead = (1...count).map { Self.record("a", now + day + Int64($0)) }
        let next = Self.record("a", now + day + Int64(count) + 1)
        let (first, late) = (Self.record("b", now - second), Self.record("c", now - 60 * second))
        let old = Self.record("b", now - 3600 * second)
        let shown = try await follow([[old] + ahead, [first], [next, late], []], newest: 3, now: now)
        #expect(Array(shown.prefix(3)) == Array(ahead.suffix(3)))
        for record in [first, next, late] { #expect(shown.filter { $0 == record }.count == 1) }
        // Of a list that was cut, what the server did not give at first is shown once.
        #expect(shown.count == 6 + max(0, count - AuditFollower.page) && !shown.contains(old))
    }

    @Test("More records than the server gives at once are all shown")
    func pages() async throws {
        let old = (1...1500).map { Self.record("a", Int64($0)) }
        let new = (1501...4200).map { Self.record("a", Int64($0)) }
        #expect(try await follow([old, new, []], newest: 10) == Array(old.suffix(10)) + new)
    }

    @Test("A server that gives the same full page again and again is not asked without a pause")
    func samePage() async throws {
        let page = (1...AuditFollower.page).map { Self.record("a", Int64($0)) }
        let asked = Locked(0)
        let waits = Locked(0)
        let follower = AuditFollower(
            fetch: { _ in
                let count = asked.withLock { count in
                    count += 1
                    return count
                }
                if count > 10 { throw End() }
                return page
            },
            wait: {
                let count = waits.withLock { count in
                    count += 1
                    return count
                }
                if count > 2 { throw End() }
            }, now: { .max }, show: { _ in })
        await #expect(throws: End.self) { try await follower.run(newest: 10) {} }
        #expect(waits.withLock { $0 } == 3)
        #expect(asked.withLock { $0 } <= 5)
    }

    @Test("An empty log is followed, too")
    func empty() async throws {
        let first = Self.record("a", 7)
        #expect(try await follow([[], [first], []], newest: 10) == [first])
    }
}
