import AssentCore
import NIOCore
import TestSupport
import Testing

@testable import AssentTransportNIO

@Suite("The pool keeps its promises in any order of events")
struct PoolStateTests {
    /// What makes two situations the same for what can happen next.
    private struct Situation: Hashable {
        let connections: [[Int]]
        let waiters: Int
        let isShutDown: Bool
        let isNamed: Bool

        init(_ world: PoolWorld) {
            connections = world.connections.values
                .map { [$0.phase.rawValue, $0.generation == world.generation ? 1 : 0, $0.isBeside ? 1 : 0] }
                .sorted { $0.lexicographicallyPrecedes($1) }
            waiters = world.waiters
            isShutDown = world.isShutDown
            isNamed = world.isNamed
        }
    }

    /// Everything that can happen, to everything that there is and to things that there are not.
    private func events(_ world: inout PoolWorld) -> [PoolWorld.Event] {
        var events: [PoolWorld.Event] = [
            .lease(0), .discardIdle(0), .update(isNamed: true), .update(isNamed: false), .shutDown,
            .wait(world.newWaiter(), 0, isLate: false), .wait(world.newWaiter(), 0, isLate: true), .giveUp(0),
        ]
        for waiter in world.queues[0] { events += [.giveUp(waiter), .wait(waiter, 0, isLate: false)] }
        for connection in world.connections.keys.sorted() + [0, 1 << 40] {
            events += [
                .opened(connection), .openFailed(connection), .released(connection), .closed(connection),
                .suspended(connection), .goesOn(connection),
            ]
        }
        return events
    }

    @Test("Every event in every state of two connections, one beside them and two waiting calls")
    func everything() async throws {
        var seen: Set<Situation> = []
        var open = [try PoolWorld(origins: 1, limits: .init(connections: 2, waiters: 2, suspended: 1))]
        var transitions = 0
        while var world = open.popLast() {
            await Task.yield()
            for event in events(&world) {
                var next = world
                next.apply(event)
                next.audit()
                transitions += 1
                if let complaint = next.complaint {
                    Issue.record("\(complaint), at \(event) after \(world.connections) \(world.queues)")
                    return
                }
                if seen.insert(Situation(next)).inserted { open.append(next) }
            }
        }
        // Each of two connections in five phases with old or new pins, beside the slots or not, and each number of
        // waiting calls, was there.
        #expect(seen.count > 250)
        #expect(transitions > 5000)
        #expect(Set(seen.map(\.waiters)) == [0, 1, 2])
        #expect(
            Set(seen.flatMap(\.connections)).count == 13,
            "idle with old pins, opening or idle without a slot, and suspended with one must not exist, all else must")
        #expect(seen.contains { $0.connections.count == 3 && $0.connections.contains { $0.last == 1 } })
    }

    /// Twenty thousand events over all walks, and a million with `make soak`.
    private static let steps = Soak.isOn ? 125_000 : 2_500

    @Test("Random events in eight walks", arguments: 0..<8)
    func walk(seed: Int) async throws {
        var random = SmallRandom(seed: seed)
        var world = try PoolWorld(
            origins: 3, limits: .init(connections: 1 + seed % 4, waiters: 1 + seed % 3, suspended: seed % 3))
        for step in 0..<Self.steps {
            if let event = event(&world, &random, step: step) { world.apply(event) }
            if step % 64 == 0 { world.audit() }
            // Tests of sockets run beside this one, against real time limits.
            if step % 100 == 0 { await Task.yield() }
            if let complaint = world.complaint {
                Issue.record("\(complaint), in step \(step)")
                return
            }
        }
        drain(&world)
        #expect(world.complaint == nil)
        #expect(world.waiters == 0)
        #expect(world.machine.slots.isEmpty && world.machine.members.isEmpty && world.machine.waiting.isEmpty)
    }

    private func event(_ world: inout PoolWorld, _ random: inout SmallRandom, step: Int) -> PoolWorld.Event? {
        // A short walk may not have met the end by chance.
        if step == Self.steps - 1, !world.isShutDown { return .shutDown }
        let origin = random.below(3)
        let some = random.below(40) == 0 ? 1 << 40 : random.pick(world.connections.keys.sorted()) ?? 0
        switch random.below(100) {
        case 0..<22: return .lease(origin)
        case 22..<40: return .wait(world.newWaiter(), origin, isLate: random.below(10) == 0)
        case 40..<45: return random.pick(world.queues[origin]).map { .giveUp($0) }
        case 45..<46: return random.pick(world.queues[origin]).map { .wait($0, origin, isLate: false) }
        case 46..<62: return .opened(some)
        case 62..<66: return .openFailed(some)
        case 66..<72: return .suspended(some)
        case 72..<76: return .goesOn(some)
        case 76..<88: return .released(some)
        case 88..<97: return .closed(some)
        case 97: return .discardIdle(origin)
        case 98: return random.below(4) == 0 ? .update(isNamed: random.below(3) > 0) : nil
        // The end comes once, for the last tenth of the walk.
        default: return step > Self.steps * 9 / 10 ? .shutDown : nil
        }
    }

    /// Ends every connection until nobody is left: each waiting call must have been given something on the way.
    private func drain(_ world: inout PoolWorld) {
        for _ in 0..<1000 {
            guard let connection = world.connections.keys.min() else { break }
            world.apply(.closed(connection))
        }
        world.audit()
    }

    // MARK: - By example

    @Test("A released connection goes to the call that has waited longest, before any newcomer")
    func order() throws {
        var pool = try pool()
        let origin = try Origin("http://b.example")
        guard case .take(.open(let permit)) = pool.lease(origin), case .use = pool.opened(permit.connection) else {
            Issue.record("no connection")
            return
        }
        let waiters = [pool.nextID(), pool.nextID()]
        for waiter in waiters {
            guard case .wait = pool.lease(origin),
                case .stay = pool.wait(waiter, for: origin, until: .distantFuture, now: .now())
            else {
                Issue.record("no wait")
                return
            }
        }
        for waiter in waiters {
            guard case .serve(let service) = pool.released(permit.connection),
                case .reuse(permit.connection, _) = service.grant
            else {
                Issue.record("nobody is served")
                return
            }
            #expect(service.waiter == waiter)
        }
        guard case .keep = pool.released(permit.connection) else {
            Issue.record("not kept")
            return
        }
    }

    @Test("A call that must wait gets a connection that became free before the wait began")
    func freedMeanwhile() throws {
        var pool = try pool()
        let origin = try Origin("http://b.example")
        guard case .take(.open(let permit)) = pool.lease(origin), case .wait = pool.lease(origin) else {
            Issue.record("no connection")
            return
        }
        let served = pool.openFailed(permit.connection)
        #expect(served == nil)
        let waiter = pool.nextID()
        guard case .serve(let service) = pool.wait(waiter, for: origin, until: .distantFuture, now: .now()),
            case .open = service.grant
        else {
            Issue.record("it waits for ever")
            return
        }
        #expect(service.waiter == waiter)
    }

    @Test("A connection that was opened for older pins is not used")
    func olderPins() throws {
        var pool = try pool()
        let origin = try Origin("http://b.example")
        guard case .take(.open(let permit)) = pool.lease(origin) else {
            Issue.record("no connection")
            return
        }
        _ = pool.update(try PinTable([:]))
        guard case .replace = pool.opened(permit.connection), case .refuse = pool.opened(permit.connection) else {
            Issue.record("it is used")
            return
        }
    }

    @Test("A suspended call leaves its slot to the next one, and goes on beside it")
    func suspension() throws {
        var pool = try pool()
        let origin = try Origin("http://b.example")
        guard case .take(.open(let first)) = pool.lease(origin), case .use = pool.opened(first.connection),
            case .wait = pool.lease(origin)
        else {
            Issue.record("no connection")
            return
        }
        let waiter = pool.nextID()
        guard case .stay = pool.wait(waiter, for: origin, until: .distantFuture, now: .now()),
            case .suspend(let service?) = pool.suspended(first.connection), case .open(let second) = service.grant,
            case .use = pool.opened(second.connection)
        else {
            Issue.record("the slot is not free")
            return
        }
        #expect(service.waiter == waiter)
        // One stands beside the slot, and no more may.
        guard case .refuse = pool.suspended(second.connection) else {
            Issue.record("too many are suspended")
            return
        }
        pool.goesOn(first.connection)
        #expect(pool.members[first.connection]?.isBeside == true)
        guard case .close = pool.released(first.connection) else {
            Issue.record("two connections are kept")
            return
        }
    }

    private func pool() throws -> PoolState {
        PoolState(pins: try PinTable([:]), limits: .init(connections: 1, waiters: 4, suspended: 1))
    }
}
