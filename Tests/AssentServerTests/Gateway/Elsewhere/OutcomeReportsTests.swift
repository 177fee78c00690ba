import AssentCore
import AssentEnforcement
import AssentTesting
import Foundation
import InMemoryLogging
import Logging
import TestSupport
import Testing

@testable import AssentServer

@Suite("Outcomes wait in a bounded memory until the engine has heard of them")
struct OutcomeReportsTests {
    /// An engine that hears, or fails in one way.
    private struct Engine: Sendable {
        let heard = Watched<[String]>([])
        let tries = Watched(0)
        let failure = Locked<EnforcementError.Code?>(nil)

        func report(_ id: Int, mayBeEarly: WaitingTime? = nil) -> OutcomeReports.Report {
            .init("t\(id)", mayBeEarly: mayBeEarly) { () async throws(EnforcementError) in
                tries.update { $0 += 1 }
                if let code = failure.withLock({ $0 }) { throw EnforcementError(code, "It failed.", status: 404) }
                heard.update { $0.append("t\(id)") }
            }
        }
    }

    private let clock = ManualClock()
    private let engine = Engine()
    private let log = InMemoryLogHandler()

    private var logger: Logger { Logger(label: "test") { [log] _ in log } }

    private func reports(capacity: Int) -> OutcomeReports {
        OutcomeReports(capacity: capacity, clock: clock, logger: logger)
    }

    private func outcomes(of realms: [String], capacity: Int) -> RealmOutcomes {
        RealmOutcomes(realms, capacity: capacity, clock: clock, logger: logger)
    }

    private func waitForPause() async {
        while clock.sleeperCount == 0, !Task.isCancelled { await Task.yield() }
    }

    @Test("Too many drop the oldest, each with a line in the log, and the others are told in their order")
    func bounded() async throws {
        let reports = reports(capacity: 5)
        for id in 0..<12 { await reports.add(engine.report(id)) }
        #expect(await reports.count == 5)
        let running = Task { await reports.run() }
        await engine.heard.wait { $0.count == 5 }
        #expect(Set(engine.heard.value) == ["t7", "t8", "t9", "t10", "t11"])
        await reports.finish()
        await running.value
        #expect(await reports.count == 0)
        let forgotten = log.entries.filter { "\($0.message)".contains("forgotten") }
        #expect(forgotten.count == 7)
    }

    @Test("What fails is told again after a pause that doubles, up to half a minute")
    func pauses() async throws {
        let reports = reports(capacity: 100)
        engine.failure.withLock { $0 = .unavailable }
        await reports.add(engine.report(1))
        let running = Task { await reports.run() }
        for (index, pause) in [1.0, 2, 4, 8, 16, 30, 30].enumerated() {
            await engine.tries.wait { $0 == index + 1 }
            await waitForPause()
            clock.advance(by: pause - 0.5)
            #expect(engine.tries.value == index + 1)
            clock.advance(by: 0.5)
        }
        await engine.tries.wait { $0 == 8 }
        await waitForPause()
        engine.failure.withLock { $0 = nil }
        clock.advance(by: 30)
        await engine.heard.wait { $0 == ["t1"] }
        await reports.finish()
        await running.value
    }

    @Test("What the engine does not hear keeps what is behind it waiting for one pause only")
    func behind() async throws {
        let reports = reports(capacity: 100)
        let deaf = Engine()
        deaf.failure.withLock { $0 = .forbidden }
        for id in 0..<16 { await reports.add(deaf.report(id)) }
        await reports.add(engine.report(1))
        let running = Task { await reports.run() }
        await deaf.tries.wait { $0 == 16 }
        await waitForPause()
        clock.advance(by: 1)
        await engine.heard.wait { $0 == ["t1"] }
        await reports.finish()
        await running.value
        #expect(await reports.count == 16)
    }

    @Test("What the engine of one realm does not hear delays nothing of another realm, and drives nothing of it out")
    func realms() async throws {
        let outcomes = outcomes(of: ["alpha", "beta"], capacity: 8)
        let (alpha, beta) = (try #require(outcomes["alpha"]), try #require(outcomes["beta"]))
        #expect(outcomes["gamma"] == nil)
        let deaf = Engine()
        deaf.failure.withLock { $0 = .unavailable }
        await beta.add(engine.report(0))
        for id in 0..<20 { await alpha.add(deaf.report(id)) }
        #expect(await outcomes.count == 7)
        let running = Task { await outcomes.run() }
        // A realm that begins late would send both of its outcomes at once, in either order.
        await engine.heard.wait { $0 == ["t0"] }
        await deaf.tries.wait { $0 == 6 }
        await waitForPause()
        #expect(await outcomes.isPausing)
        // The clock stands still, so no pause ends.
        await beta.add(engine.report(1))
        await engine.heard.wait { $0 == ["t0", "t1"] }
        #expect(deaf.tries.value == 6)
        await outcomes.finish()
        await running.value
        #expect(await alpha.count == 6)
        #expect(await beta.count == 0)
    }

    @Test("A realm has the room that the others do not need, beside their own, and gives it back when it is heard")
    func sharedRoom() async throws {
        let outcomes = outcomes(of: (0..<4).map { "realm\($0)" }, capacity: 16)
        let (first, second) = (try #require(outcomes["realm0"]), try #require(outcomes["realm1"]))
        for id in 0..<20 { await first.add(engine.report(id)) }
        // Two are its own, and eight are for all.
        #expect(await first.count == 10)
        for id in 20..<30 { await second.add(engine.report(id)) }
        #expect(await second.count == 2)
        let running = Task { await outcomes.run() }
        await engine.heard.wait { $0.count == 12 }
        await outcomes.finish()
        await running.value
        #expect(await outcomes.count == 0)
        for id in 30..<50 { await second.add(engine.report(id)) }
        #expect(await second.count == 10)
        for id in 50..<60 { await first.add(engine.report(id)) }
        #expect(await first.count == 2)
    }

    @Test("Each of very many realms has room for one outcome")
    func manyRealms() async throws {
        let realms = (0..<5).map { "realm\($0)" }
        let outcomes = outcomes(of: realms, capacity: 2)
        for realm in realms {
            let reports = try #require(outcomes[realm])
            for id in 0..<3 { await reports.add(engine.report(id)) }
            #expect(await reports.count == 1)
        }
    }

    @Test("What the engine refuses is given up, with a line in the log")
    func refused() async throws {
        let reports = reports(capacity: 100)
        engine.failure.withLock { $0 = .refused }
        await reports.add(engine.report(1))
        let running = Task { await reports.run() }
        await engine.tries.wait { $0 == 1 }
        await reports.finish()
        await running.value
        #expect(await reports.count == 0)
        #expect(engine.heard.value.isEmpty && engine.tries.value == 1)
        #expect(log.entries.contains { "\($0.message)".contains("refuses") })
    }

    @Test("What comes before the engine knows the transaction is told each second, and keeps no other waiting longer")
    func early() async throws {
        let reports = reports(capacity: 100)
        let other = Engine()
        engine.failure.withLock { $0 = .refused }
        await reports.add(engine.report(1, mayBeEarly: WaitingTime(30, from: clock.now)))
        let running = Task { await reports.run() }
        for tries in 1...5 {
            await engine.tries.wait { $0 == tries }
            await waitForPause()
            if tries == 5 {
                engine.failure.withLock { $0 = nil }
                await reports.add(other.report(2))
            }
            clock.advance(by: 1)
        }
        await engine.heard.wait { $0 == ["t1"] }
        await other.heard.wait { $0 == ["t2"] }
        await reports.finish()
        await running.value
        #expect(await reports.count == 0)
    }

    @Test("What the engine does not know yet is not told each second for as long as the clock was set back")
    func earlySetBack() async throws {
        await giveUp(knownWithin: 30) {
            clock.put(by: -3600)
            clock.advance(by: 1)
        }
        #expect(engine.tries.value == 2)
    }

    /// Reports what the engine does not know, whose second report comes after `pass` has moved the clock. That one is
    /// the last.
    private func giveUp(knownWithin seconds: TimeInterval, _ pass: () -> Void) async {
        let reports = reports(capacity: 100)
        engine.failure.withLock { $0 = .refused }
        await reports.add(engine.report(1, mayBeEarly: WaitingTime(seconds, from: clock.now)))
        let running = Task { await reports.run() }
        await engine.tries.wait { $0 == 1 }
        await waitForPause()
        pass()
        await engine.tries.wait { $0 == 2 }
        await reports.finish()
        await running.value
        #expect(await reports.count == 0)
    }

    @Test("What the engine does not come to know in time is given up, and nothing is wrong with that")
    func neverTaken() async throws {
        await giveUp(knownWithin: 1) { clock.advance(by: 1) }
        #expect(log.entries.allSatisfy { $0.level < .warning })
    }

    @Test("At the end each is told once more, also behind those that are not heard")
    func finishedBehind() async throws {
        let reports = reports(capacity: 100)
        let deaf = Engine()
        deaf.failure.withLock { $0 = .forbidden }
        for id in 0..<40 { await reports.add(deaf.report(id)) }
        await reports.add(engine.report(1))
        let running = Task { await reports.run() }
        await waitForPause()
        #expect(engine.heard.value.isEmpty)
        await reports.finish()
        await running.value
        #expect(engine.heard.value == ["t1"])
        #expect(await reports.count == 40)
    }

    @Test("The end does not wait for an engine that is away, and says what it did not tell")
    func finished() async throws {
        let reports = reports(capacity: 100)
        engine.failure.withLock { $0 = .unavailable }
        for id in 0..<3 { await reports.add(engine.report(id)) }
        let running = Task { await reports.run() }
        await waitForPause()
        await reports.finish()
        await running.value
        #expect(await reports.count == 3)
        #expect(log.entries.count { "\($0.message)".contains("was not told") } == 3)
    }
}
