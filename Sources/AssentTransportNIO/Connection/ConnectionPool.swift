import AssentCore
import Logging
import NIOCore

/// The connections of one transport. ``PoolState`` decides which of them serves which call; this opens, closes and
/// resumes.
final class ConnectionPool: Sendable {
    /// A connection for one request.
    struct Lease: Sendable {
        let handle: ConnectionHandle
        let exchange: UInt64
        /// Whether it has served before: it may have gone stale.
        let isReused: Bool
    }

    private enum Grant: Sendable {
        case reuse(ConnectionHandle, exchange: UInt64)
        case open(PoolState.Permit)
    }

    private typealias Waiter = CheckedContinuation<Grant, any Error>

    /// The machine, and what its numbers stand for.
    private struct State: Sendable {
        var machine: PoolState
        var handles: [UInt64: ConnectionHandle] = [:]
        var waiters: [UInt64: Waiter] = [:]
        /// The attempts to open a connection that are under way.
        var dials: [UInt64: Dial] = [:]

        func resolve(_ grant: PoolState.Grant) -> Result<Grant, any Error> {
            switch grant {
            case .open(let permit): return .success(.open(permit))
            case .reuse(let connection, let exchange):
                guard let handle = handles[connection] else { return .failure(PoolState.gone) }
                return .success(.reuse(handle, exchange: exchange))
            }
        }

        mutating func resumption(_ service: PoolState.Service?) -> Resumption? {
            guard let service, let waiter = waiters.removeValue(forKey: service.waiter) else { return nil }
            return Resumption(waiter: waiter, result: resolve(service.grant))
        }

        mutating func take(_ sweep: PoolState.Sweep) -> (handles: [ConnectionHandle], waiters: [Waiter]) {
            let waiters = sweep.waiters.compactMap { self.waiters.removeValue(forKey: $0) }
            return (sweep.connections.compactMap { handles[$0] }, waiters)
        }
    }

    /// A call that waits no longer; it is resumed when the lock is free again.
    private struct Resumption: Sendable {
        let waiter: Waiter
        let result: Result<Grant, any Error>

        func resume() { waiter.resume(with: result) }
    }

    private let state: Locked<State>
    private let settings: ConnectionSettings
    private let group: any EventLoopGroup
    private let tls: TLSClient
    private let logger: Logger

    /// How often a call asks again because the pins changed while its connection was being opened.
    private static let maximumAttempts = 3

    init(
        pins: PinTable, limits: PoolState.Limits, settings: ConnectionSettings, tls: TLSClient,
        group: any EventLoopGroup, logger: Logger
    ) {
        state = Locked(State(machine: PoolState(pins: pins, limits: limits)))
        self.settings = settings
        self.tls = tls
        self.group = group
        self.logger = logger
    }

    // MARK: - Taking

    /// A connection to `origin`: one that is idle, a new one, or the next that becomes free.
    ///
    /// A call that is suspended before it has one leaves the pool, and asks anew when it goes on. `deadline` becomes
    /// later by that time.
    func lease(
        _ origin: Origin, limits: HTTPLimits, deadline: inout NIODeadline, control: CallControl?
    ) async throws -> Lease {
        guard let control else { return try await lease(origin, limits: limits, deadline: deadline, seat: nil) }
        while true {
            let start = NIODeadline.now()
            do {
                try await control.whenRunning()
            } catch {
                throw HTTPTransportError(.cancelled, "The task was cancelled.")
            }
            deadline = deadline + min(.now() - start, .distantFuture - deadline)
            let seat = Seat()
            let watch = control.watch { if control.isSuspended { seat.leave() } }
            defer { watch.end() }
            // It may have been suspended before somebody watched.
            if control.isSuspended { seat.leave() }
            do {
                let lease = try await lease(origin, limits: limits, deadline: deadline, seat: seat)
                // Beyond this the connection is told.
                guard !seat.take() else { return lease }
                giveBack(lease)
            } catch  where seat.isLeft && !Task.isCancelled {
                continue
            }
        }
    }

    /// A call has a connection and does not want it: the next may. One that has not served yet has no idle timeout, so
    /// it is not kept.
    private func giveBack(_ lease: Lease) {
        if !lease.isReused || !released(lease.handle.id) { lease.handle.close() }
    }

    private func lease(
        _ origin: Origin, limits: HTTPLimits, deadline: NIODeadline, seat: Seat?
    ) async throws -> Lease {
        for _ in 0..<Self.maximumAttempts {
            switch try await grant(origin, deadline: deadline, seat: seat) {
            case .reuse(let handle, let exchange): return Lease(handle: handle, exchange: exchange, isReused: true)
            case .open(let permit):
                let (handle, pins) = try await open(origin, permit, limits: limits, deadline: deadline, seat: seat)
                switch opened(handle, pins) {
                case .use(let exchange): return Lease(handle: handle, exchange: exchange, isReused: false)
                case .replace: handle.close()
                case .refuse(let error):
                    handle.close()
                    throw error
                }
            }
        }
        throw HTTPTransportError(.connectFailed, "The pins keep changing while a connection is opened.")
    }

    private func grant(_ origin: Origin, deadline: NIODeadline, seat: Seat?) async throws -> Grant {
        enum Decision {
            case granted(Result<Grant, any Error>)
            case wait(UInt64)
        }
        let decision = state.withLock { state -> Decision in
            switch state.machine.lease(origin) {
            case .take(let grant): .granted(state.resolve(grant))
            case .refuse(let error): .granted(.failure(error))
            case .wait: .wait(state.machine.nextID())
            }
        }
        switch decision {
        case .granted(let result): return try result.get()
        case .wait(let id): return try await wait(id, for: origin, deadline: deadline, seat: seat)
        }
    }

    private func open(
        _ origin: Origin, _ permit: PoolState.Permit, limits: HTTPLimits, deadline: NIODeadline, seat: Seat?
    ) async throws -> (ConnectionHandle, pins: Set<Pin>?) {
        let dial = Dial(origin: origin, permit: permit, owner: self, settings: settings, eventLoop: group.next())
        let isEnded = state.withLock { state in
            if !state.machine.isShutDown { state.dials[permit.connection] = dial }
            return state.machine.isShutDown
        }
        defer { state.withLock { $0.dials[permit.connection] = nil } }
        do {
            if isEnded {
                // In a debug build NIO ends the process when a promise is let go of that nobody has kept or broken.
                _ = dial.abandon(PoolState.ended)
                throw PoolState.ended
            }
            seat?.occupy { _ = dial.abandon(PoolState.left) }
            let handle = try await dial.run(tls: tls, deadline: min(deadline, .now() + limits.connect.timeAmount))
            return (handle, dial.pins)
        } catch {
            logger.debug("no connection", metadata: ["host": "\(origin.host.text)", "error": "\(error)"])
            state.withLock { $0.resumption($0.machine.openFailed(permit.connection)) }?.resume()
            throw error
        }
    }

    private func opened(_ handle: ConnectionHandle, _ pins: Set<Pin>?) -> PoolState.OpenedAction {
        state.withLock { state in
            let action = state.machine.opened(handle.id, showing: pins)
            if case .use = action { state.handles[handle.id] = handle }
            return action
        }
    }

    // MARK: - Waiting

    private func wait(_ id: UInt64, for origin: Origin, deadline: NIODeadline, seat: Seat?) async throws -> Grant {
        let timer = group.next().scheduleTask(deadline: deadline) { self.giveUp(id, PoolState.late) }
        defer { timer.cancel() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation {
                enqueue($0, id, origin, deadline: deadline)
                // In the queue by now, or served.
                seat?.occupy { self.giveUp(id, PoolState.left) }
            }
        } onCancel: {
            giveUp(id, HTTPTransportError(.cancelled, "The task was cancelled."))
        }
    }

    private func enqueue(_ waiter: Waiter, _ id: UInt64, _ origin: Origin, deadline: NIODeadline) {
        let resumption = state.withLock { state -> Resumption? in
            // Under the lock: a cancellation or a timer that comes later finds the call in the queue.
            if Task.isCancelled {
                return Resumption(
                    waiter: waiter, result: .failure(HTTPTransportError(.cancelled, "The task was cancelled.")))
            }
            switch state.machine.wait(id, for: origin, until: deadline, now: .now()) {
            case .refuse(let error): return Resumption(waiter: waiter, result: .failure(error))
            case .stay:
                state.waiters[id] = waiter
                return nil
            case .serve(let service):
                state.waiters[id] = waiter
                return state.resumption(service)
            }
        }
        resumption?.resume()
    }

    private func giveUp(_ id: UInt64, _ error: HTTPTransportError) {
        let waiter = state.withLock { $0.machine.giveUp(id) ? $0.waiters.removeValue(forKey: id) : nil }
        waiter?.resume(throwing: error)
    }

    // MARK: - Changing

    /// Idle connections to `origin` are closed: one of them turned out to be stale.
    func discardIdle(_ origin: Origin) {
        let idle = state.withLock { $0.take($0.machine.discardIdle(origin)).handles }
        for handle in idle { handle.close() }
    }

    /// New pins: idle connections close now, and so do those that showed none of them; others after their reply.
    func update(_ pins: PinTable) {
        let (idle, refused, ended) = state.withLock { state in
            let sweep = state.machine.update(pins)
            let (idle, refused) = state.take(sweep)
            return (idle, refused, sweep.ended.compactMap { state.handles[$0] })
        }
        for handle in idle { handle.close() }
        for handle in ended { handle.end(PoolState.removed) }
        for waiter in refused { waiter.resume(throwing: PoolState.unpinned) }
    }

    /// No new calls; idle connections close now, others after their reply or, if asked, at once. Then also what is
    /// being opened is given up.
    func shutDown(closeAll: Bool) -> [any Channel] {
        let (idle, refused, all, dials) = state.withLock { state in
            let (idle, refused) = state.take(state.machine.shutDown())
            return (idle, refused, Array(state.handles.values), Array(state.dials.values))
        }
        for waiter in refused { waiter.resume(throwing: PoolState.ended) }
        for handle in closeAll ? all : idle { handle.close() }
        let abandoned = closeAll ? dials.compactMap { $0.abandon(PoolState.ended) } : []
        return all.map(\.channel) + abandoned
    }
}

extension ConnectionPool: ConnectionOwner {
    func released(_ connection: UInt64) -> Bool {
        let (isKept, resumption) = state.withLock { state -> (Bool, Resumption?) in
            switch state.machine.released(connection) {
            case .keep: (true, nil)
            case .serve(let service): (true, state.resumption(service))
            case .close: (false, nil)
            }
        }
        resumption?.resume()
        return isKept
    }

    func suspended(_ connection: UInt64) -> Bool {
        let (isSuspended, resumption) = state.withLock { state -> (Bool, Resumption?) in
            switch state.machine.suspended(connection) {
            case .suspend(let service): (true, state.resumption(service))
            case .refuse: (false, nil)
            }
        }
        resumption?.resume()
        return isSuspended
    }

    func goesOn(_ connection: UInt64) {
        state.withLock { $0.machine.goesOn(connection) }
    }

    func closed(_ connection: UInt64) {
        let resumption = state.withLock { state in
            state.handles[connection] = nil
            return state.resumption(state.machine.closed(connection))
        }
        resumption?.resume()
    }
}
