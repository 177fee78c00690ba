import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import Foundation
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("A password slot: what the statements count, forgive and destroy")
struct SigningSlotStoreTests {
    @Test("Tries without a confirmation lock the slot at the policy's count, which a fresh authentication takes back")
    func locks() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.withSlot()
        for n in 1...5 as ClosedRange<Int64> {
            let counted = try await fixture.unlock(container)
            #expect(counted.n == n && counted.tries == 5 - Int(n) && counted.spare == 20 - Int(n))
            #expect(counted.sealedKey == [7])
        }
        for _ in 0..<3 { #expect(try await fixture.refusal(container) == .locked) }
        let locked = try await fixture.slot(container).status(SigningStoreFixture.lock, at: fixture.now)
        #expect(locked.state == .locked && locked.tries == 0 && locked.spare == 15)
        #expect(try await fixture.slots.act(.unlock, on: .signing, of: container, by: "ana"))
        #expect(try await fixture.unlock(container).n == 6)
        let notes = try await fixture.slotNotes(container)
        #expect(
            notes == (1...5).map { "evaluated \($0)" } + [
                "refused -", "refused -", "refused -", "unlocked -", "evaluated 6",
            ])
    }

    @Test(
        "Without a delay a try is not refused for the second in which another one was made", arguments: [[], [0, 9]])
    func noDelay(delays: [Int]) async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.withSlot()
        let lock = AssistedPasswordLock(max: 5, cap: 20, delays: delays)
        func unlock(at now: Int64) async throws -> Int64 {
            try await fixture.slots.count(fixture.attempt(container), of: container, lock: lock, at: now).n
        }
        #expect(try await unlock(at: fixture.now + 1) == 1)
        #expect(try await unlock(at: fixture.now) == 2)
        // The second try has a delay, if there are delays.
        let third = try await signingCode { _ = try await unlock(at: fixture.now + 8) }
        #expect(third == (delays.isEmpty ? nil : .wait))
    }

    @Test("The same request is counted once, and another element under its id is another try")
    func repeats() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.withSlot()
        let first = fixture.attempt(container)
        for _ in 0..<10 { #expect(try await fixture.unlock(container, first).n == 1) }
        let other = SlotTry(
            did: first.did, slot: .signing, generation: 0, rid: first.rid, element: "another", ratchet: "r",
            next: "next", last: 0, nonceMadeAt: fixture.now)
        #expect(try await fixture.unlock(container, other).n == 2)
        #expect(try await fixture.slotNotes(container) == ["evaluated 1", "evaluated 2"])
    }

    @Test("A confirmation gives back its own evaluation and forgives those before it, never a later one, and only once")
    func confirms() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.withSlot()
        for _ in 1...4 { _ = try await fixture.unlock(container) }
        for _ in 0..<3 { try await fixture.slots.confirm(fixture.confirmed(container, 2), of: container) }
        let slot = try await fixture.slot(container)
        #expect(slot.floor == 2 && slot.unconfirmed == 3 && slot.n == 4)
        // Two tries are left of those after the one that was confirmed.
        for n in 5...7 as ClosedRange<Int64> { #expect(try await fixture.unlock(container).n == n) }
        #expect(try await fixture.refusal(container) == .locked)
        try await fixture.slots.confirm(fixture.confirmed(container, 1), of: container)
        let late = try await fixture.slot(container)
        #expect(late.floor == 2 && late.unconfirmed == 5)
        #expect(
            try await signingCode { try await fixture.slots.confirm(fixture.confirmed(container, 8), of: container) }
                == .serverRolledBack)
    }

    @Test("The right password with a confirmation never locks; each kill before it costs one of the spare evaluations")
    func declines() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.withSlot()
        for round in 1...50 as ClosedRange<Int64> {
            #expect(try await fixture.unlock(container).n == round)
            try await fixture.slots.confirm(fixture.confirmed(container, round), of: container)
        }
        #expect(try await fixture.slot(container).unconfirmed == 0)
        // Killed between the evaluation and the stored confirmation, each second time: never locked, but counted.
        for kill in 1...19 as ClosedRange<Int64> {
            _ = try await fixture.unlock(container)
            let n = try await fixture.unlock(container).n
            try await fixture.slots.confirm(fixture.confirmed(container, n), of: container)
            #expect(try await fixture.slot(container).unconfirmed == kill)
        }
        // A fresh authentication and a confirmed evaluation take all of them back, before the last one.
        try #require(try await fixture.slots.act(.unlock, on: .signing, of: container, by: "ana"))
        let n = try await fixture.unlock(container).n
        #expect(try await fixture.slot(container).unconfirmed == 20)
        try await fixture.slots.confirm(fixture.confirmed(container, n), of: container)
        #expect(try await fixture.slot(container).unconfirmed == 0)
    }

    @Test("A fresh authentication and the next confirmed evaluation forget what was never confirmed")
    func forgets() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.withSlot()
        for _ in 1...5 { _ = try await fixture.unlock(container) }
        // An evaluation of before the authentication does not count for it.
        try #require(try await fixture.slots.act(.unlock, on: .signing, of: container, by: "ana"))
        try await fixture.slots.confirm(fixture.confirmed(container, 5), of: container)
        #expect(try await fixture.slot(container).unconfirmed == 4)
        _ = try await fixture.unlock(container)
        _ = try await fixture.unlock(container)
        try await fixture.slots.confirm(fixture.confirmed(container, 6), of: container)
        let slot = try await fixture.slot(container)
        #expect(slot.unconfirmed == 1 && slot.floor == 6)
        try await fixture.slots.confirm(fixture.confirmed(container, 4), of: container)
        #expect(try await fixture.slot(container).unconfirmed == 1)
    }

    @Test("At the cap the next try destroys the key, and the slot's keys count no more")
    func cap() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.withSlot()
        for round in 1...20 {
            _ = try await fixture.unlock(container)
            if round.isMultiple(of: 5) {
                try #require(try await fixture.slots.act(.unlock, on: .signing, of: container, by: "ana"))
            }
        }
        #expect(try await fixture.slot(container).sealedKey != nil)
        #expect(try await fixture.refusal(container) == .locked)
        #expect(try await fixture.refusal(container) == .shredded)
        let slot = try await fixture.slot(container)
        #expect(slot.sealedKey == nil)
        #expect(slot.status(SigningStoreFixture.lock, at: fixture.now).state == .shredded)
        let keys = try await fixture.devices.keys(of: container.did)
        #expect(keys.filter(\.isActive).map(\.usage) == [.device, .transport])
        #expect(try await !fixture.slots.act(.unlock, on: .signing, of: container, by: "ana"))
        #expect(try await fixture.slotNotes(container).last == "destroyed -")
    }

    @Test("Each try waits as the policy says, and a confirmation ends the waiting")
    func delays() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.withSlot()
        let lock = AssistedPasswordLock(max: 5, cap: 20, delays: [0, 30, 60])
        #expect(try await fixture.unlock(container, lock: lock).wait == 0)
        #expect(try await fixture.unlock(container, lock: lock).wait == 30)
        #expect(try await fixture.refusal(container, lock: lock) == .wait)
        fixture.base.clock.advance(by: 29)
        #expect(try await fixture.refusal(container, lock: lock) == .wait)
        fixture.base.clock.advance(by: 1)
        #expect(try await fixture.unlock(container, lock: lock).wait == 60)
        try await fixture.slots.confirm(fixture.confirmed(container, 2), of: container)
        #expect(try await fixture.refusal(container, lock: lock) == .wait)
        try await fixture.slots.confirm(fixture.confirmed(container, 3), of: container)
        #expect(try await fixture.unlock(container, lock: lock).wait == 0)
        fixture.base.clock.advance(by: 1)
        #expect(try await fixture.unlock(container, lock: lock).wait == 30)
        fixture.base.clock.advance(by: 30)
        #expect(try await fixture.unlock(container, lock: lock).wait == 60)
        fixture.base.clock.advance(by: 60)
        #expect(try await fixture.unlock(container, lock: lock).wait == 60)
    }

    @Test("A copied store is found: a fork and a stale value make the container suspect, and give no evaluation")
    func ratchet() async throws {
        let fixture = try await SigningStoreFixture()
        for isFork in [true, false] {
            let container = try await fixture.withSlot()
            _ = try await fixture.unlock(container, fixture.attempt(container, r: "a", next: "b"))
            _ = try await fixture.unlock(container, fixture.attempt(container, r: "a", next: "b"))
            _ = try await fixture.unlock(container, fixture.attempt(container, r: "b", next: "c"))
            let copy: (SigningHash, SigningHash) = isFork ? ("b", "x") : ("a", "b")
            let early = fixture.attempt(container, r: copy.0, next: copy.1, nonceMadeAt: fixture.now + 60)
            #expect(try await fixture.refusal(container, early) == .useNonce)
            #expect(try await fixture.state(container) == .active)
            let late = fixture.attempt(container, r: copy.0, next: copy.1, nonceMadeAt: fixture.now + 61)
            #expect(try await fixture.refusal(container, late) == .containerSuspect)
            #expect(try await fixture.state(container) == .suspect)
            let right = fixture.attempt(container, r: "c", next: "d", nonceMadeAt: fixture.now + 61)
            #expect(try await fixture.refusal(container, right) == .containerSuspect)
            let slot = try await fixture.slot(container)
            #expect(slot.n == 3 && slot.sealedKey != nil)
        }
    }

    @Test("A number that only our signature knows shows that the server went back; it goes on behind it")
    func rolledBack() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.withSlot()
        _ = try await fixture.unlock(container, fixture.attempt(container, r: "a", next: "b"))
        let after = fixture.attempt(container, r: "y", next: "z", last: 9)
        #expect(try await fixture.refusal(container, after) == .serverRolledBack)
        #expect(try await fixture.state(container) == .active)
        let hidden = fixture.attempt(container, r: "b", next: "c")
        #expect(try await fixture.unlock(container, hidden).n == 2)
        try #require(try await fixture.slots.act(.unlock, on: .signing, of: container, by: "ana"))
        #expect(try await fixture.unlock(container, after).n == 10)
        // A slot that was restored to before its first try has no ratchet value to compare: only its count tells.
        let fresh = try await fixture.withSlot()
        #expect(try await fixture.refusal(fresh, fixture.attempt(fresh, last: 1)) == .serverRolledBack)
        #expect(try await fixture.slot(fresh).n == 0)
    }

    @Test("Confirmations of evaluations that the server has lost take nothing off those that it has counted")
    func lostEvaluations() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.withSlot()
        _ = try await fixture.unlock(container, fixture.attempt(container, r: "a", next: "b"))
        // The device has four: the backup is from before the second one.
        let after = fixture.attempt(container, r: "y", next: "z", last: 4)
        #expect(try await fixture.refusal(container, after) == .serverRolledBack)
        try #require(try await fixture.slots.act(.unlock, on: .signing, of: container, by: "ana"))
        for n in 2...4 as ClosedRange<Int64> {
            try await fixture.slots.confirm(fixture.confirmed(container, n), of: container)
        }
        let slot = try await fixture.slot(container)
        #expect(slot.n == 4 && slot.unconfirmed == 1)
        #expect(slot.status(SigningStoreFixture.lock, at: fixture.now).spare == 19)
        // The user's next one clears what was counted, as after any fresh authentication.
        #expect(try await fixture.unlock(container, after).n == 5)
        try await fixture.slots.confirm(fixture.confirmed(container, 5), of: container)
        #expect(try await fixture.slot(container).unconfirmed == 0)
    }

    @Test("A container that is not active gives no evaluation, nor a slot that is locked, destroyed or of another time")
    func refusals() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.withSlot()
        #expect(try await fixture.refusal(container, fixture.attempt(container, generation: 1)) == .wrongGeneration)
        let other = SlotTry(
            did: container.did, slot: .session, generation: 0, rid: "a", element: "b", ratchet: "r", next: "n",
            last: 0, nonceMadeAt: fixture.now)
        #expect(try await fixture.refusal(container, other) == .invalidRequest)
        try #require(try await fixture.slots.act(.lock, on: .signing, of: container, by: "admin"))
        #expect(try await fixture.refusal(container) == .locked)
        try #require(try await fixture.slots.act(.unlock, on: .signing, of: container, by: "ana"))
        try #require(try await fixture.devices.change(container, .block, by: "admin", at: fixture.now))
        #expect(try await fixture.refusal(container) == .containerBlocked)
        try #require(try await fixture.devices.change(container, .unblock, by: "admin", at: fixture.now))
        #expect(try await fixture.unlock(container).n == 1)
        try #require(try await fixture.devices.change(container, .revoke, by: "ana", at: fixture.now))
        #expect(try await fixture.slot(container).sealedKey == nil)
        #expect(try await fixture.refusal(container) == .shredded)
        let expired = try await fixture.withSlot()
        fixture.base.clock.advance(by: 2000)
        #expect(try await fixture.refusal(expired) == .keyExpired)
    }

    @Test(
        "A change takes a confirmed evaluation, and its end destroys the old key; both come again, with another key not"
    )
    func change() async throws {
        let fixture = try await SigningStoreFixture()
        let (store, container) = (fixture, try await fixture.withSlot())
        func change(_ key: [UInt8]? = nil) -> SlotChange {
            SlotChange(did: container.did, slot: .signing, from: 0, to: 1, publicKey: key)
        }
        func begin(_ unl: SigningID, key: [UInt8] = [8], age: Int64 = 0) async throws -> SigningErrorCode? {
            try await signingCode {
                try await store.slots.begin(
                    change(),
                    with: SigningOfferedSlot(slot: .signing, generation: 1, publicKey: key + [2], sealedKey: key),
                    unl: unl, minimumAge: age, of: container, proof: fixture.proof(container.did), at: fixture.now)
            }
        }
        func commit(_ key: [UInt8]? = [9, 2]) async throws -> SigningErrorCode? {
            try await signingCode {
                try await store.slots.commit(
                    change(key), of: container, proof: fixture.proof(container.did), at: fixture.now)
            }
        }
        _ = try await fixture.unlock(container)
        #expect(try await begin("unl 1") == .unlockRequired)
        try await store.slots.confirm(fixture.confirmed(container, 1), of: container)
        #expect(try await commit() == .wrongGeneration)
        #expect(try await begin("unl 1", age: 1) == .passwordTooYoung)
        #expect(try await begin("unl 1") == nil)
        #expect(try await begin("unl 1", key: [9]) == nil)
        #expect(try await store.decisions.confirmed("unl 1", slot: .signing, of: container.did, at: fixture.now) == nil)
        // Of the start before, or of none.
        for key in [[8, 2], nil] as [[UInt8]?] { #expect(try await commit(key) == .wrongGeneration) }
        let before = try await fixture.slot(container)
        #expect(before.sealedKey == [7] && before.pendingGeneration == 1)
        #expect(try await commit() == nil)
        #expect(try await commit() == nil)
        #expect(try await commit([8, 2]) == .wrongGeneration)
        let slot = try await fixture.slot(container)
        #expect(slot.sealedKey == [9] && slot.publicKey == [9, 2] && slot.generation == 1 && slot.n == 1)
        #expect(try await begin("unl 1") == .wrongGeneration)
        #expect(try await fixture.refusal(container) == .wrongGeneration)
        #expect(try await fixture.unlock(container, fixture.attempt(container, generation: 1)).n == 2)
        #expect(
            try await fixture.slotNotes(container).filter { $0.hasPrefix("change") } == [
                "change -", "change -", "changed -",
            ])
    }

    @Test("An evaluation opens one decision, of the last five minutes, and never a second one or a change")
    func decides() async throws {
        let fixture = try await SigningStoreFixture()
        let (store, container) = (fixture, try await fixture.withSlot())
        func decide(_ unl: SigningID, after: Int64 = -1) async throws -> SigningErrorCode? {
            let transaction = try await fixture.pending()
            let plain = fixture.decision(transaction, container)
            let found = ConfirmedTry(
                did: container.did, slot: .signing, generation: 0, n: 1, unl: unl, evaluatedAt: 0,
                confirmedAt: 0, evaluation: "eval", confirmation: "confirm")
            var decision = plain
            (decision.row.evaluation, decision.row.confirmation) = ("eval", "confirm")
            decision.effects.unlock = SpentEvaluation(found, passwordSetAfter: after)
            let code = try await signingCode {
                _ = try await store.decisions.decide(
                    decision, container: container, proof: fixture.proof(container.did), at: fixture.now)
            }
            let stored = try await store.decisions.find(of: plain.txn)
            #expect((stored == nil) == (code != nil))
            #expect(stored == nil || (stored?.evaluation == "eval" && stored?.confirmation == "confirm"))
            let state = try await store.documents.find(plain.txn)?.state
            #expect(state == (code == nil ? .approved : .pending))
            return code
        }
        _ = try await fixture.unlock(container)
        #expect(try await decide("unl 1") == .unlockRequired)
        try await store.slots.confirm(fixture.confirmed(container, 1), of: container)
        #expect(try await decide("unl 2") == .unlockRequired)
        #expect(try await decide("unl 1", after: fixture.now) == .passwordExpired)
        #expect(try await decide("unl 1") == nil)
        #expect(try await decide("unl 1") == .unlockRequired)
        let begun = try await signingCode {
            try await store.slots.begin(
                SlotChange(did: container.did, slot: .signing, from: 0, to: 1),
                with: SigningOfferedSlot(slot: .signing, generation: 1, publicKey: [2], sealedKey: [3]), unl: "unl 1",
                minimumAge: 0, of: container, proof: fixture.proof(container.did), at: fixture.now)
        }
        #expect(begun == .unlockRequired)
        _ = try await fixture.unlock(container)
        try await store.slots.confirm(fixture.confirmed(container, 2), of: container)
        fixture.base.clock.advance(by: 300)
        #expect(try await decide("unl 2") == .unlockRequired)
    }

    @Test("At enrolment a slot is evaluated five times at most, before the commitment only")
    func enrolment() async throws {
        let fixture = try await SigningStoreFixture()
        let enrolment = fixture.enrolment(try await fixture.invited())
        let slot = SigningOfferedSlot(slot: .signing, generation: 0, publicKey: [1], sealedKey: [7])
        try #require(
            try await fixture.enrolments.start(
                enrolment, slots: [slot], user: fixture.user, isAgain: false, at: fixture.now)
        )
        func evaluate(_ rid: SigningID, _ generation: Int64 = 0, _ slot: PasswordSlot = .signing) async throws
            -> SigningErrorCode?
        {
            try await signingCode {
                _ = try await fixture.slots.count(
                    SlotEvaluation(
                        did: enrolment.did, pid: enrolment.pid, isRenewal: false, user: nil, slot: slot,
                        generation: generation, rid: rid, element: "e"), at: fixture.now)
            }
        }
        #expect(try await evaluate("a", 1) == .wrongGeneration)
        #expect(try await evaluate("a", 0, .otp) == .invalidRequest)
        for rid in ["a", "a", "b", "c", "d", "e", "e"] as [SigningID] { #expect(try await evaluate(rid) == nil) }
        #expect(try await evaluate("f") == .rateLimited)
        _ = try await fixture.commit(enrolment)
        #expect(try await evaluate("e") == .invalidRequest)
    }

    @Test("What a void enrolment or container has of keys is deleted")
    func void() async throws {
        let fixture = try await SigningStoreFixture()
        func kept() async throws -> Int64 {
            let rows = try await fixture.base.database.run(
                .read(
                    """
                    SELECT (SELECT count(*) FROM signing_offered_slots)
                        + (SELECT count(*) FROM signing_slots WHERE sealed_k IS NOT NULL) AS kept
                    """))
            return try #require(rows.first).integer("kept")
        }
        func started() async throws -> SigningEnrolmentRecord {
            let enrolment = fixture.enrolment(try await fixture.invited())
            let slot = SigningOfferedSlot(slot: .signing, generation: 0, publicKey: [1], sealedKey: [7])
            try #require(
                try await fixture.enrolments.start(
                    enrolment, slots: [slot], user: fixture.user, isAgain: false, at: fixture.now))
            return enrolment
        }
        let first = try await started()
        #expect(try await kept() == 1)
        let invite = try #require(try await fixture.invites.find(first.pid))
        #expect(try await fixture.invites.void(invite, at: fixture.now))
        #expect(try await kept() == 0)
        let second = try await started()
        _ = try await fixture.commit(second)
        let container = fixture.container(second)
        try #require(
            try await fixture.enrolments.complete(
                container, SentKeys(rows: fixture.keys(container), slots: [.signing], digits: nil), limit: 5,
                proof: nil,
                at: fixture.now))
        #expect(try await kept() == 1)
        _ = try await started()
        #expect(try await kept() == 2)
        fixture.base.clock.advance(by: 1500)
        try await SigningHousekeeping.purge(fixture.base.context)
        #expect(try await kept() == 0)
    }
}
