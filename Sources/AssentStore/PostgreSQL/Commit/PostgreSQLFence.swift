#if PostgreSQL && os(Linux)
import AssentCore
import Foundation

/// Finds out that a server's commits are where they have to be, by a commit of its own: PostgreSQL's log is one
/// sequence, so a server that confirms this one has everything before it.
///
/// At most one of them waits at a time, however many ask, over a connection of its own. It may wait as long as a
/// standby is away: each one that is given up keeps a place of the server, until the standby is back.
final class PostgreSQLFence: Sendable {
    private struct State {
        var lastRequest: UInt64 = 0
        /// The latest request that a commit has followed, on the server that it was meant for.
        var passed: [ServerIncarnation: UInt64] = [:]
        /// The request that a commit has to follow before what a server shows is confirmed: the first, or one after
        /// something has become visible that no standby may have.
        var required: [ServerIncarnation: UInt64] = [:]
        var wanted: (incarnation: ServerIncarnation, host: PostgreSQLConfiguration.Host)?
        /// Since when somebody waits.
        var waitsSince: ContinuousClock.Instant?
        var isRunning = false
        var isEnding = false

        var isOutstanding: Bool { wanted.map { passed[$0.incarnation, default: 0] < lastRequest } ?? false }

        /// A commit that has begun by now is not enough any more.
        mutating func distrust(_ incarnation: ServerIncarnation) {
            lastRequest += 1
            required[incarnation] = lastRequest
        }
    }

    /// For how long a commit may be outstanding before nothing more is begun.
    private static let patience: Duration = .seconds(1)

    private let configuration: PostgreSQLConfiguration
    private let state = Locked(State())

    init(_ configuration: PostgreSQLConfiguration) { self.configuration = configuration }

    /// Whether a server's commits have not been confirmed for so long that others should not be tried.
    var isOverdue: Bool {
        state.withLock { $0.waitsSince.map { ContinuousClock.now - $0 > Self.patience } ?? false }
    }

    /// Whether that is so of this run of a server.
    func isOverdue(_ incarnation: ServerIncarnation) -> Bool {
        isOverdue && state.withLock { $0.wanted?.incarnation == incarnation }
    }

    /// Whether this run of a server has confirmed a commit since it has last shown what no standby may have.
    func hasPassed(_ incarnation: ServerIncarnation) -> Bool {
        state.withLock { $0.passed[incarnation, default: 0] >= $0.required[incarnation, default: 1] }
    }

    /// This run of a server shows what no standby may have: it has to confirm a commit anew.
    func distrust(_ incarnation: ServerIncarnation, at host: PostgreSQLConfiguration.Host) {
        state.withLock { $0.distrust(incarnation) }
        request(incarnation, at: host)
    }

    /// Nobody waits for other servers any more.
    func settle(on incarnation: ServerIncarnation) {
        state.withLock { state in
            guard let wanted = state.wanted, wanted.incarnation != incarnation else { return }
            (state.wanted, state.waitsSince) = (nil, nil)
        }
    }

    /// Lets a commit be tried, and does not wait for it.
    @discardableResult
    func request(_ incarnation: ServerIncarnation, at host: PostgreSQLConfiguration.Host) -> UInt64 {
        let (request, begins) = state.withLock { state in
            state.lastRequest += 1
            state.wanted = (incarnation, host)
            if state.waitsSince == nil { state.waitsSince = .now }
            let begins = !state.isRunning && !state.isEnding
            if begins { state.isRunning = true }
            return (state.lastRequest, begins)
        }
        if begins { Thread.detachNewThread { self.work() } }
        return request
    }

    /// Blocks the thread until a commit that began after this call is confirmed by that run of the server, or the time
    /// is over. Returns whether it is confirmed.
    func pass(
        _ incarnation: ServerIncarnation, at host: PostgreSQLConfiguration.Host, until end: ContinuousClock.Instant
    ) -> Bool {
        let request = request(incarnation, at: host)
        while true {
            if state.withLock({ $0.passed[incarnation, default: 0] >= request }) { return true }
            guard ContinuousClock.now < end, !state.withLock({ $0.isEnding }) else { return false }
            _ = poll(nil, 0, 5)
        }
    }

    /// Gives up what is waited for.
    func end() { state.withLock { $0.isEnding = true } }

    // MARK: - On its thread

    private func work() {
        var session: PostgreSQLSession?
        while let (request, incarnation, host) = next() {
            do {
                let open = try session ?? open(host)
                session = open
                let look = PostgreSQLLook(session: open)
                guard open.incarnation == incarnation else { throw StoreError(.unavailable, "It is another server.") }
                try look.fence(requiresStandby: configuration.requiresStandby) {
                    state.withLock { $0.wanted?.incarnation == incarnation && !$0.isEnding }
                }
                state.withLock { state in
                    state.passed[incarnation] = max(state.passed[incarnation, default: 0], request)
                    if !state.isOutstanding { state.waitsSince = nil }
                }
            } catch {
                // What has cut its wait short may have cut others short.
                if session != nil, let loss = error as? PostgreSQLLoss, !loss.isSilence {
                    state.withLock { $0.distrust(incarnation) }
                }
                session = nil
                _ = poll(nil, 0, 200)
            }
        }
    }

    /// What is to be confirmed next; `nil` when nobody waits.
    private func next() -> (UInt64, ServerIncarnation, PostgreSQLConfiguration.Host)? {
        state.withLock { state in
            guard !state.isEnding, state.isOutstanding, let wanted = state.wanted else {
                state.isRunning = false
                return nil
            }
            return (state.lastRequest, wanted.incarnation, wanted.host)
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
