package import AssentCore
package import Foundation

/// Exclusion by name among the tasks of this process, first come, first served.
package final class NameQueue: Sendable {
    package init() {}

    /// The right to work on a name, to be given back to the queue.
    package struct Turn: Hashable, Sendable {
        let name: String
        let number: Int
    }

    private enum Place {
        case arrived
        case waiting(CheckedContinuation<Void, any Error>)
        case granted
        case refused(any Error)
    }

    private struct State {
        var places: [Int: Place] = [:]
        /// The first of each line is the holder.
        var lines: [String: [Int]] = [:]
        var lastNumber = 0
    }

    private let state = Locked(State())

    /// How many tasks hold or wait for `name`.
    func count(_ name: String) -> Int {
        state.withLock { $0.lines[name]?.count ?? 0 }
    }

    /// Waits for the turn on `name`.
    ///
    /// - Throws: `busy` at the deadline, `CancellationError` when the task is cancelled.
    package func acquire(_ name: String, deadline: Date, clock: any WallClock) async throws -> Turn {
        try Task.checkCancellation()
        let (turn, isFirst) = enter(name)
        if isFirst { return turn }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await clock.pause(until: deadline)
                self.refuse(turn, SecretStoreError.busy)
            }
            defer { group.cancelAll() }
            try await self.wait(turn)
        }
        if Task.isCancelled {
            release(turn)
            throw CancellationError()
        }
        return turn
    }

    /// Waits for the turn on `name`, then for the lock between processes, which `tryLock` takes, or returns `nil` when
    /// somebody else has it. Throws `busy` at the deadline, `CancellationError` when the task is cancelled.
    package func hold(
        _ name: String, deadline: Date, clock: any WallClock, tryLock: () throws -> (any FileLock)?
    ) async throws -> HeldLease {
        let turn = try await acquire(name, deadline: deadline, clock: clock)
        do {
            guard let lock = try await clock.poll(until: deadline, tryLock) else { throw SecretStoreError.busy }
            return HeldLease {
                lock.release()
                self.release(turn)
            }
        } catch {
            release(turn)
            throw error
        }
    }

    /// Ends a turn and lets the next one in.
    package func release(_ turn: Turn) {
        let next = state.withLock { state in
            state.places[turn.number] = nil
            return Self.leave(turn, &state)
        }
        next?.resume()
    }

    private func enter(_ name: String) -> (Turn, Bool) {
        state.withLock { state in
            state.lastNumber += 1
            let number = state.lastNumber
            state.lines[name, default: []].append(number)
            let isFirst = state.lines[name]?.count == 1
            state.places[number] = isFirst ? .granted : .arrived
            return (Turn(name: name, number: number), isFirst)
        }
    }

    private func wait(_ turn: Turn) async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome: Result<Void, any Error>? = state.withLock { state in
                    switch state.places[turn.number] {
                    case .granted:
                        return .success(())
                    case .refused(let error):
                        state.places[turn.number] = nil
                        return .failure(error)
                    default:
                        state.places[turn.number] = .waiting(continuation)
                        return nil
                    }
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            refuse(turn, CancellationError())
        }
    }

    private func refuse(_ turn: Turn, _ error: any Error) {
        let waiting: CheckedContinuation<Void, any Error>? = state.withLock { state in
            switch state.places[turn.number] {
            case .arrived:
                state.places[turn.number] = .refused(error)
                _ = Self.leave(turn, &state)
                return nil
            case .waiting(let continuation):
                state.places[turn.number] = nil
                _ = Self.leave(turn, &state)
                return continuation
            default:
                return nil
            }
        }
        waiting?.resume(throwing: error)
    }

    /// Takes `turn` out of its line; when it was first, grants the next one and returns whom to wake.
    private static func leave(_ turn: Turn, _ state: inout State) -> CheckedContinuation<Void, any Error>? {
        guard var line = state.lines[turn.name] else { return nil }
        let wasFirst = line.first == turn.number
        line.removeAll { $0 == turn.number }
        state.lines[turn.name] = line.isEmpty ? nil : line
        guard wasFirst, let next = line.first else { return nil }
        defer { state.places[next] = .granted }
        if case .waiting(let continuation) = state.places[next] { return continuation }
        return nil
    }
}

extension SecretStoreError {
    static let busy = SecretStoreError(
        .busy, "Another task or process held this until the deadline. Try again, or see which process hangs.")
}

extension WallClock {
    /// Waits until `deadline`, however far away: a day at a time, since a system's timers are bounded.
    ///
    /// What was waited for counts as well as the clock does: one that is set back does not put the deadline off.
    func pause(until deadline: Date) async throws {
        var left = deadline.timeIntervalSince(now)
        while left > 0 {
            let now = now
            guard now < deadline else { return }
            let part = min(left, 86_400)
            try await sleep(until: min(deadline, now.addingTimeInterval(part)))
            left -= part
        }
    }
}

/// A lease that runs an action once when it is released.
package final class HeldLease: SecretLease {
    private let action: Locked<(@Sendable () -> Void)?>

    package init(_ action: @escaping @Sendable () -> Void) {
        self.action = Locked(action)
    }

    package func release() async {
        let action = action.withLock { action in
            defer { action = nil }
            return action
        }
        action?()
    }
}
