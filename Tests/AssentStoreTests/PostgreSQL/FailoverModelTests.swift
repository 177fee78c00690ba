#if PostgreSQL && os(Linux)
import AssentCore
import TestSupport
import Testing

@testable import AssentStore

/// Random walks over ``FailoverModel`` look for a thing that is granted twice, or granted and lost, and for a read of
/// what no standby has.
@Suite("PostgreSQL: fail-over, as a model")
struct FailoverModelTests {
    /// A walk of so many moves. Both nodes have used the database before it begins.
    private static func walk(seed: UInt64, moves: Int, requiresStandby: Bool) -> FailoverModel {
        var random = seed
        func roll(_ count: Int) -> Int {
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int((random >> 33) % UInt64(count))
        }
        var world = FailoverModel(requiresStandby: requiresStandby)
        for node in 0..<2 {
            world.spend(-1 - node, node)
            world.mark(node)
        }
        var trace: [String] = []
        for step in 0..<moves {
            let (move, node, server) = (roll(48), roll(2), roll(3))
            trace.append("\(move)/\(node)\(server)")
            // A thing that was tried lately, or a new one.
            Self.perform(move, on: &world, node, server, thing: step / 4)
            world.check()
            if !world.violations.isEmpty {
                world.violations.append("seed \(seed): \(trace.suffix(16).joined(separator: " "))")
                break
            }
        }
        return world
    }

    private static func perform(_ move: Int, on world: inout FailoverModel, _ node: Int, _ server: Int, thing: Int) {
        switch move {
        case 0: world.isLinked = false
        case 1, 2: world.mendLink()
        case 3: world.crash(server)
        case 4, 5, 6: world.start(server)
        case 7, 8: world.promote(server)
        case 9, 10: world.rejoin(server)
        case 11, 44: world.cancelWaits(server)
        case 12: world.emptyNames()
        case 13, 14: world.setNames()
        case 15, 40...43: world.promoteSecond(server)
        case 16: world.takeSnapshot()
        case 17: world.startCopy()
        case 18: world.stopCopy()
        case 19: world.restore()
        case 20: world.fence()
        case 21: world.forget(node)
        case 22: world.reach(node, server)
        case 23: world.restart(node)
        case 24, 25: world.watch(node)
        case 26, 27: world.mark(node)
        case 28, 45...47: world.giveUp(node)
        case 29...33: world.ask(node)
        default: world.spend(thing, node)
        }
    }

    /// What can become of a call, and each trouble.
    private static func events(requiresStandby: Bool) -> [String] {
        [
            "granted", "silent", "taken back", "unknown", "promoted", "two promoted", "rejoined", "old primary back",
            "conflict", "otherHistory", "copy", "not confirmed", "names emptied", "copied", "restored", "forgotten",
        ] + (requiresStandby ? [] : ["loss accepted"])
    }

    @Test(
        "Random moves grant nothing twice, lose nothing that was granted, and show nothing too early",
        arguments: [false, true])
    func random(requiresStandby: Bool) {
        let events = Self.events(requiresStandby: requiresStandby)
        var counts: [String: Int] = [:]
        for seed in 0..<1_000 {
            // Twenty thousand moves, and as many more as it takes until each of these was met.
            if seed >= 200, !Soak.isOn, events.allSatisfy({ counts[$0] != nil }) { break }
            let world = Self.walk(seed: UInt64(seed), moves: 100, requiresStandby: requiresStandby)
            #expect(world.violations.isEmpty)
            if !world.violations.isEmpty { return }
            counts.merge(world.counts, uniquingKeysWith: +)
        }
        for what in events { #expect(counts[what, default: 0] > 0, "\(what): \(counts)") }
    }
}
#endif
