import AssentCore
import Foundation
import GRDB
import StoreTesting
import Testing

@testable import AssentStore

@Suite("SQLite: transactions that wait at the same time")
struct GroupCommitTests {
    let directory: TemporaryDirectory
    let database: any SQLDatabase

    init() async throws {
        directory = try TemporaryDirectory()
        database = try await directory.open()
    }

    /// Lets all calls begin while the connection that writes is at work, and returns their results in the same order.
    /// For another process that holds the file the first call would wait ten seconds, which the last one may need to
    /// begin on a busy machine.
    private func together(_ calls: [[SQLStatement]]) async throws -> [Result<[[SQLRow]], any Error>] {
        let begun = Locked(0)
        let sqlite = try #require(database as? SQLiteDatabase)
        sqlite.pool.asyncWriteWithoutTransaction { [count = calls.count] _ in
            while begun.withLock({ $0 }) < count { sched_yield() }
            // They have said so just before the call.
            for _ in 0..<1_000 { sched_yield() }
        }
        let database = database
        let results = await withTaskGroup(of: (Int, Result<[[SQLRow]], any Error>).self) { group in
            for (index, call) in calls.enumerated() {
                group.addTask {
                    begun.withLock { $0 += 1 }
                    do {
                        return (index, .success(try await database.run(call)))
                    } catch {
                        return (index, .failure(error))
                    }
                }
            }
            return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        return try calls.indices.map { try #require(results[$0]) }
    }

    private func codes(_ results: [Result<[[SQLRow]], any Error>]) -> [StoreError.Code?] {
        results.map { result in
            if case .failure(let error) = result { (error as? StoreError)?.code } else { nil }
        }
    }

    /// How many commits the write-ahead log has: frames whose header says how large the database is after them.
    /// (https://www.sqlite.org/fileformat.html, section 4.1)
    private func commits() throws -> Int {
        let log = [UInt8](try Data(contentsOf: URL(filePath: directory.databasePath + "-wal")))
        func number(_ offset: Int) -> Int { log[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) } }
        let frame = 24 + number(8)
        return stride(from: 32, through: log.count - frame, by: frame).count { number($0 + 4) != 0 }
    }

    @Test("share a commit")
    func shared() async throws {
        _ = try await database.run(insertNote("first"))
        let before = try commits()
        let results = try await together((0..<30).map { [insertNote("\($0)")] })
        #expect(codes(results).allSatisfy { $0 == nil })
        #expect(try await database.count("notes") == 31)
        #expect((1..<30).contains(try commits() - before))
    }

    @Test("succeed or fail each by itself, with all of their statements or none")
    func apart() async throws {
        let update = SQLStatement("UPDATE notes SET count = 1 WHERE id = 'missing'", expecting: .exactly(1))
        let results = try await together(
            (0..<40).map { index in
                switch index % 4 {
                case 0: [insertNote("a\(index)"), update]
                case 1: [insertNote("b\(index)"), insertNote("b\(index)")]
                case 2: [insertNote("c\(index)"), SQLStatement("no SQL")]
                default: [insertNote("d\(index)"), insertNote("e\(index)")]
                }
            })
        #expect(codes(results) == (0..<40).map { [.unexpectedCount, .constraint, .statement, nil][$0 % 4] })
        let rows = try await database.run(.read("SELECT id FROM notes ORDER BY id"))
        let expected = stride(from: 3, to: 40, by: 4).flatMap { ["d\($0)", "e\($0)"] }.sorted()
        #expect(try rows.map { try $0.text("id") } == expected)
    }

    @Test("are not lost with one for which the disk is too small")
    func fullDisk() async throws {
        let pages = try await database.run(.read("PRAGMA page_count")).first?.integer("page_count") ?? 0
        try await database.limitSize(pages: Int(pages) + 20)
        let big = [UInt8](repeating: 7, count: 200_000)
        let results = try await together((0..<20).map { [insertNote("\($0)", body: $0 == 7 ? big : [])] })
        #expect(codes(results) == (0..<20).map { $0 == 7 ? .unavailable : nil })
        #expect(try await database.count("notes") == 19)
    }

    @Test("are tried one by one when their one COMMIT fails: those to blame are refused, and the others stay")
    func failedCommit() async throws {
        // A foreign key that is looked at when the transaction ends: savepoints and statements succeed.
        _ = try await database.run(
            SQLStatement(
                """
                CREATE TABLE promises (id TEXT PRIMARY KEY,
                    owner_id TEXT REFERENCES owners (id) DEFERRABLE INITIALLY DEFERRED)
                """))
        let results = try await together(
            (0..<20).map { index in
                let owner = [7, 13].contains(index) ? "nobody" : nil
                return [SQLStatement("INSERT INTO promises (id, owner_id) VALUES (\("\(index)"), \(owner))")]
            })
        #expect(codes(results) == (0..<20).map { [7, 13].contains($0) ? .constraint : nil })
        #expect(try await database.count("promises") == 18)
    }

    @Test("are refused when the file is closed, and none is left waiting")
    func closed() async throws {
        try await database.close()
        await #expect(throws: StoreError(.unavailable, "")) { try await database.run(insertNote("a")) }
    }
}
