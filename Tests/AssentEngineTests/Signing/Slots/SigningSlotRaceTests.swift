import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("A password slot, two nodes, and every way in which a write can fail")
struct SigningSlotRaceTests {
    @Test("Of a hundred unlocks in parallel over two nodes exactly as many are evaluated as the policy allows")
    func parallel() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.withSlot()
        let evaluated = try await Self.unlocks(100, container, fixture) { _ in .none }
        #expect(evaluated.sorted() == [1, 2, 3, 4, 5])
        #expect(try await fixture.slot(container).n == 5)
    }

    @Test("With nodes that lose their commits or die, no more are evaluated, and none that was not counted")
    func cuts() async throws {
        for round in 0..<8 {
            let fixture = try await SigningStoreFixture()
            let container = try await fixture.withSlot()
            let faults = NodeDatabase.Fault.allCases
            let evaluated = try await Self.unlocks(100, container, fixture) { faults[($0 + round) % faults.count] }
            let slot = try await fixture.slot(container)
            #expect(slot.n == 5 && slot.unconfirmed == 5)
            #expect(Set(evaluated).count == evaluated.count && evaluated.allSatisfy { (1...5).contains($0) })
            let notes = try await fixture.slotNotes(container).filter { $0.hasPrefix("evaluated") }.sorted()
            #expect(notes == (1...5).map { "evaluated \($0)" })
        }
    }

    /// The numbers of the evaluations that were made.
    private static func unlocks(
        _ count: Int, _ container: SigningContainerRecord, _ fixture: SigningStoreFixture,
        fault: @escaping @Sendable (Int) -> NodeDatabase.Fault
    ) async throws -> [Int64] {
        try await withThrowingTaskGroup(of: Int64?.self) { group in
            for index in 0..<count {
                let database = NodeDatabase(fixture.base.database, [fault(index)])
                let store = try fixture.node(database)
                let attempt = fixture.attempt(container)
                group.addTask {
                    let counted = try? await store.slots.count(
                        attempt, of: container, lock: SigningStoreFixture.lock, at: fixture.now)
                    return database.isDead ? nil : counted?.n
                }
            }
            return try await group.reduce(into: []) { all, n in if let n { all.append(n) } }
        }
    }

    /// What somebody else does over the other node.
    private enum Other: CaseIterable {
        case nothing, guess, wipe, authenticate, confirm, revoke
    }

    private struct Case: CustomStringConvertible {
        /// What happens to the first node's writes: the count, then the confirmation.
        let faults: [NodeDatabase.Fault]
        let other: Other
        /// Before which of these writes the other one comes.
        let before: Int

        var description: String { "\(faults), \(other) before \(before)" }
    }

    @Test("Whatever fails, each evaluation is counted once, and what is confirmed is forgiven once")
    func explore() async throws {
        let faults = NodeDatabase.Fault.allCases
        let fixture = try await SigningStoreFixture()
        for each in faults.flatMap({ a in faults.map { [a, $0] } }).flatMap({ faults in
            Other.allCases.flatMap { other in [0, 1].map { Case(faults: faults, other: other, before: $0) } }
        }) {
            try await run(each, fixture)
        }
    }

    private func run(_ each: Case, _ fixture: SigningStoreFixture) async throws {
        let container = try await fixture.withSlot()
        // Evaluation 1 is there, and its confirmation is on its way.
        _ = try await fixture.unlock(container)
        let others = Locked<[Int64]>([])
        let database = NodeDatabase(fixture.base.database, each.faults) { write in
            guard write == each.before else { return }
            await act(each.other, container, fixture) { n in others.withLock { $0.append(n) } }
        }
        let store = try fixture.node(database)
        let attempt = fixture.attempt(container)
        func once(_ store: any SigningPart, _ isAlive: () -> Bool) async -> Int64? {
            let counted = try? await store.slots.count(
                attempt, of: container, lock: SigningStoreFixture.lock, at: fixture.now)
            guard isAlive(), let n = counted?.n else { return nil }
            try? await store.slots.confirm(fixture.confirmed(container, n), of: container)
            return n
        }
        let first = await once(store) { !database.isDead }
        // The device repeats the same request, and its stored confirmation.
        let repeated = await once(fixture) { true }
        let slot = try await fixture.slot(container)
        let confirmed = try await fixture.base.database.run(
            .read("SELECT n FROM signing_confirms WHERE did = \(container.did)")
        ).map { try $0.integer("n") }
        let notes = try await fixture.slotNotes(container).filter { $0.hasPrefix("evaluated") }.sorted()
        var faults: [String] = []
        func expect(_ condition: Bool, _ fault: String) { if !condition { faults.append(fault) } }
        let given = Set([1] + [first, repeated].compactMap(\.self) + others.withLock { $0 })
        expect(given.allSatisfy { $0 <= slot.n } && given.count <= slot.n, "\(given) of \(slot.n)")
        // Another request between them makes a new try of the repetition.
        let isLast = each.other != .guess
        expect(!isLast || first == nil || repeated == nil || first == repeated, "one request was counted twice")
        expect(notes == (1...slot.n).map { "evaluated \($0)" }, "\(notes)")
        expect(slot.unconfirmed >= 0 && slot.floor <= slot.n, "\(slot)")
        let isForgiven = each.other == .authenticate && slot.floor > 0
        expect(isForgiven || slot.unconfirmed == slot.n - Int64(confirmed.count), "\(slot) \(confirmed)")
        expect(isForgiven || slot.floor == (confirmed.max() ?? 0), "\(slot) \(confirmed)")
        expect(confirmed.allSatisfy(given.contains), "confirmed what was never evaluated")
        let isGone = each.other == .wipe || each.other == .revoke
        expect(slot.sealedKey == nil || !isGone || others.withLock { $0.isEmpty }, "a key is left")
        #expect(faults.isEmpty, "\(each)")
        _ = try await fixture.devices.change(container, .revoke, by: "ana", at: fixture.now)
    }

    private func act(
        _ other: Other, _ container: SigningContainerRecord, _ fixture: SigningStoreFixture, note: (Int64) -> Void
    ) async {
        switch other {
        case .nothing: break
        case .guess: if let n = try? await fixture.unlock(container).n { note(n) }
        case .wipe:
            if (try? await fixture.slots.act(.wipe, on: .signing, of: container, by: "admin")) == true { note(1) }
        case .authenticate: _ = try? await fixture.slots.act(.unlock, on: .signing, of: container, by: "ana")
        case .confirm: try? await fixture.slots.confirm(fixture.confirmed(container, 1), of: container)
        case .revoke:
            if (try? await fixture.devices.change(container, .revoke, by: "ana", at: fixture.now)) == true { note(1) }
        }
    }
}
