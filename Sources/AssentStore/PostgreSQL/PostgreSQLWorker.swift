#if PostgreSQL && os(Linux)
import AssentCore
import Foundation

/// A thread with one connection, which does one call's work after the other.
final class PostgreSQLWorker: Sendable {
    /// A call's work.
    struct Job: Sendable {
        let call: UInt64
        let work: PostgreSQLWork
    }

    /// What the thread is told. The pool tells it outside of its lock, so in any order: that a call is cancelled may be
    /// heard before that it begins, or when another one has begun.
    struct Inbox {
        private var job: Job?
        var isEnding = false
        private var cancelled: Set<UInt64> = []
        /// Whether the thread has found no job, and waits for the bell.
        private var isResting = false

        /// Gives the thread a job.
        ///
        /// - Returns: whether it has to be woken. Where it is awake it looks for a job before it rests; the bell would
        ///   then only wake it while it waits for the server.
        mutating func put(_ job: Job) -> Bool {
            self.job = job
            defer { isResting = false }
            return isResting
        }

        /// Nobody waits for this call any more.
        mutating func cancel(_ call: UInt64) { cancelled.insert(call) }

        func isCancelled(_ call: UInt64) -> Bool { cancelled.contains(call) }

        /// The job that begins now. What was heard of calls before it is forgotten. Without one the thread rests.
        mutating func take() -> Job? {
            isResting = job == nil
            guard let taken = job else { return nil }
            job = nil
            cancelled.formIntersection([taken.call])
            return taken
        }
    }

    /// How many times a transaction is begun that conflicts with others take back.
    private static let mostAttempts = 8

    let id: UInt64
    private let keeper: PostgreSQLKeeper
    private let bell: PostgreSQLBell
    private let inbox = Locked(Inbox())

    init(id: UInt64, keeper: PostgreSQLKeeper) throws {
        self.id = id
        self.keeper = keeper
        bell = try PostgreSQLBell()
    }

    // MARK: - From any thread

    /// Gives the thread a job.
    func run(_ job: Job) {
        if inbox.withLock({ $0.put(job) }) { bell.ring() }
    }

    func interrupt(_ call: UInt64) {
        inbox.withLock { $0.cancel(call) }
        bell.ring()
    }

    func end() {
        inbox.withLock { $0.isEnding = true }
        bell.ring()
    }

    // MARK: - On the thread

    /// What the thread does: it opens a connection, serves the pool, and ends with the connection.
    func serve(_ pool: PostgreSQLPool) {
        var session: PostgreSQLSession?
        do {
            session = try keeper.opening.open(bell: bell)
        } catch {
            pool.openFailed(id, error)
            return
        }
        pool.opened(id)
        while let open = session {
            let (job, isEnding) = inbox.withLock { ($0.take(), $0.isEnding) }
            if let job {
                session = serve(job, over: open, for: pool)
            } else if isEnding || !open.waitForBell() {
                session = nil
            }
        }
        pool.gone(id)
    }

    /// Returns the connection for the next call; `nil` if there is none. The pool then has been told about the call.
    private func serve(_ job: Job, over open: PostgreSQLSession, for pool: PostgreSQLPool) -> PostgreSQLSession? {
        let isCancelled = { [inbox] in inbox.withLock { $0.isCancelled(job.call) } }
        var session = open
        guard keeper.isCurrent(session) else {
            pool.lost(
                id, job.call, StoreError(.unavailable, "The database server that was used has to be looked at anew."))
            return nil
        }
        for attempt in 1...Self.mostAttempts {
            do {
                if isCancelled() { throw CancellationError() }
                let rows = try PostgreSQLTransaction(
                    session: session, work: job.work, configuration: keeper.configuration, isCancelled: isCancelled,
                    isCurrent: { [keeper] in keeper.isUsed(session.incarnation) }
                ).run()
                if job.work.isWriting { keeper.committed() }
                pool.finished(id, job.call, .success(rows))
                return session
            } catch let passing as PostgreSQLTransaction.Passing {
                if passing.fault.isStale { session.forgetPrepared() }
                if attempt < Self.mostAttempts {
                    // So that two do not meet again and again.
                    if !passing.fault.isStale { session.pause(milliseconds: .random(in: 0...5 * Int32(attempt))) }
                    continue
                }
                pool.finished(id, job.call, .failure(passing.fault.error()))
                return session
            } catch let lost as PostgreSQLTransaction.LostCommit {
                keeper.doubt(session, isVisible: !lost.isSilence)
                let (outcome, next) = PostgreSQLOutcome(
                    lost: lost, configuration: keeper.configuration, keeper: keeper, bell: bell
                ).find()
                switch outcome {
                case .committed:
                    keeper.committed()
                    pool.finished(id, job.call, .success(lost.rows))
                case .takenBack:
                    if let next, attempt < Self.mostAttempts {
                        session = next
                        continue
                    }
                    pool.finished(id, job.call, .failure(PostgreSQLOutcome.takenBack))
                case .unknown: pool.finished(id, job.call, .failure(PostgreSQLOutcome.unknown))
                }
                return next
            } catch let loss as PostgreSQLLoss {
                pool.lost(id, job.call, loss.error)
                return nil
            } catch {
                pool.finished(id, job.call, .failure(error))
                return session
            }
        }
        return session
    }
}
#endif
