import AssentCore
import GRDB

/// Runs the transactions of many callers one after the other. Those that wait at the same time share one commit, and so
/// one sync of the disk, which costs more than anything else; each still succeeds or fails by itself.
final class SQLiteWriter: Sendable {
    private struct Job {
        let statements: [SQLStatement]
        let answer: CheckedContinuation<[[SQLRow]], any Error>

        func execute(in database: Database) throws -> [[SQLRow]] {
            try statements.enumerated().map { try SQLiteDatabase.execute($1, index: $0, in: database) }
        }
    }

    private struct State {
        var waiting: [Job] = []
        var isWriting = false
    }

    /// So many transactions share a commit at most: nobody waits for long because of the others.
    private static let groupLimit = 64

    private let pool: DatabasePool
    private let file: SQLiteFile?
    private let state = Locked(State())

    /// The writer of a pool, whose file is open as `file`.
    init(_ pool: DatabasePool, file: SQLiteFile? = nil) {
        self.pool = pool
        self.file = file
    }

    /// Runs statements as one transaction, and returns when it is on the disk.
    func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
        try Task.checkCancellation()
        return try await withCheckedThrowingContinuation { answer in
            let isFirst = state.withLock { state in
                state.waiting.append(Job(statements: statements, answer: answer))
                defer { state.isWriting = true }
                return !state.isWriting
            }
            if isFirst { writeNext() }
        }
    }

    private func writeNext() {
        pool.asyncWriteWithoutTransaction { [self] database in
            let jobs = state.withLock { state in
                let jobs = Array(state.waiting.prefix(Self.groupLimit))
                state.waiting.removeFirst(jobs.count)
                return jobs
            }
            write(jobs, in: database)
            let hasMore = state.withLock { state in
                state.isWriting = !state.waiting.isEmpty
                return state.isWriting
            }
            if hasMore { writeNext() }
        }
    }

    private func write(_ jobs: [Job], in database: Database) {
        // It would be acknowledged, and be lost.
        guard file?.isReplaced != true else {
            for job in jobs { job.answer.resume(throwing: SQLiteFile.replaced) }
            return
        }
        var isInDoubt = false
        if jobs.count > 1 {
            do {
                let results = try together(jobs, in: database)
                for (job, result) in zip(jobs, results) { job.answer.resume(with: result) }
                return
            } catch {
                isInDoubt = (error as? StoreError)?.code == .outcomeUnknown
            }
        }
        // One alone; or nothing of several was committed, and the fault of one must not be the others'.
        for job in jobs { job.answer.resume(with: Result { try alone(job, in: database, isInDoubt: isInDoubt) }) }
    }

    /// `isInDoubt` says that the job may be in the log already: then a disk that takes nothing now leaves it there.
    private func alone(_ job: Job, in database: Database, isInDoubt: Bool) throws -> [[SQLRow]] {
        var rows: [[SQLRow]] = []
        do {
            try committing(in: database) { rows = try job.execute(in: database) }
        } catch let error as DatabaseError where isInDoubt && StoreError(error).code == .unavailable {
            throw Self.unknown(error)
        }
        return rows
    }

    private func together(_ jobs: [Job], in database: Database) throws -> [Result<[[SQLRow]], any Error>] {
        var results: [Result<[[SQLRow]], any Error>] = []
        try committing(in: database) { results = try jobs.map { try attempt($0, in: database) } }
        return results
    }

    /// Runs `body` as one transaction.
    ///
    /// - Throws: ``StoreError`` with the code `outcomeUnknown` when the disk has failed under `COMMIT`. SQLite then has
    ///   taken the transaction back, but all of it may stand in the log until another one is written over it: after a
    ///   crash before that it is there. Not so where writing to the log has failed: its end is missing there.
    private func committing(in database: Database, _ body: () throws -> Void) throws {
        var isCommitting = false
        do {
            try database.inTransaction(.immediate) {
                try body()
                isCommitting = true
                return .commit
            }
        } catch let error as DatabaseError
            where isCommitting && error.resultCode == .SQLITE_IOERR && error.extendedResultCode != .SQLITE_IOERR_WRITE
        {
            throw Self.unknown(error)
        }
    }

    private static func unknown(_ error: DatabaseError) -> StoreError {
        StoreError(.outcomeUnknown, "the disk has failed under COMMIT: \(StoreError(error).detail)")
    }

    /// A fault of the job is its result. One that has taken the whole transaction back is thrown.
    private func attempt(_ job: Job, in database: Database) throws -> Result<[[SQLRow]], any Error> {
        do {
            var rows: [[SQLRow]] = []
            try database.inSavepoint {
                rows = try job.execute(in: database)
                return .commit
            }
            return .success(rows)
        } catch {
            guard database.isInsideTransaction else { throw error }
            return .failure(error)
        }
    }
}
