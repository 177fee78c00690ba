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

    private struct Contents {
        var state: PostgreSQLPoolState
        var calls: [UInt64: Call] = [:]
        var lastCall: UInt64 = 0
        var workers: [UInt64: PostgreSQLWorker] = [:]
        var closers: [CheckedContinuation<Void, Never>] = []
    }

    private let configuration: PostgreSQLConfiguration
    private let contents: Locked<Contents>

    init(_ configuration: PostgreSQLConfiguration) {
        self.configuration = configuration
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
                        answer.resume(throwing: CancellationError())
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

    /// Ends all connections, and waits for nothing.
    func abandon() {
        change { $0.state.end() }
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

    func finished(_ connection: UInt64, _ call: UInt64, _ result: Result<[[SQLRow]], any Error>) {
        change { contents in
            contents.calls.removeValue(forKey: call)?.answer.resume(with: result)
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
            contents.calls.removeValue(forKey: call)?.answer.resume(throwing: error)
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
        contents.withLock { contents in
            var actions = body(&contents)
            while !actions.isEmpty { actions = actions.flatMap { perform($0, &contents) } }
            guard contents.state.isEnding, contents.state.isEmpty else { return }
            for closer in contents.closers { closer.resume() }
            contents.closers = []
        }
    }

    /// Returns what follows from an action that could not be performed.
    private func perform(
        _ action: PostgreSQLPoolState.Action, _ contents: inout Contents
    ) -> [PostgreSQLPoolState.Action] {
        switch action {
        case .open(let connection):
            do {
                let worker = try PostgreSQLWorker(id: connection, configuration: configuration)
                contents.workers[connection] = worker
                Thread.detachNewThread { worker.serve(self) }
            } catch {
                let reason = StoreError(.unavailable, "\(error)")
                return contents.state.openFailed(connection, reason, now: .now, leavingOut: 0)
            }
        case .run(let call, let connection):
            guard let work = contents.calls[call]?.work else { return contents.state.finished(connection) }
            contents.workers[connection]?.run(PostgreSQLWorker.Job(call: call, work: work))
        case .interrupt(let call, let connection): contents.workers[connection]?.interrupt(call)
        case .end(let connection): contents.workers[connection]?.end()
        case .limitWait(let call):
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(configuration.waitLimit)) {
                [weak self] in
                self?.change { $0.state.waitedTooLong(call) }
            }
        case .refuse(let call, let refusal):
            contents.calls.removeValue(forKey: call)?.answer.resume(throwing: error(refusal))
        }
        return []
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
