#if PostgreSQL && os(Linux)
import AssentCore
import Foundation

/// The connections to one database, each with a thread of its own, and the calls that wait for one. What happens is
/// decided by ``PostgreSQLPoolState``.
final class PostgreSQLPool: Sendable {
    typealias Answer = CheckedContinuation<[[SQLRow]], any Error>

    private struct Call {
        let work: PostgreSQLWork
        let answer: Answer
        /// Whether a connection was lost under it once.
        var isSecondAttempt = false
    }

    /// What is done when the lock is free again: the task that it wakes wants the lock.
    private enum Wake {
        case answer(Answer, Result<[[SQLRow]], any Error>)
        case run(PostgreSQLWorker, PostgreSQLWorker.Job)
        case interrupt(PostgreSQLWorker, UInt64)
        case end(PostgreSQLWorker)
        case closer(CheckedContinuation<Void, Never>)

        func perform() {
            switch self {
            case .answer(let answer, let result): answer.resume(with: result)
            case .run(let worker, let job): worker.run(job)
            case .interrupt(let worker, let call): worker.interrupt(call)
            case .end(let worker): worker.end()
            case .closer(let closer): closer.resume()
            }
        }
    }

    private struct Contents {
        var state: PostgreSQLPoolState
        var calls: [UInt64: Call] = [:]
        var lastCall: UInt64 = 0
        var workers: [UInt64: PostgreSQLWorker] = [:]
        var waits = PostgreSQLWaits()
        var closers: [CheckedContinuation<Void, Never>] = []
        /// Whether who closes it does not wait.
        var isAbandoned = false
        var wakes: [Wake] = []

        mutating func answer(_ call: UInt64, _ result: Result<[[SQLRow]], any Error>) {
            waits.forget(call)
            if let answer = calls.removeValue(forKey: call)?.answer { wakes.append(.answer(answer, result)) }
        }
    }

    private let configuration: PostgreSQLConfiguration
    private let keeper: PostgreSQLKeeper
    private let contents: Locked<Contents>

    init(_ configuration: PostgreSQLConfiguration, keeper: PostgreSQLKeeper) {
        self.configuration = configuration
        self.keeper = keeper
        let limits = PostgreSQLPoolState.Limits(
            connections: max(1, configuration.connections), waiting: configuration.waitingCalls)
        contents = Locked(Contents(state: PostgreSQLPoolState(limits: limits)))
    }

    // MARK: - Calls

    /// Does a call's work.
    ///
    /// - Throws: ``StoreError``, or `CancellationError`: then nothing has happened.
    func run(_ work: PostgreSQLWork) async throws -> [[SQLRow]] {
        let call = contents.withLock { contents in
            contents.lastCall += 1
            return contents.lastCall
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (answer: Answer) in
                change { contents in
                    // Cancelled before it could be found by the handler below.
                    if Task.isCancelled {
                        contents.wakes.append(.answer(answer, .failure(CancellationError())))
                        return []
                    }
                    contents.calls[call] = Call(work: work, answer: answer)
                    return contents.state.ask(call, now: .now)
                }
            }
        } onCancel: {
            change { $0.state.cancel(call) }
        }
    }

    /// Ends all connections, those in use after their calls, and returns when they have ended.
    func close() async {
        await withCheckedContinuation { continuation in
            change { contents in
                contents.closers.append(continuation)
                return contents.state.end()
            }
        }
    }

    /// Ends all connections, those in use after their calls. Nobody waits for that: ``close()`` returns at once.
    func abandon() {
        change { contents in
            contents.isAbandoned = true
            return contents.state.end()
        }
    }

    // MARK: - What workers tell

    func opened(_ connection: UInt64) {
        change { $0.state.opened(connection, now: .now) }
    }

    func openFailed(_ connection: UInt64, _ error: StoreError) {
        let share = Double.random(in: 0...1)
        change { contents in
            contents.workers[connection] = nil
            return contents.state.openFailed(connection, error, now: .now, leavingOut: share)
        }
    }

    /// Called on the connection's own thread, which then looks for its next job.
    func finished(_ connection: UInt64, _ call: UInt64, _ result: Result<[[SQLRow]], any Error>) {
        change { contents in
            contents.answer(call, result)
            return contents.state.finished(connection)
        }
    }

    /// The connection was lost under a call of which nothing has happened: another one may serve it, once.
    func lost(_ connection: UInt64, _ call: UInt64, _ error: StoreError) {
        change { contents in
            contents.workers[connection] = nil
            if contents.calls[call]?.isSecondAttempt == false {
                contents.calls[call]?.isSecondAttempt = true
                return contents.state.gone(connection, now: .now)
            }
            contents.answer(call, .failure(error))
            return contents.state.gone(connection, answered: call, now: .now)
        }
    }

    func gone(_ connection: UInt64) {
        change { contents in
            contents.workers[connection] = nil
            return contents.state.gone(connection, now: .now)
        }
    }

    // MARK: - Parts

    private func change(_ body: (inout Contents) -> [PostgreSQLPoolState.Action]) {
        let wakes = contents.withLock { contents in
            var actions = body(&contents)
            while !actions.isEmpty { actions = actions.flatMap { perform($0, &contents) } }
            if contents.state.isEnding, contents.state.isEmpty || contents.isAbandoned {
                contents.wakes += contents.closers.map(Wake.closer)
                contents.closers = []
            }
            defer { contents.wakes = [] }
            return contents.wakes
        }
        for wake in wakes { wake.perform() }
    }

    /// Returns what follows from an action that could not be performed.
    private func perform(
        _ action: PostgreSQLPoolState.Action, _ contents: inout Contents
    ) -> [PostgreSQLPoolState.Action] {
        switch action {
        case .open(let connection):
            do {
                let worker = try PostgreSQLWorker(id: connection, keeper: keeper)
                contents.workers[connection] = worker
                Thread.detachNewThread { worker.serve(self) }
            } catch {
                let reason = StoreError(.unavailable, "\(error)")
                return contents.state.openFailed(connection, reason, now: .now, leavingOut: 0)
            }
        case .run(let call, let connection):
            guard let work = contents.calls[call]?.work else { return contents.state.finished(connection) }
            let job = PostgreSQLWorker.Job(call: call, work: work)
            contents.wakes += contents.workers[connection].map { [.run($0, job)] } ?? []
        case .interrupt(let call, let connection):
            contents.wakes += contents.workers[connection].map { [.interrupt($0, call)] } ?? []
        case .end(let connection): contents.wakes += contents.workers[connection].map { [.end($0)] } ?? []
        case .limitWait(let call):
            let limit = Duration.milliseconds(configuration.waitLimit)
            if let end = contents.waits.begin(call, now: .now, limit: limit) { ring(at: end) }
        case .refuse(let call, let refusal):
            contents.answer(call, .failure(error(refusal)))
        }
        return []
    }

    /// Looks at that time who has waited too long.
    private func ring(at time: ContinuousClock.Instant) {
        let rest = max(0, (time - ContinuousClock.now) / .milliseconds(1))
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(Int(rest.rounded(.up)))) { [weak self] in
            guard let self else { return }
            change { contents in
                let (over, next) = contents.waits.ring(now: .now)
                if let next { self.ring(at: next) }
                return over.flatMap { contents.state.waitedTooLong($0) }
            }
        }
    }

    private func error(_ refusal: PostgreSQLPoolState.Refusal) -> any Error {
        switch refusal {
        case .tooMany(let count): StoreError(.unavailable, "\(count) calls already wait for a connection")
        case .waitedTooLong: StoreError(.unavailable, "no connection became free in \(configuration.waitLimit) ms")
        case .cancelled: CancellationError()
        case .ended: StoreError(.unavailable, "the database is closed")
        case .unreachable(let error): error
        }
    }
}
#endif
