import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine

/// As `make soak` runs it: a hundred thousand unlocks in place of two thousand.
private let isLong = ProcessInfo.processInfo.environment["ASSENT_SOAK"] == "1"

/// A device's ratchet with its file, its crashes and a network that loses, repeats and delays, against the statements.
@Suite("The ratchet: no false alarm, and each copy is found")
struct SigningRatchetTests {
    /// What is in the device's file.
    private struct File {
        var r: SigningHash
        var next: SigningHash?
    }

    /// A device and what the network still has of it.
    private struct Run {
        let fixture: SigningStoreFixture
        let container: SigningContainerRecord
        var random: SeededRandom
        var file: File
        var sent: [SlotTry] = []
        var alarms = 0
        var evaluations = 0
        /// Whether the user has authenticated and not yet opened a key since then.
        var hasAuthenticated = false

        /// Chance 1 in `n`.
        mutating func once(in n: Int) -> Bool { Int(random.bytes(2).reduce(0) { $0 << 8 | Int($1) }) % n == 0 }

        /// Sends a request; gives whether the answer has arrived.
        mutating func send(_ attempt: SlotTry) async throws -> Bool {
            do {
                let lock = AssistedPasswordLock(max: 10, cap: 100, delays: [])
                let n = try await fixture.unlock(container, attempt, lock: lock).n
                evaluations += 1
                if hasAuthenticated || !once(in: 3) {
                    try await fixture.slots.confirm(fixture.confirmed(container, n), of: container)
                    hasAuthenticated = false
                }
                // Before what was never confirmed reaches the cap, which would destroy the key.
                if evaluations.isMultiple(of: 50) { try await authenticate() }
                return true
            } catch let refusal as SigningRefusal {
                if refusal.code == .containerSuspect { alarms += 1 }
                if refusal.code == .locked { try await authenticate() }
                return false
            }
        }

        private mutating func authenticate() async throws {
            _ = try await fixture.slots.act(.unlock, on: .signing, of: container, by: "ana")
            hasAuthenticated = true
        }

        /// One unlock of the device, as it may go wrong.
        mutating func unlock() async throws {
            let next = file.next ?? SigningHash(random: fixture.base.context.random)
            if once(in: 8) { return }  // Killed before the file is written.
            file.next = next
            if once(in: 8) { return }  // Killed after that.
            let attempt = fixture.attempt(container, r: file.r, next: next)
            sent.append(attempt)
            if once(in: 8) { return }  // Lost on its way, and perhaps delayed.
            let answered = try await send(attempt)
            if once(in: 6) { _ = try await send(attempt) }  // Repeated on the network.
            guard answered, !once(in: 5) else { return }  // The answer is lost, or the process is killed.
            file = File(r: next)
        }

        /// A request of before arrives a second time, as late as its nonce counts.
        mutating func disturb() async throws {
            fixture.base.clock.advance(by: Double(random.bytes(1)[0] % 40))
            let now = fixture.now
            sent.removeAll { $0.nonceMadeAt <= now - 300 }
            guard once(in: 3), let old = sent.first else { return }
            _ = try await send(old)
        }
    }

    private static func run(seed: UInt64) async throws -> Run {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.withSlot(expiresIn: 1 << 40)
        return Run(
            fixture: fixture, container: container, random: SeededRandom(seed: seed),
            file: File(r: SigningHash(random: fixture.base.context.random)))
    }

    @Test(
        "Two thousand unlocks with crashes, lost, repeated and delayed requests give no alarm",
        arguments: 1...(isLong ? 20 : 4))
    func noAlarm(seed: Int) async throws {
        var run = try await Self.run(seed: UInt64(seed))
        let steps = isLong ? 5000 : 500
        for step in 0..<steps {
            try await run.unlock()
            try await run.disturb()
            guard run.alarms == 0 else {
                Issue.record("an alarm at step \(step)")
                return
            }
        }
        #expect(run.evaluations > steps * 2 / 5)
        if isLong { print("seed \(seed): \(steps) unlocks, \(run.evaluations) evaluations, no alarm") }
    }

    @Test("A copied file is found when both were used a minute apart", arguments: 1...(isLong ? 1000 : 20))
    func copies(seed: Int) async throws {
        var run = try await Self.run(seed: UInt64(100 + seed))
        for _ in 0..<(seed % 7 + 1) { try await run.unlock() }
        var copy = run.file
        // Both go on until each of them has had an answer.
        func use(_ file: inout File) async throws -> Bool {
            run.fixture.base.clock.advance(by: 61)
            let next = file.next ?? SigningHash(random: run.fixture.base.context.random)
            file.next = next
            guard try await run.send(run.fixture.attempt(run.container, r: file.r, next: next)) else { return false }
            file = File(r: next)
            return true
        }
        var uses = 0
        while run.alarms == 0, uses < 6 {
            uses += 1
            _ = try await use(&copy)
            var mine = run.file
            _ = try await use(&mine)
            run.file = mine
        }
        #expect(run.alarms > 0)
        #expect(try await run.fixture.state(run.container) == .suspect)
    }
}
