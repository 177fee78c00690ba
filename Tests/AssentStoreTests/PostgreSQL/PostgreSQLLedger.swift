#if PostgreSQL && os(Linux)
import AssentCore
import Foundation
import StoreTesting
import Testing

@testable import AssentStore

/// Many transactions while something goes wrong, and afterwards a look whether each answer was true.
struct PostgreSQLLedger {
    private struct Answers {
        var done: Set<String> = []
        var undone: Set<String> = []
        var unknown: Set<String> = []
        var isOver = false
    }

    let database: any SQLDatabase
    private let answers = Locked(Answers())

    init(_ database: any SQLDatabase) { self.database = database }

    /// How many were acknowledged.
    var done: Int { answers.withLock { $0.done.count } }

    /// How many were refused.
    var undone: Int { answers.withLock { $0.undone.count } }

    /// Returns when one more was acknowledged.
    func untilItGrows() async {
        let before = done
        while done == before { await Task.yield() }
    }

    /// Writes with `writers` tasks until `trouble` is over.
    func write(writers: Int = 8, during trouble: @Sendable () async throws -> Void) async throws {
        _ = try await database.run(insertNote("counter"))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<writers {
                group.addTask { await write(as: writer) }
            }
            do {
                defer { answers.withLock { $0.isOver = true } }
                try await trouble()
            }
            try await group.waitForAll()
        }
    }

    private func write(as writer: Int) async {
        var number = 0
        while !answers.withLock({ $0.isOver }) {
            number += 1
            let id = "\(writer)-\(number)"
            do {
                let count = SQLStatement(
                    "UPDATE notes SET count = count + 1 WHERE id = 'counter' RETURNING count", expecting: .exactly(1))
                _ = try await database.run([insertNote(id), count])
                answers.withLock { _ = $0.done.insert(id) }
            } catch let error as StoreError where error.code == .unavailable {
                answers.withLock { _ = $0.undone.insert(id) }
                // A call that is refused at once must not take the time of those who bring the server back.
                try? await SystemClock().sleep(until: .now + 0.005)
            } catch let error as StoreError where error.code == .outcomeUnknown {
                answers.withLock { _ = $0.unknown.insert(id) }
            } catch {
                Issue.record("\(error)")
                return
            }
        }
    }

    /// Compares the answers with what is there: nothing acknowledged is missing, nothing refused is there, and nothing
    /// was done twice.
    func check() async throws {
        let rows = try await database.run(.read("SELECT id, count FROM notes"))
        let found = Set(try rows.map { try $0.text("id") })
        let (done, undone, unknown) = answers.withLock { ($0.done, $0.undone, $0.unknown) }
        #expect(done.subtracting(found).isEmpty, "acknowledged, but not there")
        #expect(undone.intersection(found).isEmpty, "refused, but there")
        #expect(unknown.isEmpty)
        let count = try rows.first { try $0.text("id") == "counter" }?.integer("count")
        #expect(count == Int64(found.count - 1))
    }
}
#endif
