import AssentCore
import AssentEnforcement
import AssentTesting
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import TestSupport
import Testing

@testable import AssentHummingbird

@Suite("A service tells the server what became of approved requests until it has heard")
struct OutcomeReportingTests {
    private static let statement = #"{"transaction":"t-1","outcome":{"state":"answered","status":201}}"#

    private let clock = ManualClock()
    private let double = PolicyServerDouble(["actions": ["POST": true], "ttl": 0])

    private func post(_ reporting: OutcomeReporting, isService: Bool = false) async throws -> HTTPResponse.Status {
        try await double.post("/payments?_txid=t-1", reporting: reporting, isService: isService).status
    }

    private func waitForReports(_ count: Int) async {
        while double.reports.withLock({ $0.count }) < count, !Task.isCancelled { await Task.yield() }
    }

    private func waitForSleepers(_ count: Int) async {
        while clock.sleeperCount < count, !Task.isCancelled { await Task.yield() }
    }

    @Test("A report that is lost changes no reply, and is told again after pauses that double, until it is heard; once")
    func repeated() async throws {
        let reporting = OutcomeReporting(clock: clock)
        double.lostReports.withLock { $0 = 5 }
        #expect(try await post(reporting) == .created)
        // The first is the request's own; the next one is sent at once.
        for (count, pause) in [(2, 1.0), (3, 2), (4, 4), (5, 8)] {
            await waitForReports(count)
            await waitForSleepers(1)
            clock.advance(by: pause - 0.5)
            #expect(double.reports.withLock { $0.count } == count)
            clock.advance(by: 0.5)
        }
        await waitForReports(6)
        await reporting.finish()
        #expect(double.reports.withLock { $0 } == Array(repeating: Self.statement, count: 6))
        #expect(double.calls.withLock { $0.count } == 1)
    }

    @Test("What the server refuses is told once, and what it cannot hear now again", arguments: [400, 404, 429, 503])
    func refused(_ status: Int) async throws {
        let reporting = OutcomeReporting(clock: clock)
        double.reportStatus.withLock { $0 = status }
        #expect(try await post(reporting) == .created)
        await reporting.finish()
        let count = double.reports.withLock { $0.count }
        #expect(status < 429 ? count == 1 : count > 1)
    }

    @Test("A report that was heard is told once, and one of a request without a transaction never")
    func heard() async throws {
        let reporting = OutcomeReporting(clock: clock)
        #expect(try await post(reporting) == .created)
        await reporting.finish()
        #expect(double.reports.withLock { $0 } == [Self.statement])
        double.decision.withLock { $0 = { @Sendable _ in PolicyServerDouble.decision(["actions": ["POST": true]]) } }
        #expect(try await double.post(reporting: reporting).status == .created)
        #expect(double.reports.withLock { $0.count } == 1)
    }

    @Test("As a service it tells what is left when the application stops, however long the pause would have been")
    func stopped() async throws {
        double.lostReports.withLock { $0 = 2 }
        #expect(try await post(OutcomeReporting(clock: clock), isService: true) == .created)
        #expect(double.reports.withLock { $0 } == Array(repeating: Self.statement, count: 3))
    }

    @Test("A stop waits for a server that does not answer as long as it was told, and no longer")
    func drained() async {
        let reporting = OutcomeReporting(drainSeconds: 5, clock: clock)
        let tries = Watched(0)
        let isCut = Locked(false)
        let hanging = OutcomeReports.Report("t-1") { [clock] () async throws(EnforcementError) in
            let isFirst = tries.update { tries in
                tries += 1
                return tries == 1
            }
            if !isFirst {
                do {
                    try await clock.sleep(until: .distantFuture)
                } catch {
                    isCut.withLock { $0 = true }
                }
            }
            throw EnforcementError(.unavailable, "It hangs.")
        }
        await reporting.tell(hanging)
        await tries.wait { $0 == 2 }
        await waitForSleepers(1)
        let finishing = Task { await reporting.finish() }
        await waitForSleepers(2)
        clock.advance(by: 4)
        #expect(!isCut.withLock { $0 })
        clock.advance(by: 1)
        await finishing.value
        #expect(isCut.withLock { $0 })
        #expect(tries.value == 2)
        // Nothing begins to wait after the stop.
        await reporting.tell(
            .init("t-2") { () async throws(EnforcementError) in throw EnforcementError(.unavailable, "It is away.") })
        #expect(clock.sleeperCount == 0)
    }

    @Test("No more wait than there is room for, beside one that is being told: the oldest goes")
    func bounded() async {
        let reporting = OutcomeReporting(capacity: 3, clock: clock)
        let isAway = Locked(true)
        let heard = Watched<[Int]>([])
        for id in 0..<10 {
            await reporting.tell(
                .init("t-\(id)") { () async throws(EnforcementError) in
                    guard !isAway.withLock({ $0 }) else { throw EnforcementError(.unavailable, "It is away.") }
                    heard.update { $0.append(id) }
                })
        }
        await waitForSleepers(1)
        isAway.withLock { $0 = false }
        await reporting.finish()
        #expect((3...4).contains(heard.value.count))
        #expect(heard.value.contains(9))
    }
}
