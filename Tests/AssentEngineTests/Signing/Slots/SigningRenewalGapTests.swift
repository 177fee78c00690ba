import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("New keys behind a PIN: what must not happen to the PIN meanwhile")
struct SigningRenewalGapTests {
    private static func withBareKey() async throws -> SigningWorld {
        try await SigningWorld.withPIN(change: {
            $0.keys.append(OfferedKey(usage: .auth, label: "sign-in", policy: SigningSettings.policyID))
        })
    }

    private static func record(_ world: SigningWorld, _ container: TestDevice.Enrolled) async throws
        -> SigningContainerRecord
    {
        try #require(try await world.provider.devices.find(container.did.text))
    }

    /// What the key without a PIN gets for new keys, from the first call to the last one.
    private static func renewed(
        _ world: SigningWorld, _ old: TestDevice, _ container: TestDevice.Enrolled
    ) async throws -> String? {
        world.base.clock.advance(by: 350 * 86400)
        return try await refusal {
            let renewal = try await LowRenewal(old, try TestDevice(world, modes: [.device, .assisted]), container)
            let key = try #require(old.keys.withLock { $0["sign-in"] })
            let endorsements = [
                try await renewal.endorsement(by: old.deviceKey), try await renewal.endorsement(by: key),
            ]
            _ = try await old.call(
                "renew/complete", container.did, CompleteBody(enrol: renewal.enrol, endorsements: endorsements))
        }
    }

    @Test("After a wipe a key that needs no PIN does not get new keys for those that did")
    func wiped() async throws {
        let world = try await Self.withBareKey()
        let (old, container, _) = try await world.enrolledWithPIN()
        let record = try await Self.record(world, container)
        #expect(try await world.provider.slots.act(.wipe, on: .signing, of: record, by: "admin"))
        #expect(try await Self.renewed(world, old, container) == "fresh_authentication_required")
    }

    @Test("After the cap a key that needs no PIN does not get new keys for those that did")
    func capped() async throws {
        let world = try await Self.withBareKey()
        let (old, container, pin) = try await world.enrolledWithPIN()
        let record = try await Self.record(world, container)
        for round in 1...20 {
            _ = try await pin.unlock("0000")
            guard round.isMultiple(of: 5) else { continue }
            #expect(try await world.provider.slots.act(.unlock, on: .signing, of: record, by: "ana"))
        }
        _ = try await refusal { _ = try await pin.unlock("0000") }
        let slot = try #require(try await world.provider.slots.find(.signing, of: container.did))
        #expect(slot.sealedKey == nil)
        #expect(try await Self.renewed(world, old, container) == "fresh_authentication_required")
    }

    /// Completes a renewal with the PIN, and gives what confirms it.
    private static func completed(
        _ renewal: LowRenewal, _ old: TestDevice, _ new: TestDevice, _ container: TestDevice.Enrolled, _ pin: TestPIN
    ) async throws -> ConfirmBody {
        _ = try #require(try await pin.open("2580"))
        let payments = try #require(old.keys.withLock { $0["payments"] })
        let body = CompleteBody(
            enrol: renewal.enrol,
            endorsements: [
                try await renewal.endorsement(by: old.deviceKey), try await renewal.endorsement(by: payments),
            ])
        return ConfirmBody(echo: try await renewal.complete(body, old, new).echo)
    }

    @Test("What the old keys have confirmed approves nothing by the new ones: evidence of that would contradict itself")
    func confirmedBefore() async throws {
        let (world, old, container, pin) = try await SigningWorld.withEnrolledPIN()
        world.base.clock.advance(by: 350 * 86400)
        let new = try TestDevice(world, modes: [.device, .assisted])
        let renewal = try await LowRenewal(old, new, container)
        // The renewal takes the one after it.
        let opened = try #require(try await pin.open("2580"))
        let confirm = try await Self.completed(renewal, old, new, container, pin)
        let _: ContainerStatus = try await new.ask("renew/confirm", container.did, confirm)
        let (txn, _) = try await world.asked()
        let document = try await new.fetch(txn, container)
        let body = try await new.signed(
            try new.decision(document, status: "accept", unl: try opened.unl), label: "payments")
        #expect(try await refusal { _ = try await new.decide(body, container) } == "unlock_required")
        #expect(try await world.state(txn) == "PENDING")
    }

    @Test("A renewal that began anew keeps its part of the new keys as long as it is open")
    func restarted() async throws {
        let (world, old, container, pin) = try await SigningWorld.withEnrolledPIN()
        world.base.clock.advance(by: 350 * 86400)
        old.forgetTrust()
        _ = try await old.call("renew/start", container.did, RenewStartBody())
        world.base.clock.advance(by: 1400)
        let new = try TestDevice(world, modes: [.device, .assisted])
        let renewal = try await LowRenewal(old, new, container)
        let confirm = try await Self.completed(renewal, old, new, container, pin)
        world.base.clock.advance(by: 200)
        try await SigningHousekeeping.purge(world.base.context)
        old.forgetTrust()
        let status: ContainerStatus = try await new.ask("renew/confirm", container.did, confirm)
        #expect(status.keys.contains { $0.kid?.text == renewal.newDevice && $0.state == .active })
        let slot = try #require(try await world.provider.slots.find(.signing, of: container.did))
        #expect(slot.sealedKey != nil && slot.generation == 1)
    }

    @Test("New keys do not count without the server's part of their PIN, and the old ones go on")
    func lost() async throws {
        let (world, old, container, pin) = try await SigningWorld.withEnrolledPIN()
        world.base.clock.advance(by: 350 * 86400)
        let new = try TestDevice(world, modes: [.device, .assisted])
        let renewal = try await LowRenewal(old, new, container)
        let confirm = try await Self.completed(renewal, old, new, container, pin)
        let did = container.did.text
        _ = try await world.base.database.run([
            SQLStatement("DELETE FROM signing_offered_slots WHERE did = \(did)")
        ])
        let status: ContainerStatus = try await new.ask("renew/confirm", container.did, confirm)
        #expect(!status.keys.contains { $0.kid?.text == renewal.newDevice })
        let slot = try #require(try await world.provider.slots.find(.signing, of: did))
        #expect(slot.sealedKey != nil && slot.generation == 0)
        #expect(try await pin.open("2580") != nil)
    }

    @Test("A renewal does not begin with a generation that a change of the PIN has taken meanwhile")
    func taken() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.withSlot()
        func starts(_ generation: Int64) async throws -> Bool {
            let pid = fixture.id()
            let key = SigningOfferedSlot(
                slot: .signing, generation: generation, publicKey: [2], sealedKey: [8])
            return try await fixture.enrolments.start(
                SigningRenewalRecord(
                    pid: pid, did: container.did, invite: nil, commitMode: .exchange, offer: "offer",
                    expiresAt: fixture.now + 900), slots: [key], isAgain: false, user: fixture.user,
                proof: fixture.proof(container.did), at: fixture.now)
        }
        #expect(try await !starts(0))
        #expect(try await fixture.enrolments.renewal(of: container.did, at: fixture.now) == nil)
        #expect(try await starts(1))
    }
}
