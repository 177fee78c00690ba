import Foundation
import Testing

@testable import AssentServer

@Suite("Which of several services the gateway asks next")
struct UpstreamPoolTests {
    private static let start = Date(timeIntervalSince1970: 1_767_225_600)
    private static let rules = UpstreamPool.Rules(failures: 2, pause: 10, failedChecks: 2, checkEvery: 7)

    // MARK: - By example

    @Test("Services in use take turns, and each request has all of them to try")
    func turns() {
        var pool = UpstreamPool(count: 3)
        let orders = (0..<4).map { _ in pool.order(at: Self.start) }
        #expect(orders == [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]])
        var one = UpstreamPool(count: 1)
        for _ in 0..<3 {
            #expect(one.order(at: Self.start) == [0])
            _ = one.note(.notReached, of: 0, at: Self.start)
        }
        var none = UpstreamPool(count: 0)
        #expect(none.order(at: Self.start).isEmpty && none.note(.reached, of: 0, at: Self.start) == nil)
    }

    @Test("A service is left out after failures in a row, tried by one request after a time, and back when that works")
    func pause() {
        var pool = UpstreamPool(count: 2, rules: Self.rules)
        let first = pool.note(.notReached, of: 0, at: Self.start)
        let between = pool.note(.reached, of: 0, at: Self.start)
        let again = pool.note(.notReached, of: 0, at: Self.start)
        #expect(first == nil && between == nil && again == nil, "they are not in a row")
        #expect(pool.note(.notReached, of: 0, at: Self.start) == .leftOut)
        for second in [0, 5, 9.9] {
            #expect(pool.order(at: Self.start + second) == [1, 0], "second \(second)")
        }
        #expect(pool.order(at: Self.start + 10) == [0, 1], "this one tries it")
        #expect(pool.order(at: Self.start + 10) == [1, 0], "and no other until it is known how that went")
        #expect(pool.note(.notReached, of: 0, at: Self.start + 11) == nil)
        #expect(pool.order(at: Self.start + 20.9) == [1, 0], "the time begins anew")
        #expect(pool.order(at: Self.start + 21) == [0, 1])
        #expect(pool.note(.reached, of: 0, at: Self.start + 22) == .backAgain)
        let next = [pool.order(at: Self.start + 22), pool.order(at: Self.start + 22)]
        #expect(Set(next) == [[0, 1], [1, 0]])
    }

    @Test("A trial of which nothing is ever heard is followed by another one, and so is a clock that is set back")
    func lostTrial() {
        var pool = UpstreamPool(count: 2, rules: Self.rules)
        for _ in 0..<2 { _ = pool.note(.notReached, of: 0, at: Self.start) }
        let trials = [10.0, 19, 20, 29, 30].map { pool.order(at: Self.start + $0).first == 0 }
        #expect(trials == [true, false, true, false, true])
        #expect(pool.order(at: Self.start - 86_400).first == 0, "it would be left out for a day")
    }

    @Test("A service that fails its checks is asked last until a check succeeds, whatever connections say")
    func checks() {
        var pool = UpstreamPool(count: 2, rules: Self.rules)
        #expect(pool.note(.checkFailed, of: 1, at: Self.start) == nil)
        #expect(pool.note(.checkFailed, of: 1, at: Self.start) == .leftOut)
        #expect(pool.note(.reached, of: 1, at: Self.start) == nil)
        for second in [0.0, 10, 1_000] { #expect(pool.order(at: Self.start + second) == [0, 1]) }
        #expect(pool.note(.checkPassed, of: 1, at: Self.start) == .backAgain)
        #expect(pool.note(.checkFailed, of: 1, at: Self.start) == nil, "the failures before count no more")
        for _ in 0..<2 { _ = pool.note(.notReached, of: 0, at: Self.start) }
        #expect(pool.note(.checkPassed, of: 0, at: Self.start) == .backAgain, "it was reached")
    }

    @Test("Each service is checked as often as its route says, once at a time, and also after the clock was set back")
    func due() {
        var pool = UpstreamPool(count: 2, rules: Self.rules)
        let due = [0.0, 0, 6.9, 7, 13.9, 14, -100, -99].map { pool.due(at: Self.start + $0) }
        #expect(due == [[0, 1], [], [], [0, 1], [], [0, 1], [0, 1], []])
        var silent = UpstreamPool(count: 2)
        #expect(silent.due(at: Self.start).isEmpty)
    }

    // MARK: - Every short history

    /// What the pool does, said of the whole history instead of step by step.
    private struct Chronicle {
        enum Entry: Equatable {
            case event(UpstreamPool.Event, member: Int, at: TimeInterval)
            case trial(member: Int, at: TimeInterval)
        }

        var entries: [Entry] = []

        /// What concerns one service, latest first.
        private func story(of member: Int) -> [Entry] {
            entries.reversed().filter { entry in
                switch entry {
                case .event(_, let other, _), .trial(let other, _): other == member
                }
            }
        }

        private func events(of member: Int) -> [UpstreamPool.Event] {
            story(of: member).compactMap { entry in
                if case .event(let event, _, _) = entry { event } else { nil }
            }
        }

        func isUnwell(_ member: Int) -> Bool {
            events(of: member).prefix { $0 != .checkPassed }.filter { $0 == .checkFailed }.count >= 2
        }

        /// When its pause began the last time; `nil` when it has none.
        func pauseBegan(_ member: Int) -> TimeInterval? {
            let sinceReached = story(of: member).prefix { entry in
                if case .event(let event, _, _) = entry { event != .reached && event != .checkPassed } else { true }
            }
            var failures = 0
            for entry in sinceReached {
                if case .event(.notReached, _, _) = entry { failures += 1 }
            }
            guard failures >= 2 else { return nil }
            for entry in sinceReached {
                switch entry {
                case .event(.notReached, _, let time), .trial(_, let time): return time
                default: continue
                }
            }
            return nil
        }

        func isInUse(_ member: Int) -> Bool { pauseBegan(member) == nil && !isUnwell(member) }
    }

    private struct World {
        var pool = UpstreamPool(count: 2, rules: UpstreamPoolTests.rules)
        var chronicle = Chronicle()
        var time: TimeInterval = 0
        var now: Date { UpstreamPoolTests.start + time }

        mutating func ask() {
            let order = pool.order(at: now)
            #expect(order.sorted() == [0, 1], "each once: \(chronicle.entries)")
            let due = [0, 1].first { member in
                !chronicle.isUnwell(member) && chronicle.pauseBegan(member).map { time >= $0 + 10 } == true
            }
            if let due {
                #expect(order.first == due, "\(due) is to be tried: \(chronicle.entries)")
                chronicle.entries.append(.trial(member: due, at: time))
            } else {
                let used = [0, 1].filter(chronicle.isInUse)
                #expect(used.isEmpty || order.first.map(used.contains) == true, "\(order): \(chronicle.entries)")
            }
        }

        mutating func note(_ event: UpstreamPool.Event, _ member: Int) {
            let before = chronicle.isInUse(member)
            let change = pool.note(event, of: member, at: now)
            chronicle.entries.append(.event(event, member: member, at: time))
            let after = chronicle.isInUse(member)
            let expected: UpstreamPool.Change? = before == after ? nil : after ? .backAgain : .leftOut
            #expect(change == expected, "\(chronicle.entries)")
        }
    }

    /// Returns how many histories there were.
    private func walk(_ world: World, depth: Int) -> Int {
        guard depth > 0 else { return 1 }
        var count = 0
        var asked = world
        asked.ask()
        count += walk(asked, depth: depth - 1)
        var later = world
        later.time += 5
        count += walk(later, depth: depth - 1)
        for event in UpstreamPool.Event.allCases {
            for member in [0, 1] {
                var next = world
                next.note(event, member)
                count += walk(next, depth: depth - 1)
            }
        }
        return count
    }

    @Test("After every history of five steps with two services the pool does what the whole history asks for")
    func histories() {
        #expect(walk(World(), depth: 5) == 100_000)
    }

    @Test("A pause that is over is found in long histories as well")
    func longHistories() {
        for trialFails in [true, false] {
            var world = World()
            for _ in 0..<2 { world.note(.notReached, 0) }
            for _ in 0..<40 {
                world.time += 4
                world.ask()
                if case .trial? = world.chronicle.entries.last {
                    if trialFails { world.note(.notReached, 0) }
                    world.note(.reached, 1)
                }
            }
            let trials = world.chronicle.entries.filter { if case .trial = $0 { true } else { false } }
            #expect(trials.count == 13, "every 12 seconds, the first multiple of 4 that is 10 or more")
        }
    }
}
