import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import Foundation
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("Calls that wait")
struct SigningWaitingTests {
    @Test("A device and a relying party that wait are answered when there is something, or when the time is over")
    func waiting() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let clock = world.base.clock
        let empty = Waiting { try await device.list(container.did, wait: 5).map(\.txn) }
        #expect(try await empty.value(clock).isEmpty)
        let tickets = Waiting { try await device.list(container.did, wait: 25).map(\.txn) }
        await tickets.untilSleeping(clock)
        let (txn, _) = try await world.asked()
        #expect(try await tickets.value(clock) == [txn])
        let state = Waiting { try await world.provider.parties.view(txn.text, client: "shop", wait: 25).state }
        await state.untilSleeping(clock)
        _ = try await device.approve(txn, container)
        #expect(try await state.value(clock) == .approved)
    }

    @Test("However many wait, each is heard of, and no statement asks for all of them")
    func crowd() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let clock = world.base.clock
        let (txn, _) = try await world.asked()
        let bell = world.provider.parties.realm.bell
        let crowd = Waiting {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<4 * SigningBell.pieceLimit {
                    group.addTask {
                        let other = SigningID(random: SystemRandom())
                        await bell.wait(for: .container(other), besides: [other, txn], seconds: 5)
                    }
                }
            }
        }
        await crowd.untilSleeping(clock)
        let state = Waiting { try await world.provider.parties.view(txn.text, client: "shop", wait: 25).state }
        await state.untilSleeping(clock)
        let start = clock.now
        _ = try await device.approve(txn, container)
        #expect(try await state.value(clock) == .approved)
        #expect(clock.now.timeIntervalSince(start) < 5)
        try await crowd.value(clock)
    }

    @Test("A clock that is set back lets nobody wait longer")
    func setBack() async throws {
        let world = try await SigningWorld()
        _ = try await world.enrolled()
        let clock = world.base.clock
        let (txn, _) = try await world.asked()
        let state = Waiting { try await world.provider.parties.view(txn.text, client: "shop", wait: 25).state }
        await state.untilSleeping(clock)
        clock.put(by: -3600)
        let start = clock.now
        #expect(try await state.value(clock) == .pending)
        #expect(clock.now.timeIntervalSince(start) < 60)
    }

    @Test("While something is open that a device cannot answer, it hears at once of the rest")
    func unanswerable() async throws {
        var special = SigningWorld.payment
        special.statuses[0] = SigningTemplate.Status(
            name: "accept", label: LocalizedText("Approve"), effect: .approve, keys: ["extra"])
        let world = try await SigningWorld {
            $0.keys.append(OfferedKey(usage: .sign, label: "extra", policy: SigningSettings.policyID))
            $0.templates["special"] = special
        }
        let (device, container) = try await world.enrolled()
        let clock = world.base.clock
        _ = try await world.base.database.run([
            SQLStatement("UPDATE signing_keys SET state = 'RETIRED' WHERE label = 'extra'")
        ])
        _ = try await world.asked("special")
        func heard(after event: () async throws -> Void) async throws -> (list: TransactionList, seconds: Double) {
            let list = Waiting<TransactionList> {
                try await device.askSealed("transactions/list", container.did, ListBody(wait: 20))
            }
            await list.untilSleeping(clock)
            let start = clock.now
            try await event()
            return (try await list.value(clock), clock.now.timeIntervalSince(start))
        }
        let nothing = try await heard {}
        #expect(nothing.list.tickets.isEmpty && nothing.seconds >= 19)
        let notice = try await heard { _ = try await world.enrolled() }
        #expect(notice.list.notices.map(\.event) == [.enrolled] && notice.seconds < 5)
        let seen = notice.list.notices.map(\.id)
        try await world.provider.notices.forget(seen, for: container.did)
        let asked = try await heard { _ = try await world.asked() }
        #expect(asked.list.tickets.count == 1 && asked.seconds < 5)
    }
}

/// A call that waits by a clock which somebody must move.
private struct Waiting<Value: Sendable>: Sendable {
    private let isDone = Locked(false)
    private let task: Task<Value, any Error>

    init(_ body: @escaping @Sendable () async throws -> Value) {
        task = Task { [isDone] in
            defer { isDone.withLock { $0 = true } }
            return try await body()
        }
    }

    /// Until it has looked for the first time.
    func untilSleeping(_ clock: ManualClock) async {
        while clock.sleeperCount == 0, !isDone.withLock({ $0 }) { await Task.yield() }
    }

    /// Lets it look again and again until it ends.
    func value(_ clock: ManualClock) async throws -> Value {
        while !isDone.withLock({ $0 }) {
            if clock.sleeperCount > 0 { clock.advance(by: SigningBell.interval) }
            await Task.yield()
        }
        return try await task.value
    }
}
