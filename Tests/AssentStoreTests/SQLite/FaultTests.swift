import AssentCore
import Foundation
import GRDB
import StoreTesting
import Testing

@testable import AssentStore

@Suite("SQLite: faults of the disk")
struct SQLiteFaultTests {
    let directory: TemporaryDirectory
    let database: any SQLDatabase

    init() async throws {
        directory = try TemporaryDirectory()
        database = try await directory.open()
    }

    @Test("A full disk is unavailable, changes nothing, and passes")
    func fullDisk() async throws {
        _ = try await database.run(insertNote("a"))
        let pages = try await database.run(.read("PRAGMA page_count")).first?.integer("page_count") ?? 0
        try await database.limitSize(pages: Int(pages))
        let big = [UInt8](repeating: 7, count: 100_000)
        await #expect(throws: StoreError(.unavailable, "")) {
            try await database.run([insertNote("b"), insertNote("c", body: big)])
        }
        #expect(try await database.count("notes") == 1)
        try await database.limitSize(pages: 100_000)
        _ = try await database.run([insertNote("b"), insertNote("c", body: big)])
        #expect(try await database.count("notes") == 3)
    }

    @Test("A read-only database is unavailable for writers, serves readers, and can be written again later")
    func readOnly() async throws {
        _ = try await database.run(insertNote("a"))
        for _ in 0..<2 {
            try await database.setReadOnly(true)
            await #expect(throws: StoreError(.unavailable, "")) { try await database.run(insertNote("b")) }
            #expect(try await database.count("notes") == 1)
            try await database.setReadOnly(false)
        }
        _ = try await database.run(insertNote("b"))
        #expect(try await database.count("notes") == 2)
    }

    @Test("Where another file is put in the place of the open one nothing is written, and nobody reads the other")
    func replaced() async throws {
        _ = try await database.run(insertNote("a"))
        try await database.checkHealth()
        let other = try TemporaryDirectory()
        let backup = try await other.open()
        _ = try await backup.run([insertNote("b"), insertNote("c")])
        try await backup.close()
        let replaced = try TemporaryDirectory()
        let served = try await replaced.open()
        _ = try await served.run(insertNote("a"))
        // As an operator restores a backup who has not stopped the server.
        for end in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: replaced.databasePath + end) }
        await #expect(throws: StoreError(.unavailable, "")) { try await served.checkHealth() }
        try FileManager.default.copyItem(atPath: other.databasePath, toPath: replaced.databasePath)
        await #expect(throws: StoreError(.unavailable, "")) { try await served.run(insertNote("d")) }
        // No connection has read yet, so that one is opened now.
        await #expect(throws: StoreError(.unavailable, "")) { try await served.count("notes") }
        await #expect(throws: StoreError(.unavailable, "")) { try await served.checkHealth() }
        #expect(try await other.open().count("notes") == 2)
    }

    /// A writer of its own on the file, whose commits fail so one after the other.
    private func failing(_ faults: [ResultCode]) throws -> (SQLiteWriter, DatabasePool) {
        let pool = try DatabasePool(path: directory.databasePath)
        pool.add(transactionObserver: FailingCommits(faults), extent: .databaseLifetime)
        return (SQLiteWriter(pool), pool)
    }

    /// Lets calls share a commit. Returns the codes of their errors, in any order.
    private func together(_ ids: [String], _ writer: SQLiteWriter, _ pool: DatabasePool) async -> [StoreError.Code?] {
        let begun = Locked(0)
        pool.asyncWriteWithoutTransaction { _ in
            while begun.withLock({ $0 }) < ids.count {}
            // They have said so just before the call.
            for _ in 0..<1_000 { sched_yield() }
        }
        return await withTaskGroup(of: StoreError.Code?.self) { group in
            for id in ids {
                group.addTask {
                    begun.withLock { $0 += 1 }
                    do {
                        _ = try await writer.run([insertNote(id)])
                        return nil
                    } catch let error as DatabaseError {
                        return StoreError(error).code
                    } catch {
                        return (error as? StoreError)?.code
                    }
                }
            }
            var codes: [StoreError.Code?] = []
            for await code in group { codes.append(code) }
            return codes
        }
    }

    @Test("A disk that fails under COMMIT is not told as nothing changed: after a crash the transaction may be there")
    func failedSync() async throws {
        let (writer, _) = try failing([.SQLITE_IOERR_FSYNC, .SQLITE_IOERR_WRITE, .SQLITE_FULL])
        await #expect(throws: StoreError(.outcomeUnknown, "")) { try await writer.run([insertNote("a")]) }
        // Of what could not be written whole nothing can come back.
        for code in [ResultCode.SQLITE_IOERR, .SQLITE_FULL] {
            let error = await #expect(throws: DatabaseError.self) { try await writer.run([insertNote("a")]) }
            #expect(error?.resultCode == code)
        }
        _ = try await writer.run([insertNote("a")])
        #expect(try await database.count("notes") == 1)
    }

    @Test("Those whose one COMMIT the disk has failed are tried one by one, and unknown where it takes them no more")
    func failedSyncOfSeveral() async throws {
        let ids = (0..<20).map { "\($0)" }
        let (writer, pool) = try failing([.SQLITE_IOERR_FSYNC])
        #expect(await together(ids, writer, pool).allSatisfy { $0 == nil })
        #expect(try await database.count("notes") == 20)
        let full = [ResultCode](repeating: .SQLITE_FULL, count: 60)
        let (other, otherPool) = try failing([.SQLITE_IOERR_FSYNC] + full)
        let codes = await together(ids.map { "b\($0)" }, other, otherPool)
        #expect(codes.contains(.outcomeUnknown))
        // Who came too late for that commit knows that nothing has changed.
        #expect(codes.allSatisfy { $0 == .outcomeUnknown || $0 == .unavailable })
        #expect(try await database.count("notes") == 20)
    }
}

/// Lets commits fail with these codes, one after the other, and then succeed.
private final class FailingCommits: TransactionObserver, Sendable {
    private let faults: Locked<[ResultCode]>

    init(_ faults: [ResultCode]) { self.faults = Locked(faults) }

    func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }

    func databaseDidChange(with event: DatabaseEvent) {}

    func databaseWillCommit() throws {
        let fault = faults.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        if let fault { throw DatabaseError(resultCode: fault) }
    }

    func databaseDidCommit(_ db: Database) {}

    func databaseDidRollback(_ db: Database) {}
}
