import AssentCore
import NIOCore

/// Which connection serves which call: the pool as a state machine, without channels, tasks, locks or a clock.
///
/// Connections, exchanges and waiting calls are numbers here. Each method takes an event and returns what must be done
/// about it; the ``ConnectionPool`` does that. Every event is allowed in every state: one that makes no sense changes
/// nothing, or closes the connection that it is about.
///
/// A connection whose call is suspended leaves its slot to others and stands beside them. When the call goes on, it
/// takes a slot again if one is free; otherwise it stays where it is to the end of its reply, since the peer does not
/// wait.
///
/// All connections belong to one set of roots and one client identity. A change of the pins starts a new generation,
/// and nothing of an older one serves another request.
struct PoolState: Sendable {
    struct Limits: Sendable {
        /// Connections to one origin at one time.
        let connections: Int
        /// Calls that may wait for one origin.
        let waiters: Int
        /// Connections of one origin that may stand beside its slots, because their calls are or were suspended.
        let suspended: Int
    }

    /// Leave to open one connection.
    struct Permit: Sendable {
        let connection: UInt64
        let keys: AcceptableKeys
    }

    /// What a call gets.
    enum Grant: Sendable {
        case reuse(connection: UInt64, exchange: UInt64)
        case open(Permit)
    }

    /// A call that has waited, and what it gets.
    struct Service: Sendable {
        let waiter: UInt64
        let grant: Grant
    }

    enum LeaseAction: Sendable {
        case take(Grant)
        /// Ask for a number with ``PoolState/nextID()`` and wait with it.
        case wait
        case refuse(HTTPTransportError)
    }

    enum WaitAction: Sendable {
        case stay
        /// The call is in the queue, and the first of the queue, perhaps this one, gets something.
        case serve(Service)
        case refuse(HTTPTransportError)
    }

    enum OpenedAction: Sendable {
        case use(exchange: UInt64)
        /// The pins have changed since, or the pool has ended: close it and ask for another.
        case replace
        /// It has ended already, or was never asked for: close it.
        case refuse(HTTPTransportError)
    }

    enum ReleaseAction: Sendable {
        case keep
        /// Keep it: a waiting call gets it at once.
        case serve(Service)
        case close
    }

    enum SuspendAction: Sendable {
        /// The connection stands beside the slots now; a waiting call may have got its slot.
        case suspend(Service?)
        /// It goes on as before: too many are suspended, or there is nothing to suspend.
        case refuse
    }

    /// What ends when the pool changes.
    struct Sweep: Sendable {
        var connections: [UInt64] = []
        /// Those that end although a call runs on them.
        var ended: [UInt64] = []
        var waiters: [UInt64] = []
    }

    enum Phase: Sendable {
        /// A permit was given.
        case opening
        case inUse
        /// Its call is suspended. It uses no slot.
        case suspended
        case idle
        /// It is closing. It uses its slot, if it has one, until it is gone.
        case closing
    }

    struct Member: Sendable {
        let origin: Origin
        let generation: Int
        var phase: Phase
        /// Whether it uses no slot, because its call is or was suspended.
        var isBeside = false
        /// The pins of the keys that its server has shown; `nil` without TLS.
        var shown: Set<Pin>?
    }

    struct Slots: Sendable {
        /// The last one was used most recently.
        var idle: [UInt64] = []
        /// All members of this origin that use a slot, in whatever phase.
        var open = 0
        /// The members that use none.
        var beside = 0
        /// The first one has waited longest.
        var waiters: [UInt64] = []
    }

    let limits: Limits
    private var pins: PinTable
    private var lastID: UInt64 = 0
    private(set) var generation = 0
    private(set) var isShutDown = false
    private(set) var slots: [Origin: Slots] = [:]
    /// Every connection.
    private(set) var members: [UInt64: Member] = [:]
    /// Every call that waits, with what it waits for.
    private(set) var waiting: [UInt64: Origin] = [:]

    init(pins: PinTable, limits: Limits) {
        self.pins = pins
        self.limits = limits
    }

    /// A number that nothing else has had.
    mutating func nextID() -> UInt64 {
        lastID += 1
        return lastID
    }

    // MARK: - Calls

    /// A call wants a connection.
    mutating func lease(_ origin: Origin) -> LeaseAction {
        guard !isShutDown else { return .refuse(Self.ended) }
        guard let keys = keys(of: origin) else {
            return .refuse(
                HTTPTransportError(.notPinned, "The configuration has no pins for \(origin.host.text)."))
        }
        if let grant = take(origin, keys) { return .take(grant) }
        let count = slots[origin]?.waiters.count ?? 0
        return count < limits.waiters ? .wait : .refuse(Self.tooMany(count))
    }

    /// A call that must wait begins to. A connection may have become free since.
    mutating func wait(
        _ waiter: UInt64, for origin: Origin, until deadline: NIODeadline, now: NIODeadline
    ) -> WaitAction {
        guard deadline > now else { return .refuse(Self.late) }
        guard !isShutDown else { return .refuse(Self.ended) }
        guard keys(of: origin) != nil else { return .refuse(Self.unpinned) }
        guard waiting[waiter] == nil else {
            return .refuse(HTTPTransportError(.invalidRequest, "The call waits already."))
        }
        let count = slots[origin]?.waiters.count ?? 0
        guard count < limits.waiters else { return .refuse(Self.tooMany(count)) }
        slots[origin, default: Slots()].waiters.append(waiter)
        waiting[waiter] = origin
        return serveNext(origin).map { .serve($0) } ?? .stay
    }

    /// A waiting call was cancelled or its time has passed; whether it was still waiting.
    mutating func giveUp(_ waiter: UInt64) -> Bool {
        guard let origin = waiting.removeValue(forKey: waiter) else { return false }
        slots[origin]?.waiters.removeAll { $0 == waiter }
        dropIfEmpty(origin)
        return true
    }

    // MARK: - Connections

    /// A connection that a permit was given for is there. `pins` are those of the keys in the validated chain.
    mutating func opened(_ connection: UInt64, showing pins: Set<Pin>? = nil) -> OpenedAction {
        guard let index = members.index(forKey: connection), members.values[index].phase == .opening else {
            return .refuse(Self.gone)
        }
        guard members.values[index].generation == generation, !isShutDown else {
            members.values[index].phase = .closing
            return .replace
        }
        members.values[index].phase = .inUse
        members.values[index].shown = pins
        return .use(exchange: nextID())
    }

    /// A connection that a permit was given for could not be opened.
    mutating func openFailed(_ connection: UInt64) -> Service? {
        guard members[connection]?.phase == .opening else { return nil }
        return closed(connection)
    }

    /// A reply is complete and its connection could serve another request.
    mutating func released(_ connection: UInt64) -> ReleaseAction {
        guard let index = members.index(forKey: connection) else { return .close }
        let member = members.values[index]
        switch member.phase {
        case .opening, .closing: return .close
        case .suspended: members.values[index].phase = .inUse
        case .idle:
            slots[member.origin]?.idle.removeAll { $0 == connection }
            members.values[index].phase = .closing
            return .close
        case .inUse: break
        }
        guard member.generation == generation, !isShutDown, let slot = slots.index(forKey: member.origin) else {
            members.values[index].phase = .closing
            return .close
        }
        guard takeSlot(connection) else {
            members.values[index].phase = .closing
            return .close
        }
        if let waiter = slots.values[slot].waiters.first {
            slots.values[slot].waiters.removeFirst()
            waiting[waiter] = nil
            return .serve(Service(waiter: waiter, grant: .reuse(connection: connection, exchange: nextID())))
        }
        members.values[index].phase = .idle
        slots.values[slot].idle.append(connection)
        return .keep
    }

    /// A connection is gone.
    mutating func closed(_ connection: UInt64) -> Service? {
        guard let member = members.removeValue(forKey: connection) else { return nil }
        if member.phase == .idle { slots[member.origin]?.idle.removeAll { $0 == connection } }
        if member.isBeside { slots[member.origin]?.beside -= 1 } else { slots[member.origin]?.open -= 1 }
        let service = serveNext(member.origin)
        dropIfEmpty(member.origin)
        return service
    }

    // MARK: - Suspension

    /// The call of a connection is suspended.
    mutating func suspended(_ connection: UInt64) -> SuspendAction {
        guard let index = members.index(forKey: connection), members.values[index].phase == .inUse else {
            return .refuse
        }
        let origin = members.values[index].origin
        if !members.values[index].isBeside {
            guard let slot = slots.index(forKey: origin), slots.values[slot].beside < limits.suspended else {
                return .refuse
            }
            slots.values[slot].open -= 1
            slots.values[slot].beside += 1
            members.values[index].isBeside = true
        }
        members.values[index].phase = .suspended
        return .suspend(serveNext(origin))
    }

    /// The call of a connection goes on.
    mutating func goesOn(_ connection: UInt64) {
        guard members[connection]?.phase == .suspended else { return }
        members[connection]?.phase = .inUse
        _ = takeSlot(connection)
    }

    /// Gives a connection that has no slot a free one; whether it has one now.
    private mutating func takeSlot(_ connection: UInt64) -> Bool {
        guard let member = members[connection] else { return false }
        guard member.isBeside else { return true }
        guard let slot = slots.index(forKey: member.origin), slots.values[slot].open < limits.connections else {
            return false
        }
        slots.values[slot].beside -= 1
        slots.values[slot].open += 1
        members[connection]?.isBeside = false
        return true
    }

    // MARK: - Changes

    /// One connection to `origin` turned out to be stale: the idle ones are to be closed.
    mutating func discardIdle(_ origin: Origin) -> Sweep {
        var sweep = Sweep()
        takeIdle(origin, into: &sweep)
        return sweep
    }

    /// New pins: idle connections are to be closed now, and so are those whose server has shown none of the new ones;
    /// others after their reply. Calls that wait for a host that is no longer named are refused.
    mutating func update(_ pins: PinTable) -> Sweep {
        self.pins = pins
        generation += 1
        var sweep = Sweep()
        for origin in Array(slots.keys) {
            takeIdle(origin, into: &sweep)
            if keys(of: origin) == nil { takeWaiters(origin, into: &sweep) }
        }
        for (connection, member) in members where [.inUse, .suspended].contains(member.phase) {
            guard let shown = member.shown, !isPinned(shown, of: member.origin) else { continue }
            members[connection]?.phase = .closing
            sweep.ended.append(connection)
        }
        return sweep
    }

    private func isPinned(_ shown: Set<Pin>, of origin: Origin) -> Bool {
        switch keys(of: origin) {
        case .none: false
        case .any: true
        case .oneOf(let pins): !pins.isDisjoint(with: shown)
        }
    }

    /// The end: nothing is granted any more, idle connections are to be closed, others after their reply.
    mutating func shutDown() -> Sweep {
        isShutDown = true
        var sweep = Sweep()
        for origin in Array(slots.keys) {
            takeIdle(origin, into: &sweep)
            takeWaiters(origin, into: &sweep)
        }
        return sweep
    }

    // MARK: - Parts

    /// An idle connection, or leave to open one within the limit.
    private mutating func take(_ origin: Origin, _ keys: AcceptableKeys) -> Grant? {
        if let slot = slots.index(forKey: origin) {
            if let connection = slots.values[slot].idle.popLast() {
                members[connection]?.phase = .inUse
                return .reuse(connection: connection, exchange: nextID())
            }
            guard slots.values[slot].open < limits.connections else { return nil }
            slots.values[slot].open += 1
        } else {
            slots[origin] = Slots(open: 1)
        }
        let connection = nextID()
        members[connection] = Member(origin: origin, generation: generation, phase: .opening)
        return .open(Permit(connection: connection, keys: keys))
    }

    /// The call that has waited longest, and what it gets, if there is something to get.
    private mutating func serveNext(_ origin: Origin) -> Service? {
        guard !isShutDown, let waiter = slots[origin]?.waiters.first, let keys = keys(of: origin),
            let grant = take(origin, keys)
        else { return nil }
        slots[origin]?.waiters.removeFirst()
        waiting[waiter] = nil
        return Service(waiter: waiter, grant: grant)
    }

    private func keys(of origin: Origin) -> AcceptableKeys? {
        origin.isSecure ? pins.keys(of: origin) : .any
    }

    private mutating func takeIdle(_ origin: Origin, into sweep: inout Sweep) {
        guard let slot = slots.index(forKey: origin) else { return }
        for connection in slots.values[slot].idle { members[connection]?.phase = .closing }
        sweep.connections += slots.values[slot].idle
        slots.values[slot].idle = []
    }

    private mutating func takeWaiters(_ origin: Origin, into sweep: inout Sweep) {
        guard let slot = slots.index(forKey: origin) else { return }
        for waiter in slots.values[slot].waiters { waiting[waiter] = nil }
        sweep.waiters += slots.values[slot].waiters
        slots.values[slot].waiters = []
    }

    private mutating func dropIfEmpty(_ origin: Origin) {
        guard let found = slots[origin], found.open == 0, found.beside == 0, found.waiters.isEmpty else { return }
        slots[origin] = nil
    }

    // MARK: - Refusals

    /// For calls that wait when the new pins do not name their host.
    static let unpinned = HTTPTransportError(.notPinned, "The new pins do not name this host.")
    /// For calls that run on a connection whose server has shown none of the new pins.
    static let removed = HTTPTransportError(
        .pinMismatch, "The pin on which the connection rested was removed.",
        suggestion: "Send the call again: the server must show one of the new keys.")
    /// For all calls after the end.
    static let ended = HTTPTransportError(.shutDown, "The transport is shut down.")
    /// For a call whose connection ended before it was used.
    static let gone = HTTPTransportError(.connectionClosed, "The server closed the connection.")
    /// For calls that waited too long.
    static let late = HTTPTransportError(.timedOut, "No connection became free in time.")

    /// For a call that is suspended before it has a connection. Its caller never sees it.
    static let left = HTTPTransportError(.cancelled, "The call was suspended.")

    private static func tooMany(_ count: Int) -> HTTPTransportError {
        HTTPTransportError(.tooManyRequests, "\(count) calls already wait for a connection to this server.")
    }
}
