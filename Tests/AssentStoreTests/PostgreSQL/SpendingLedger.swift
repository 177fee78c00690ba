#if PostgreSQL && os(Linux)
import AssentCore
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentStore

/// Two nodes that try to spend the same things while something goes wrong, and afterwards a look whether each answer
/// was true.
final class SpendingLedger: Sendable {
    private struct Answers {
        var next = 0
        var granted: [Int: Int] = [:]
        var unknown: Set<Int> = []
        var refused = 0
        var isOver = false
    }

    private let nodes: [any SQLDatabase]
    private let answers = Locked(Answers())

    init(_ nodes: [any SQLDatabase]) { self.nodes = nodes }

    /// How many were granted.
    var granted: Int { answers.withLock { $0.granted.count } }

    /// How many outcomes nobody could find out.
    var unknown: Int { answers.withLock { $0.unknown.count } }

    /// Returns when so many more were granted.
    func untilItGrows(by count: Int = 1) async {
        let before = granted
        while granted < before + count, !Task.isCancelled { await Task.yield() }
    }

    /// Spends over all nodes until `trouble` has ended and `least` are granted.
    func spend(least: Int, during trouble: @Sendable () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask { await self.spend() }
            }
            do {
                defer { answers.withLock { $0.isOver = true } }
                try await trouble()
                while granted < least { await untilItGrows() }
            }
            try await group.waitForAll()
        }
    }

    /// Each thing is tried by all nodes at once.
    private func spend() async {
        while true {
            let thing = answers.withLock { answers -> Int? in
                guard !answers.isOver else { return nil }
                answers.next += 1
                return answers.next
            }
            guard let thing else { return }
            await withTaskGroup(of: Void.self) { group in
                for node in nodes {
                    group.addTask { await self.spend(thing, at: node) }
                }
            }
        }
    }

    private func spend(_ thing: Int, at node: any SQLDatabase) async {
        let statements = [
            insertNote("thing-\(thing)"), SQLStatement.record(insertNote("record-\(UUID().uuidString)").sql),
        ]
        do {
            _ = try await node.run(statements)
            answers.withLock { $0.granted[thing, default: 0] += 1 }
        } catch let error as StoreError where error.code == .constraint {
            // The other node was faster, or this one without knowing.
        } catch let error as StoreError where error.code == .outcomeUnknown {
            answers.withLock { _ = $0.unknown.insert(thing) }
        } catch let error as StoreError where error.code == .unavailable {
            answers.withLock { $0.refused += 1 }
            // A call that is refused at once must not take the time of those who bring the server back.
            try? await SystemClock().sleep(until: .now + 0.02)
        } catch {
            Issue.record("\(error)")
        }
    }

    /// Looks at what is there in the end, and tries everything again that was granted. A busy machine exceeds the short
    /// limits also when the trouble is over.
    func check() async throws {
        let database = nodes[0]
        let rows = try await Patience.retry("what was spent is read") {
            try await database.run(.read("SELECT id FROM notes WHERE id LIKE 'thing-%'"))
        } unless: {
            ($0 as? StoreError)?.code != .unavailable
        }
        let found = Set(try rows.compactMap { Int(try $0.text("id").dropFirst(6)) })
        let (granted, unknown) = answers.withLock { ($0.granted, $0.unknown) }
        #expect(granted.filter { $0.value > 1 }.isEmpty, "granted twice")
        #expect(Set(granted.keys).subtracting(found).isEmpty, "granted, but not there: it could be spent again")
        #expect(found.subtracting(granted.keys).subtracting(unknown).isEmpty, "there, but refused")
        for thing in granted.keys {
            await #expect(throws: StoreError(.constraint, ""), "spent again") {
                try await Patience.retry("a thing is tried again") {
                    try await database.run(insertNote("thing-\(thing)"))
                } unless: {
                    ($0 as? StoreError)?.code != .unavailable
                }
            }
        }
    }
}
#endif
