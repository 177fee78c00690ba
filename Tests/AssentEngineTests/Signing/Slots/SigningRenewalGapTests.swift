import AssentCore
import AssentSigningProtocol
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("New keys behind a PIN: what must not happen to the PIN meanwhile", .timeLimit(.minutes(2)))
struct SigningRenewalGapTests {
    private static func withBareKey() async throws -> SigningWorld {
        try await SigningWorld.withPIN(change: {
            $0.keys.append(OfferedKey(usage: .auth, label: "sign-in", policy: SigningSettings.policyID))
        })
    }

    private static func record(_ world: SigningWorld, _ container: TestDevice.Enrolled) async throws
        -> SigningContainerRecord
    {
        try #require(try await world.provider.store.container(did: container.did.text))
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
        #expect(try await world.provider.store.act(.wipe, on: .signing, of: record, by: "admin"))
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
            #expect(try await world.provider.store.act(.unlock, on: .signing, of: record, by: "ana"))
        }
        _ = try await refusal { _ = try await pin.unlock("0000") }
        let slot = try #require(try await world.provider.store.slot(.signing, of: container.did.text))
        #expect(slot.sealedKey == nil)
        #expect(try await Self.renewed(world, old, container) == "fresh_authentication_required")
    }
}
