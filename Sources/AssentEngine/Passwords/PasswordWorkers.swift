import AssentCore
import Dispatch
import Foundation

/// How busy the password checks are, for readiness and for tests.
package struct PasswordLoad: Sendable, Hashable {
    /// How many checks are in progress, waiting ones included.
    package let inProgress: Int

    /// How many of them wait for a thread.
    package let waiting: Int

    /// How many may be in progress.
    package let limit: Int

    /// Whether the next check is refused, no matter who asks for it.
    package var isFull: Bool { inProgress >= limit }
}

/// Threads of their own for deriving keys from passwords, at a lower priority than everything else.
///
/// A derivation takes some tenths of a second of a core. On Swift's own threads, or on those of Dispatch, which
/// shares its pool with them on Linux, it would hold up every other request.
final class PasswordWorkers: Sendable {
    private let line: WorkLine
    private let threads: Int
    private let admission: Locked<PasswordAdmission>
    private let hasStarted = Locked(false)

    init(threads: Int, admission: PasswordAdmission) {
        self.threads = threads
        self.admission = Locked(admission)
        line = WorkLine()
    }

    deinit { line.end(threads: threads) }

    /// How busy they are.
    var load: PasswordLoad {
        let waiting = line.count
        return admission.withLock {
            PasswordLoad(inProgress: $0.total, waiting: waiting, limit: $0.limit)
        }
    }

    /// Does what belongs to one check, unless too many are in progress: then it is refused at once, and nothing was
    /// done.
    ///
    /// - Throws: ``EngineError`` `busy`; and what `check` throws.
    func admitting<Result>(_ caller: PasswordCaller, _ check: () async throws -> Result) async throws -> Result {
        guard admission.withLock({ $0.enter(caller) }) else { throw EngineError(.busy) }
        defer { admission.withLock { $0.leave(caller) } }
        return try await check()
    }

    /// Runs `work` on one of the threads when it is the caller's turn. Only inside ``admitting(_:_:)``, which bounds
    /// how many wait.
    ///
    /// - Throws: ``EngineError`` `busy` after ``drain()``; and what `work` throws.
    func run<Result: Sendable>(
        for caller: PasswordCaller, _ work: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        start()
        return try await withCheckedThrowingContinuation { continuation in
            line.append(
                WorkLine.Work(
                    run: { continuation.resume(with: Swift.Result { try work() }) },
                    refuse: { continuation.resume(throwing: EngineError(.busy)) }),
                for: caller)
        }
    }

    /// Refuses what waits and what comes.
    func drain() {
        admission.withLock { $0.close() }
        line.drain()
    }

    /// Starts the threads with the first work: a server without passwords needs none.
    private func start() {
        let isFirst = hasStarted.withLock { hasStarted in
            defer { hasStarted = true }
            return !hasStarted
        }
        guard isFirst else { return }
        for _ in 0..<threads {
            let thread = Thread { [line] in
                Self.lowerPriority()
                while let work = line.next() { work.run() }
            }
            thread.name = "password check"
            thread.start()
        }
    }

    /// Beside a thread of the usual priority, one with this value gets about a tenth of a core.
    static let niceValue: Int32 = 10

    /// Lowers the priority of the thread that calls it.
    static func lowerPriority() {
        #if os(Linux)
        // Linux keeps a nice value for each thread; 0 is the calling one.
        _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, niceValue)
        #else
        Thread.current.qualityOfService = .utility
        #endif
    }
}

/// What waits for the threads. They hold it, and not their owner, whose end is theirs.
private final class WorkLine: Sendable {
    /// What is done when its turn comes, or else is told that it never will be.
    struct Work: Sendable {
        let run: @Sendable () -> Void
        let refuse: @Sendable () -> Void
    }

    private struct State {
        var queue = PasswordQueue<Work>()
        var isDrained = false
        var hasEnded = false
    }

    private let state = Locked(State())
    /// Counts what waits, and each thread's sign to end.
    private let signs = DispatchSemaphore(value: 0)

    var count: Int { state.withLock { $0.queue.count } }

    func append(_ work: Work, for caller: PasswordCaller) {
        let isRefused = state.withLock { state in
            if !state.isDrained { state.queue.append(work, for: caller) }
            return state.isDrained
        }
        if isRefused { work.refuse() } else { signs.signal() }
    }

    /// Waits for the next work; `nil` at the end.
    func next() -> Work? {
        while true {
            signs.wait()
            let (work, hasEnded) = state.withLock { ($0.queue.next(), $0.hasEnded) }
            // A sign without work may also be of work that was refused meanwhile.
            if work != nil || hasEnded { return work }
        }
    }

    /// Refuses what waits and what comes. The threads then wait for nothing, until ``end(threads:)``.
    func drain() {
        let refused = state.withLock { state in
            state.isDrained = true
            var refused: [Work] = []
            while let work = state.queue.next() { refused.append(work) }
            return refused
        }
        for work in refused { work.refuse() }
    }

    /// Ends the threads, once nothing waits any more.
    func end(threads: Int) {
        state.withLock { $0.hasEnded = true }
        for _ in 0..<threads { signs.signal() }
    }
}
