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

    /// Whether the next check is refused, whoever asks for it.
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

    init(threads: Int, limits: PasswordAdmission.Limits) {
        self.threads = threads
        admission = Locked(PasswordAdmission(limits))
        line = WorkLine()
    }

    deinit { line.end(threads: threads) }

    /// How busy they are.
    var load: PasswordLoad {
        let waiting = line.count
        return admission.withLock {
            PasswordLoad(inProgress: $0.total, waiting: waiting, limit: $0.limits.total)
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
    func run<Result: Sendable>(
        for caller: PasswordCaller, _ work: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        start()
        return try await withCheckedThrowingContinuation { continuation in
            line.append(for: caller) { continuation.resume(with: Swift.Result { try work() }) }
        }
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
                while let work = line.next() { work() }
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
    typealias Work = @Sendable () -> Void

    private let queue = Locked(PasswordQueue<Work>())
    /// Counts what waits, and each thread's sign to end.
    private let signs = DispatchSemaphore(value: 0)

    var count: Int { queue.withLock { $0.count } }

    func append(for caller: PasswordCaller, _ work: @escaping Work) {
        queue.withLock { $0.append(work, for: caller) }
        signs.signal()
    }

    /// Waits for the next work; `nil` at the end.
    func next() -> Work? {
        signs.wait()
        return queue.withLock { $0.next() }
    }

    /// Ends the threads, once nothing waits any more.
    func end(threads: Int) {
        for _ in 0..<threads { signs.signal() }
    }
}
