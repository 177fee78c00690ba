#if PostgreSQL && os(Linux)
/// Which connection serves which call: the pool as a state machine, without connections, threads, locks or a clock.
///
/// Connections and calls are numbers here. Each method takes an event and returns what must be done about it; the
/// ``PostgreSQLPool`` does that. Every event is allowed in every state: one that makes no sense changes nothing.
struct PostgreSQLPoolState: Sendable {
    struct Limits: Sendable {
        /// Connections at one time, in whatever phase.
        let connections: Int
        /// Calls that may wait.
        let waiting: Int
    }

    enum Phase: Sendable, Equatable {
        case opening
        case idle
        case busy(call: UInt64)
        /// It was told to end.
        case ending
    }

    enum Action: Sendable, Equatable {
        /// Open this connection.
        case open(UInt64)
        /// Give the call to the connection.
        case run(call: UInt64, connection: UInt64)
        /// Tell the connection that nobody waits for this call any more.
        case interrupt(call: UInt64, connection: UInt64)
        /// End the connection, which serves nobody.
        case end(UInt64)
        /// See to it that the call does not wait too long.
        case limitWait(call: UInt64)
        /// The call gets no connection.
        case refuse(call: UInt64, Refusal)
    }

    enum Refusal: Sendable, Equatable {
        /// So many wait already.
        case tooMany(Int)
        case waitedTooLong
        case cancelled
        /// The database is closed.
        case ended
        /// There is no connection, and this is why there is no new one.
        case unreachable(StoreError)
    }

    let limits: Limits
    private var lastConnection: UInt64 = 0
    private(set) var members: [UInt64: Phase] = [:]
    /// The last one was used most recently.
    private(set) var idle: [UInt64] = []
    /// The first one has waited longest.
    private(set) var waiting: [UInt64] = []
    private(set) var isEnding = false
    /// How many attempts to connect have failed since the last that did not.
    private(set) var failures = 0
    private var latestFailure: StoreError?
    private var pauseEnds: ContinuousClock.Instant?

    init(limits: Limits) { self.limits = limits }

    /// Whether all connections have ended, except those that are being opened: closing the pool need not wait
    /// for these.
    var isEmpty: Bool { members.values.allSatisfy { $0 == .opening } }

    // MARK: - Calls

    /// A call wants a connection.
    mutating func ask(_ call: UInt64, now: ContinuousClock.Instant) -> [Action] {
        guard !isEnding else { return [.refuse(call: call, .ended)] }
        if waiting.isEmpty, let connection = idle.popLast() { return [give(call, to: connection)] }
        guard waiting.count < limits.waiting else { return [.refuse(call: call, .tooMany(waiting.count))] }
        waiting.append(call)
        let actions = grow(now)
        return waiting.contains(call) ? [.limitWait(call: call)] + actions : actions
    }

    /// The task of a call was cancelled.
    mutating func cancel(_ call: UInt64) -> [Action] {
        if remove(call) { return [.refuse(call: call, .cancelled)] }
        guard let connection = members.first(where: { $0.value == .busy(call: call) })?.key else { return [] }
        return [.interrupt(call: call, connection: connection)]
    }

    /// The time for which a call may wait is over.
    mutating func waitedTooLong(_ call: UInt64) -> [Action] {
        remove(call) ? [.refuse(call: call, .waitedTooLong)] : []
    }

    // MARK: - Connections

    /// A connection that was to be opened is there.
    mutating func opened(_ connection: UInt64, now: ContinuousClock.Instant) -> [Action] {
        guard members[connection] == .opening else { return members[connection] == nil ? [.end(connection)] : [] }
        failures = 0
        latestFailure = nil
        pauseEnds = nil
        return serve(connection) + grow(now)
    }

    /// A connection could not be opened. The pause before the next attempt grows from a tenth of a second to two.
    /// `share`, from 0 to 1 by chance, says how much is left out, at most half of it, so that not all nodes come back
    /// at the same moment.
    mutating func openFailed(
        _ connection: UInt64, _ error: StoreError, now: ContinuousClock.Instant, leavingOut share: Double
    ) -> [Action] {
        guard members[connection] == .opening else { return [] }
        members[connection] = nil
        failures += 1
        latestFailure = error
        let pause = min(2.0, 0.1 * Double(1 << min(failures - 1, 5)))
        pauseEnds = now + .seconds(pause * (1 - share / 2))
        return grow(now)
    }

    /// The call of a connection has its answer.
    mutating func finished(_ connection: UInt64) -> [Action] {
        guard case .busy = members[connection] else { return [] }
        return serve(connection)
    }

    /// A connection is gone. A call that it was given, and that it has not `answered`, is given to another one: nothing
    /// of it has happened. The connection may have ended before it heard of the call.
    mutating func gone(
        _ connection: UInt64, answered: UInt64? = nil, now: ContinuousClock.Instant
    ) -> [Action] {
        guard let phase = members.removeValue(forKey: connection) else { return [] }
        idle.removeAll { $0 == connection }
        guard case .busy(let call) = phase, call != answered else { return grow(now) }
        if isEnding { return [.refuse(call: call, .ended)] }
        waiting.insert(call, at: 0)
        // What has ended this one may have ended them as well, or leads them to a standby.
        let others = idle
        for other in others { members[other] = .ending }
        idle = []
        let actions = others.map { Action.end($0) } + grow(now)
        return waiting.contains(call) ? [.limitWait(call: call)] + actions : actions
    }

    // MARK: - The end

    /// Nothing is served any more; connections in use end after their calls.
    mutating func end() -> [Action] {
        isEnding = true
        let actions = waiting.map { Action.refuse(call: $0, .ended) } + idle.map { Action.end($0) }
        for connection in idle { members[connection] = .ending }
        waiting = []
        idle = []
        return actions
    }

    // MARK: - Parts

    private mutating func give(_ call: UInt64, to connection: UInt64) -> Action {
        members[connection] = .busy(call: call)
        return .run(call: call, connection: connection)
    }

    private mutating func serve(_ connection: UInt64) -> [Action] {
        if isEnding {
            members[connection] = .ending
            return [.end(connection)]
        }
        if !waiting.isEmpty { return [give(waiting.removeFirst(), to: connection)] }
        members[connection] = .idle
        idle.append(connection)
        return []
    }

    private mutating func remove(_ call: UInt64) -> Bool {
        guard let index = waiting.firstIndex(of: call) else { return false }
        waiting.remove(at: index)
        return true
    }

    /// Opens connections for those that wait; one at a time while the server does not answer. If there is no connection
    /// and none may be opened, nobody needs to wait.
    private mutating func grow(_ now: ContinuousClock.Instant) -> [Action] {
        guard !isEnding else { return [] }
        var actions: [Action] = []
        var opening = members.values.count { $0 == .opening }
        let most = failures == 0 ? waiting.count : min(1, waiting.count)
        while opening < most, members.count < limits.connections, pauseEnds.map({ $0 <= now }) ?? true {
            lastConnection += 1
            members[lastConnection] = .opening
            opening += 1
            actions.append(.open(lastConnection))
        }
        guard members.isEmpty, let latestFailure else { return actions }
        actions += waiting.map { .refuse(call: $0, .unreachable(latestFailure)) }
        waiting = []
        return actions
    }
}
#endif
