import AssentCore
import AssentSigning
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("A restored backup")
struct SigningFenceTests {
    @Test("What was open when the backup was made is over; what was decided, and active devices, stay")
    func fence() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let decided = try await world.asked()
        _ = try await device.approve(decided.txn, container)
        let open = try await world.asked()
        let invite = try await world.invite()
        let unfinished = try TestDevice(world)
        let second = try await unfinished.enrol(invite.code)
        let unused = try await world.invite()
        let outcome = try await SigningFence.run(world.base.context)
        #expect(outcome.transactions == 1 && outcome.invites == 3 && outcome.enrolments == 1)
        #expect(try await world.state(open.txn) == "FAILED")
        #expect(try await world.state(decided.txn) == "APPROVED")
        #expect(try await device.status(container.did).state == .active)
        #expect(try await unfinished.status(second.did).state == .void)
        #expect(try await refusal { _ = try await TestDevice(world).start(unused.code) } == "invalid_code")
        let again = try await SigningFence.run(world.base.context)
        #expect(again == SigningFence.Outcome(transactions: 0, invites: 0, enrolments: 0))
        let new = try await world.asked()
        #expect(try await device.approve(new.txn, container).content.effect == .approve)
    }
}
