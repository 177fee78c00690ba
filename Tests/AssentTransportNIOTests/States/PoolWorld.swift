import AssentCore
import NIOCore

@testable import AssentTransportNIO

/// The pool's state machine together with what the outside has seen of it: every action is held against what was
/// promised before. It knows nothing of how the machine decides.
struct PoolWorld {
    enum Event {
        case lease(Int)
        /// A call that was told to wait, or one that waits already.
        case wait(UInt64, Int, isLate: Bool)
        case giveUp(UInt64)
        case opened(UInt64)
        case openFailed(UInt64)
        case released(UInt64)
        case closed(UInt64)
        case suspended(UInt64)
        case goesOn(UInt64)
        case discardIdle(Int)
        /// Other pins; whether they name the first host.
        case update(isNamed: Bool)
        case shutDown
    }

    enum Phase: Int, Comparable {
        case dialing, held, suspended, idle, closing
        static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }

    struct Connection {
        let origin: Int
        let generation: Int
        var phase: Phase
        /// Whether it uses no slot.
        var isBeside = false
    }

    let origins: [Origin]
    let limits: PoolState.Limits
    private(set) var machine: PoolState
    private(set) var complaint: String?
    private(set) var connections: [UInt64: Connection] = [:]
    /// By origin, the longest first.
    private(set) var queues: [[UInt64]]
    private(set) var isShutDown = false
    private(set) var isNamed = true
    private(set) var generation = 0
    private let tables: [PinTable]
    private let keys: [AcceptableKeys]

    private static let now = NIODeadline.uptimeNanoseconds(1_000)

    /// The first host has pins that may change or go; the others are plaintext.
    init(origins count: Int, limits: PoolState.Limits) throws {
        origins = try (0..<count).map { try Origin($0 == 0 ? "https://a.example" : "http://b.example:\($0)") }
        self.limits = limits
        let pins = try (1...2).map { try Pin(sha256: [UInt8](repeating: $0, count: 32)) }
        tables = try pins.map { try PinTable(["a.example": .singlePin($0)]) } + [PinTable([:])]
        keys = pins.map { .oneOf([$0]) }
        machine = PoolState(pins: tables[0], limits: limits)
        queues = Array(repeating: [], count: count)
    }

    var waiters: Int { queues.reduce(0) { $0 + $1.count } }

    /// The connections that use a slot.
    func count(_ origin: Int) -> Int { connections.values.count { $0.origin == origin && !$0.isBeside } }

    func beside(_ origin: Int) -> Int { connections.values.count { $0.origin == origin && $0.isBeside } }

    private func idle(_ origin: Int) -> Int {
        connections.values.count { $0.origin == origin && $0.phase == .idle }
    }

    private mutating func must(_ condition: Bool, _ text: @autoclosure () -> String) {
        if !condition, complaint == nil { complaint = text() }
    }

    /// The number of a call that was told to wait.
    mutating func newWaiter() -> UInt64 { machine.nextID() }

    // MARK: - Events

    mutating func apply(_ event: Event) {
        switch event {
        case .lease(let origin): lease(origin)
        case .wait(let waiter, let origin, let isLate): wait(waiter, origin, isLate)
        case .giveUp(let waiter):
            let waits = queues.contains { $0.contains(waiter) }
            must(machine.giveUp(waiter) == waits, "giving up is answered wrongly")
            for origin in queues.indices { queues[origin].removeAll { $0 == waiter } }
        case .opened(let connection): opened(connection)
        case .openFailed(let connection):
            let isDialing = connections[connection]?.phase == .dialing
            let origin = isDialing ? connections.removeValue(forKey: connection)?.origin : nil
            serve(machine.openFailed(connection), freed: origin)
        case .released(let connection): released(connection)
        case .closed(let connection):
            let origin = connections.removeValue(forKey: connection)?.origin
            serve(machine.closed(connection), freed: origin)
        case .suspended(let connection): suspended(connection)
        case .goesOn(let connection):
            machine.goesOn(connection)
            if let known = connections[connection], known.phase == .suspended {
                let isPlace = count(known.origin) < limits.connections
                connections[connection]?.phase = .held
                if isPlace { connections[connection]?.isBeside = false }
            }
        case .discardIdle(let origin): sweep(machine.discardIdle(origins[origin]), from: [origin], refusing: [])
        case .update(let isNamed):
            generation += 1
            self.isNamed = isNamed
            sweep(
                machine.update(tables[isNamed ? generation % 2 : 2]), from: Array(origins.indices),
                refusing: isNamed ? [] : [0])
        case .shutDown:
            isShutDown = true
            sweep(machine.shutDown(), from: Array(origins.indices), refusing: Array(origins.indices))
        }
    }

    private mutating func lease(_ origin: Int) {
        let isFull = count(origin) >= limits.connections && idle(origin) == 0
        let isKnown = isNamed || origin > 0
        switch machine.lease(origins[origin]) {
        case .take(let grant):
            must(queues[origin].isEmpty, "a call overtakes those that wait")
            take(grant, origin)
        case .wait:
            must(!isShutDown && isKnown && isFull, "a call waits without need")
            must(queues[origin].count < limits.waiters, "too many calls wait")
        case .refuse(let error):
            if isShutDown {
                must(error.code == .shutDown, "after the end: \(error.code)")
            } else if !isKnown {
                must(error.code == .notPinned, "without pins: \(error.code)")
            } else {
                must(error.code == .tooManyRequests, "refused with \(error.code)")
                must(isFull && queues[origin].count == limits.waiters, "refused without need")
            }
        }
    }

    private mutating func wait(_ waiter: UInt64, _ origin: Int, _ isLate: Bool) {
        let waits = queues.contains { $0.contains(waiter) }
        let deadline = isLate ? Self.now : Self.now + .nanoseconds(1)
        switch machine.wait(waiter, for: origins[origin], until: deadline, now: Self.now) {
        case .stay:
            must(!waits && !isLate && !isShutDown, "a call waits that must not")
            must(count(origin) >= limits.connections && idle(origin) == 0, "a call waits without need")
            queues[origin].append(waiter)
            must(queues[origin].count <= limits.waiters, "too many calls wait")
        case .serve(let service):
            must(!waits && !isLate, "a call waits that must not")
            queues[origin].append(waiter)
            serve(service, freed: origin)
        case .refuse(let error):
            let full = queues[origin].count == limits.waiters && error.code == .tooManyRequests
            must(
                waits || isLate && error.code == .timedOut || isShutDown && error.code == .shutDown || full
                    || !isNamed && origin == 0 && error.code == .notPinned, "refused to wait with \(error.code)")
        }
    }

    private mutating func opened(_ connection: UInt64) {
        let known = connections[connection]
        let isCurrent = known?.generation == generation && !isShutDown
        switch machine.opened(connection) {
        case .use:
            must(known?.phase == .dialing && isCurrent, "a connection is used that was opened for something else")
            connections[connection]?.phase = .held
        case .replace:
            must(known?.phase == .dialing && !isCurrent, "a good connection is thrown away")
            connections[connection]?.phase = .closing
        case .refuse: must(known?.phase != .dialing, "a connection that was asked for is refused")
        }
    }

    private mutating func suspended(_ connection: UInt64) {
        let known = connections[connection]
        let isHeld = known?.phase == .held
        switch machine.suspended(connection) {
        case .suspend(let service):
            must(isHeld, "a connection is suspended that does nothing")
            connections[connection]?.phase = .suspended
            connections[connection]?.isBeside = true
            serve(service, freed: isShutDown || known?.isBeside == true ? nil : known?.origin)
        case .refuse:
            let isFull = known.map { !$0.isBeside && beside($0.origin) == limits.suspended } ?? true
            must(!isHeld || isFull, "a suspension is refused without need")
        }
    }

    private mutating func released(_ connection: UInt64) {
        let known = connections[connection]
        let isServing = known?.phase == .held || known?.phase == .suspended
        let isPlace = known.map { !$0.isBeside || count($0.origin) < limits.connections } ?? false
        let isGood = isServing && isPlace && known?.generation == generation && !isShutDown
        switch machine.released(connection) {
        case .keep:
            must(isGood, "a connection is kept that must not be")
            must(queues[known?.origin ?? 0].isEmpty, "a connection is idle while a call waits")
            connections[connection]?.phase = .idle
            connections[connection]?.isBeside = false
        case .serve(let service):
            must(isGood, "a connection is handed on that must not be")
            connections[connection]?.phase = .idle
            connections[connection]?.isBeside = false
            serve(service, freed: known?.origin)
            must(connections[connection]?.phase == .held, "another connection than the free one is handed on")
        case .close:
            must(!isGood, "a good connection is closed")
            if isServing || known?.phase == .idle { connections[connection]?.phase = .closing }
        }
    }

    // MARK: - What the machine promises

    private mutating func take(_ grant: PoolState.Grant, _ origin: Int) {
        must(!isShutDown, "something is granted after the end")
        switch grant {
        case .reuse(let connection, _):
            let known = connections[connection]
            must(known?.origin == origin && known?.phase == .idle, "connection \(connection) is not free")
            must(known?.generation == generation, "a connection of older pins is handed out")
            connections[connection]?.phase = .held
        case .open(let permit):
            must(idle(origin) == 0, "a connection is opened while another is idle")
            must(count(origin) < limits.connections, "too many connections")
            must(permit.keys == (origin > 0 ? .any : keys[generation % 2]), "a permit names older pins")
            must(isNamed || origin > 0, "a connection is opened without pins")
            must(connections[permit.connection] == nil, "a number is used twice")
            connections[permit.connection] = Connection(origin: origin, generation: generation, phase: .dialing)
        }
    }

    private mutating func serve(_ service: PoolState.Service?, freed origin: Int?) {
        guard let service else {
            guard let origin else { return }
            must(queues[origin].isEmpty || count(origin) >= limits.connections, "a waiting call is forgotten")
            return
        }
        guard let origin, queues[origin].first == service.waiter else {
            return must(false, "call \(service.waiter) is served out of turn")
        }
        queues[origin].removeFirst()
        take(service.grant, origin)
    }

    private mutating func sweep(_ sweep: PoolState.Sweep, from origins: [Int], refusing refused: [Int]) {
        let idle = connections.filter { origins.contains($0.value.origin) && $0.value.phase == .idle }.map(\.key)
        must(sweep.connections.sorted() == idle.sorted(), "other connections are closed than the idle ones")
        for connection in idle { connections[connection]?.phase = .closing }
        must(sweep.waiters.sorted() == refused.flatMap { queues[$0] }.sorted(), "the wrong calls are refused")
        for origin in refused { queues[origin] = [] }
    }

    /// Whether the machine's books and what was seen from outside are the same.
    mutating func audit() {
        must(machine.members.count == connections.count, "connections are miscounted")
        for (id, known) in connections {
            let phase: Phase? =
                switch machine.members[id]?.phase {
                case .opening: .dialing
                case .inUse: .held
                case .suspended: .suspended
                case .idle: .idle
                case .closing: .closing
                case nil: nil
                }
            must(phase == known.phase, "connection \(id) is \(known.phase), the machine says otherwise")
            must(machine.members[id]?.isBeside == known.isBeside, "connection \(id) uses a slot, or does not")
            must(known.isBeside || known.phase != .suspended, "connection \(id) is suspended and uses a slot")
        }
        must(machine.waiting.count == waiters, "waiting calls are miscounted")
        for (index, origin) in origins.enumerated() {
            let slots = machine.slots[origin]
            must(slots?.open ?? 0 == count(index), "the open connections of an origin are miscounted")
            must(slots?.open ?? 0 <= limits.connections, "too many connections")
            must(slots?.beside ?? 0 == beside(index), "the connections beside the slots are miscounted")
            must(slots?.beside ?? 0 <= limits.suspended, "too many connections beside the slots")
            must(slots?.waiters ?? [] == queues[index], "the queue is another one")
            let idle = slots?.idle ?? []
            must(Set(idle).count == idle.count, "a connection is idle twice")
            must(idle.count == self.idle(index), "the idle connections are others")
            must(idle.isEmpty || queues[index].isEmpty, "a call waits beside an idle connection")
            must(slots == nil || count(index) + beside(index) > 0 || !queues[index].isEmpty, "an empty origin is kept")
        }
    }
}
