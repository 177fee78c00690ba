#if PostgreSQL && os(Linux)
import AssentCore
import Foundation

/// Finds out that a server's commits are where they have to be, by a commit of its own: PostgreSQL's log is one
/// sequence, so a server that confirms this one has everything before it.
///
/// At most one of them waits at a time for each run of a server, however many ask, over a connection of its own. It may
/// wait as long as a standby is away: each one that is given up keeps a place of the server, until the standby is back.
final class PostgreSQLFence: Sendable {
    /// What is asked of one run of a server.
    private struct Run {
        /// Tells it from an earlier one of the same server that was given up.
        let id: UInt64
        var host: PostgreSQLConfiguration.Host
        var lastRequest: UInt64 = 0
        /// The latest request that a commit has followed.
        var passed: UInt64 = 0
        /// The request that a commit has to follow before what the server shows is confirmed: the first, or one after
        /// something has become visible that no standby may have.
        var required: UInt64 = 1
        /// Since when somebody waits.
        var waitsSince: ContinuousClock.Instant?
        var isWorking = false

        func isOverdue(after limit: Duration) -> Bool {
            waitsSince.map { ContinuousClock.now - $0 > limit } ?? false
        }

        mutating func request() -> UInt64 {
            lastRequest += 1
            if waitsSince == nil { waitsSince = .now }
            return lastRequest
        }

        /// A commit has followed a request. Those that came meanwhile wait since now.
        mutating func pass(_ request: UInt64) {
            passed = max(passed, request)
            waitsSince = passed == lastRequest ? nil : .now
        }

        /// A commit that has begun by now is not enough any more.
        mutating func distrust() {
            lastRequest += 1
            required = lastRequest
        }
    }

    private struct State {
        var runs: [ServerIncarnation: Run] = [:]
        var lastRun: UInt64 = 0
        var isEnding = false

        /// The run of that server, which begins unless somebody has asked about it already.
        mutating func run(_ incarnation: ServerIncarnation, at host: PostgreSQLConfiguration.Host) -> Run {
            if var run = runs[incarnation] {
                run.host = host
                return run
            }
            lastRun += 1
            return Run(id: lastRun, host: host)
        }
    }

    private static let isOver = StoreError(
        .unavailable, "The database server was started again, or another server is used now. Nothing has changed.")

    private let configuration: PostgreSQLConfiguration
    /// For how long a commit may be outstanding before nothing more is begun.
    private let patience: Duration
    private let state = Locked(State())

    init(_ configuration: PostgreSQLConfiguration) {
        self.configuration = configuration
        patience = .milliseconds(configuration.overdueLimit)
    }

    /// Whether a server's commits have not been confirmed for so long that others should not be tried.
    var isOverdue: Bool { state.withLock { state in state.runs.values.contains { $0.isOverdue(after: patience) } } }

    /// Whether that is so of this run of a server.
    func isOverdue(_ incarnation: ServerIncarnation) -> Bool {
        state.withLock { $0.runs[incarnation]?.isOverdue(after: patience) ?? false }
    }

    /// Whether this run of a server has confirmed a commit since it has last shown what no standby may have.
    func hasPassed(_ incarnation: ServerIncarnation) -> Bool {
        state.withLock { state in state.runs[incarnation].map { $0.passed >= $0.required } ?? false }
    }

    /// This run of a server shows what no standby may have: it has to confirm a commit anew.
    func distrust(_ incarnation: ServerIncarnation, at host: PostgreSQLConfiguration.Host) {
        ask(incarnation, at: host, isDistrusted: true)
    }

    /// The same of one that may not be used any more: for that alone no commit is tried.
    func distrust(_ incarnation: ServerIncarnation) {
        state.withLock { $0.runs[incarnation]?.distrust() }
    }

    /// Nobody waits for other servers any more.
    func settle(on incarnation: ServerIncarnation) {
        state.withLock { state in state.runs = state.runs.filter { $0.key == incarnation } }
    }

    /// Lets a commit be tried, and does not wait for it.
    func request(_ incarnation: ServerIncarnation, at host: PostgreSQLConfiguration.Host) {
        ask(incarnation, at: host, isDistrusted: false)
    }

    @discardableResult
    private func ask(
        _ incarnation: ServerIncarnation, at host: PostgreSQLConfiguration.Host, isDistrusted: Bool
    ) -> (run: UInt64, request: UInt64) {
        let (id, request, begins) = state.withLock { state in
            var run = state.run(incarnation, at: host)
            if isDistrusted { run.distrust() }
            let request = run.request()
            let begins = !run.isWorking && !state.isEnding
            if begins { run.isWorking = true }
            state.runs[incarnation] = run
            return (run.id, request, begins)
        }
        if begins { Thread.detachNewThread { self.work(incarnation, id) } }
        return (id, request)
    }

    /// Blocks the thread until a commit that began after this call is confirmed by that run of the server, or the time
    /// is over. Returns whether it is confirmed.
    ///
    /// - Throws: ``StoreError``: the server was started again, or another one is used now, so that nothing is to be
    ///   expected of that run any more. What is to be confirmed has to be looked for anew.
    func pass(
        _ incarnation: ServerIncarnation, at host: PostgreSQLConfiguration.Host, until end: ContinuousClock.Instant
    ) throws(StoreError) -> Bool {
        let (id, request) = ask(incarnation, at: host, isDistrusted: false)
        while true {
            let (run, isEnding) = state.withLock { ($0.runs[incarnation], $0.isEnding) }
            guard let run, run.id == id else { throw Self.isOver }
            if run.passed >= request { return true }
            guard ContinuousClock.now < end, !isEnding else { return false }
            _ = poll(nil, 0, 5)
        }
    }

    /// Gives up what is waited for.
    func end() { state.withLock { $0.isEnding = true } }

    // MARK: - On the thread of a run

    private func work(_ incarnation: ServerIncarnation, _ id: UInt64) {
        var session: PostgreSQLSession?
        while let (request, host) = next(incarnation, id) {
            do {
                let open = try session ?? open(host)
                session = open
                guard open.incarnation == incarnation else {
                    if giveUp(incarnation, id, at: host) { return }
                    session = nil
                    continue
                }
                try PostgreSQLLook(session: open)
                    .fence(requiresStandby: configuration.requiresStandby) {
                        state.withLock { $0.runs[incarnation]?.id == id && !$0.isEnding }
                    }
                change(incarnation, id) { $0.pass(request) }
            } catch {
                // What has cut its wait short may have cut others short.
                if session != nil, let loss = error as? PostgreSQLLoss, !loss.isSilence {
                    change(incarnation, id) { $0.distrust() }
                }
                session = nil
                _ = poll(nil, 0, 200)
            }
        }
    }

    /// What is to be confirmed next; `nil` when nobody waits.
    private func next(_ incarnation: ServerIncarnation, _ id: UInt64) -> (UInt64, PostgreSQLConfiguration.Host)? {
        state.withLock { state in
            guard let run = state.runs[incarnation], run.id == id else { return nil }
            guard !state.isEnding, run.passed < run.lastRequest else {
                state.runs[incarnation]?.isWorking = false
                return nil
            }
            return (run.lastRequest, run.host)
        }
    }

    private func change(_ incarnation: ServerIncarnation, _ id: UInt64, _ change: (inout Run) -> Void) {
        state.withLock { state in
            guard var run = state.runs[incarnation], run.id == id else { return }
            change(&run)
            state.runs[incarnation] = run
        }
    }

    /// At that host is another server, or another run of it: those who wait have to ask that one. Returns false when
    /// they have asked at yet another host meanwhile.
    private func giveUp(
        _ incarnation: ServerIncarnation, _ id: UInt64, at host: PostgreSQLConfiguration.Host
    ) -> Bool {
        state.withLock { state in
            guard let run = state.runs[incarnation], run.id == id else { return true }
            guard run.host == host else { return false }
            state.runs[incarnation] = nil
            return true
        }
    }

    private func open(_ host: PostgreSQLConfiguration.Host) throws -> PostgreSQLSession {
        let session = try PostgreSQLOpening(configuration: configuration)
            .open(host, bell: PostgreSQLBell())
        try PostgreSQLOpening.demandCommits(session)
        session.incarnation = try PostgreSQLLook(session: session).sighting().incarnation
        return session
    }
}
#endif
