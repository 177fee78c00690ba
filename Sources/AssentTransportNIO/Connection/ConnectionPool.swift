import AssentCore
import Logging
import NIOCore

/// The connections of one transport, by origin. All of them belong to one set of roots and one client identity; a change of
/// the pins starts a new generation, and nothing of an older one serves another request.
final class ConnectionPool: Sendable {
    /// Leave to open one connection.
    struct Permit: Sendable {
        let connectionID: UInt64
        let generation: Int
        let keys: AcceptableKeys
    }

    /// A connection for one request.
    struct Lease: Sendable {
        let handle: ConnectionHandle
        let exchange: UInt64
        let isReused: Bool
    }

    private enum Grant: Sendable {
        case reuse(ConnectionHandle, exchange: UInt64)
        case open(Permit)
    }

    private enum Decision {
        case granted(Grant)
        case wait
        case refused(HTTPTransportError)
    }

    private struct Waiter {
        let id: UInt64
        let continuation: CheckedContinuation<Grant, any Error>
    }

    private struct Slots {
        var idle: [ConnectionHandle] = []
        /// Idle, in use, or being opened.
        var open = 0
        var waiters: [Waiter] = []
    }

    private struct State {
        var pins: PinTable
        var generation = 0
        var lastID: UInt64 = 0
        var slots: [Origin: Slots] = [:]
        var connections: [UInt64: (origin: Origin, channel: any Channel)] = [:]
        var isShutDown = false

        mutating func nextID() -> UInt64 {
            lastID += 1
            return lastID
        }
    }

    private let state: Locked<State>
    private let limits: Limits
    private let group: any EventLoopGroup
    private let tls: TLSClient
    private let logger: Logger

    struct Limits: Sendable {
        let connections: Int
        let waiters: Int
        let idle: TimeAmount
        let keepsConnections: Bool
        let allowsPlaintext: Bool
        let parser: ReplyParser.Limits
    }

    var parserLimits: ReplyParser.Limits { limits.parser }
    var idleTimeout: TimeAmount { limits.idle }
    var keepsConnections: Bool { limits.keepsConnections }
    var allowsPlaintext: Bool { limits.allowsPlaintext }

    init(pins: PinTable, limits: Limits, tls: TLSClient, group: any EventLoopGroup, logger: Logger) {
        state = Locked(State(pins: pins))
        self.limits = limits
        self.tls = tls
        self.group = group
        self.logger = logger
    }

    // MARK: - Taking

    /// A connection to `origin`: one that is idle, a new one, or the next that becomes free.
    func lease(_ origin: Origin, limits: HTTPLimits, deadline: NIODeadline) async throws -> Lease {
        for _ in 0..<3 {
            let grant: Grant
            switch decide(origin) {
            case .refused(let error): throw error
            case .granted(let granted): grant = granted
            case .wait: grant = try await wait(for: origin, deadline: deadline)
            }
            switch grant {
            case .reuse(let handle, let exchange): return Lease(handle: handle, exchange: exchange, isReused: true)
            case .open(let permit):
                let handle = try await open(origin, permit, limits: limits, deadline: deadline)
                if let exchange = adopt(handle) { return Lease(handle: handle, exchange: exchange, isReused: false) }
                // The pins changed while it was being opened.
                handle.close()
            }
        }
        throw HTTPTransportError(.connectFailed, "the pins keep changing")
    }

    private func decide(_ origin: Origin) -> Decision {
        state.withLock { state -> Decision in
            guard !state.isShutDown else {
                return .refused(HTTPTransportError(.shutDown, "the transport is shut down"))
            }
            let keys: AcceptableKeys
            if origin.isSecure {
                guard let known = state.pins.keys(of: origin) else {
                    return .refused(
                        HTTPTransportError(.notPinned, "\(origin.host.text) has neither pins nor .unpinned"))
                }
                keys = known
            } else {
                keys = .any
            }
            if let handle = state.slots[origin]?.idle.popLast() {
                return .granted(.reuse(handle, exchange: state.nextID()))
            }
            var slots = state.slots[origin] ?? Slots()
            if slots.open < limits.connections {
                slots.open += 1
                state.slots[origin] = slots
                let permit = Permit(connectionID: state.nextID(), generation: state.generation, keys: keys)
                return .granted(.open(permit))
            }
            guard slots.waiters.count < limits.waiters else {
                return .refused(HTTPTransportError(.tooManyRequests, "\(slots.waiters.count) calls wait already"))
            }
            return .wait
        }
    }

    private func open(
        _ origin: Origin, _ permit: Permit, limits: HTTPLimits, deadline: NIODeadline
    ) async throws -> ConnectionHandle {
        let dial = Dial(origin: origin, permit: permit, eventLoop: group.next())
        do {
            let until = min(deadline, .now() + limits.connect.timeAmount)
            return try await dial.run(tls: tls, pool: self, deadline: until)
        } catch {
            logger.debug(
                "no connection", metadata: ["host": "\(origin.host.text)", "error": "\(error)"])
            slotFreed(origin)
            throw error
        }
    }

    /// Counts a new connection in; `nil` when it must not be used.
    private func adopt(_ handle: ConnectionHandle) -> UInt64? {
        state.withLock { state in
            handle.generation == state.generation && !state.isShutDown ? state.nextID() : nil
        }
    }

    // MARK: - Waiting

    private func wait(for origin: Origin, deadline: NIODeadline) async throws -> Grant {
        let id = state.withLock { $0.nextID() }
        let timer = group.next().scheduleTask(deadline: deadline) {
            self.giveUp(id, origin, HTTPTransportError(.timedOut, "no connection became free"))
        }
        defer { timer.cancel() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                enqueue(Waiter(id: id, continuation: continuation), origin, deadline: deadline)
            }
        } onCancel: {
            giveUp(id, origin, HTTPTransportError(.cancelled, "the task was cancelled"))
        }
    }

    private func enqueue(_ waiter: Waiter, _ origin: Origin, deadline: NIODeadline) {
        enum Outcome {
            case queued
            case granted(Waiter, Grant)
            case failed(HTTPTransportError)
        }
        let outcome = state.withLock { state -> Outcome in
            // Under the lock: whoever cancels later, and the timer later, finds the waiter in the queue.
            if Task.isCancelled {
                return .failed(HTTPTransportError(.cancelled, "the task was cancelled"))
            }
            guard deadline > .now() else {
                return .failed(HTTPTransportError(.timedOut, "no connection became free"))
            }
            guard !state.isShutDown else { return .failed(HTTPTransportError(.shutDown, "the transport is shut down")) }
            var slots = state.slots[origin] ?? Slots()
            guard slots.waiters.count < limits.waiters else {
                return .failed(HTTPTransportError(.tooManyRequests, "\(slots.waiters.count) calls wait already"))
            }
            slots.waiters.append(waiter)
            state.slots[origin] = slots
            // A connection may have become free since the decision to wait.
            guard let (next, grant) = Self.serveNext(&state, origin, limit: limits.connections) else { return .queued }
            return .granted(next, grant)
        }
        switch outcome {
        case .queued: break
        case .granted(let next, let grant): next.continuation.resume(returning: grant)
        case .failed(let error): waiter.continuation.resume(throwing: error)
        }
    }

    private func giveUp(_ id: UInt64, _ origin: Origin, _ error: HTTPTransportError) {
        let waiter = state.withLock { state -> Waiter? in
            guard let index = state.slots[origin]?.waiters.firstIndex(where: { $0.id == id }) else {
                return nil
            }
            return state.slots[origin]?.waiters.remove(at: index)
        }
        waiter?.continuation.resume(throwing: error)
    }

    /// The longest waiting call and what it gets, if there is something to get.
    private static func serveNext(_ state: inout State, _ origin: Origin, limit: Int) -> (Waiter, Grant)? {
        guard var slots = state.slots[origin], !slots.waiters.isEmpty else { return nil }
        let keys = origin.isSecure ? state.pins.keys(of: origin) : .any
        let grant: Grant
        if let handle = slots.idle.popLast() {
            grant = .reuse(handle, exchange: state.nextID())
        } else if slots.open < limit, let keys {
            slots.open += 1
            grant = .open(Permit(connectionID: state.nextID(), generation: state.generation, keys: keys))
        } else {
            return nil
        }
        let waiter = slots.waiters.removeFirst()
        state.slots[origin] = slots
        return (waiter, grant)
    }

    // MARK: - Giving back

    /// A connection is there.
    func opened(_ handle: ConnectionHandle, _ origin: Origin) {
        state.withLock { $0.connections[handle.id] = (origin, handle.channel) }
    }

    /// A reply is complete; `false` when the connection must be closed instead of kept.
    func release(_ handle: ConnectionHandle) -> Bool {
        let (isKept, served) = state.withLock { state -> (Bool, (Waiter, Grant)?) in
            guard handle.generation == state.generation, !state.isShutDown,
                let origin = state.connections[handle.id]?.origin
            else { return (false, nil) }
            state.slots[origin, default: Slots()].idle.append(handle)
            return (true, Self.serveNext(&state, origin, limit: limits.connections))
        }
        if let (waiter, grant) = served { waiter.continuation.resume(returning: grant) }
        return isKept
    }

    /// A connection is gone.
    func closed(_ handle: ConnectionHandle) {
        let origin = state.withLock { state -> Origin? in
            guard let origin = state.connections.removeValue(forKey: handle.id)?.origin else { return nil }
            state.slots[origin]?.idle.removeAll { $0.id == handle.id }
            return origin
        }
        if let origin { slotFreed(origin) }
    }

    private func slotFreed(_ origin: Origin) {
        let served = state.withLock { state -> (Waiter, Grant)? in
            state.slots[origin]?.open -= 1
            let served = Self.serveNext(&state, origin, limit: limits.connections)
            if let slots = state.slots[origin], slots.open == 0, slots.waiters.isEmpty {
                state.slots[origin] = nil
            }
            return served
        }
        if let (waiter, grant) = served { waiter.continuation.resume(returning: grant) }
    }

    // MARK: - Changing

    /// Idle connections to `origin` are closed: one of them turned out to be stale.
    func discardIdle(_ origin: Origin) {
        let idle = state.withLock { state -> [ConnectionHandle] in
            defer { state.slots[origin]?.idle = [] }
            return state.slots[origin]?.idle ?? []
        }
        for handle in idle { handle.close() }
    }

    /// New pins: idle connections close now, others after their reply.
    func update(_ pins: PinTable) {
        let (idle, refused) = state.withLock { state -> ([ConnectionHandle], [Waiter]) in
            state.pins = pins
            state.generation += 1
            var refused: [Waiter] = []
            for origin in state.slots.keys
            where origin.isSecure && pins.keys(of: origin) == nil {
                refused += state.slots[origin]?.waiters ?? []
                state.slots[origin]?.waiters = []
            }
            return (Self.takeIdle(&state), refused)
        }
        for handle in idle { handle.close() }
        for waiter in refused {
            waiter.continuation.resume(throwing: HTTPTransportError(.notPinned, "the new pins do not name this host"))
        }
    }

    /// No new calls; idle connections close now, others after their reply or, if asked, at once.
    func shutDown(closeAll: Bool) -> [any Channel] {
        let (idle, waiters, rest) = state.withLock { state -> ([ConnectionHandle], [Waiter], [any Channel]) in
            state.isShutDown = true
            let waiters = state.slots.values.flatMap(\.waiters)
            for origin in state.slots.keys { state.slots[origin]?.waiters = [] }
            return (Self.takeIdle(&state), waiters, state.connections.values.map(\.channel))
        }
        for waiter in waiters {
            waiter.continuation.resume(throwing: HTTPTransportError(.shutDown, "the transport is shut down"))
        }
        for handle in idle { handle.close() }
        if closeAll { for channel in rest { channel.close(promise: nil) } }
        return rest
    }

    private static func takeIdle(_ state: inout State) -> [ConnectionHandle] {
        var idle: [ConnectionHandle] = []
        for origin in state.slots.keys {
            idle += state.slots[origin]?.idle ?? []
            state.slots[origin]?.idle = []
        }
        return idle
    }
}
