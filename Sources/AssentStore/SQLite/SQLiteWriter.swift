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
    private let state = Locked(State())

    /// The writer of a pool.
    init(_ pool: DatabasePool) { self.pool = pool }

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
        if jobs.count > 1, let results = try? together(jobs, in: database) {
            for (job, result) in zip(jobs, results) { job.answer.resume(with: result) }
            return
        }
        // One alone; or nothing of several was committed, and the fault of one must not be the others'.
        for job in jobs { job.answer.resume(with: Result { try alone(job, in: database) }) }
    }

    private func alone(_ job: Job, in database: Database) throws -> [[SQLRow]] {
        var rows: [[SQLRow]] = []
        try database.inTransaction(.immediate) {
            rows = try job.execute(in: database)
            return .commit
        }
        return rows
    }

    private func together(_ jobs: [Job], in database: Database) throws -> [Result<[[SQLRow]], any Error>] {
        var results: [Result<[[SQLRow]], any Error>] = []
        try database.inTransaction(.immediate) {
            results = try jobs.map { try attempt($0, in: database) }
            return .commit
        }
        return results
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
