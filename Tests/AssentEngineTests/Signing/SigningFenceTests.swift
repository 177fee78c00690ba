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
        // Not the invite by which the first device is active.
        #expect(outcome == SigningFence.Outcome(transactions: 1, invites: 2, enrolments: 1))
        #expect(try await world.state(open.txn) == "FAILED")
        #expect(try await world.state(decided.txn) == "APPROVED")
        #expect(try await device.status(container.did).state == .active)
        #expect(try await unfinished.status(second.did).state == .void)
        #expect(try await refusal { _ = try await TestDevice(world).start(unused.code) } == "invalid_code")
        let again = try await SigningFence.run(world.base.context)
        #expect(again == SigningFence.Outcome(transactions: 0, invites: 0, enrolments: 0))
        #expect(try await world.audited(.signingRestore) == ["success -", "success -"])
        let new = try await world.asked()
        #expect(try await device.approve(new.txn, container).content.effect == .approve)
    }

    @Test("A reset that waits for its digits is over with its invite; one that is done keeps both, and is not counted")
    func resets() async throws {
        for isDone in [false, true] {
            let sdk = try SDKWorld(try await SigningWorld())
            let (device, world) = (sdk.device(), sdk.world)
            let container = try await sdk.enrolled(device)
            let shown = try await world.provider.invite(world.ana, user: nil, did: container.id)
            let renewal = try await container.renew(invite: SigningInvite(scanned: shown.qr.reveal()))
            let digits = try #require(renewal.digits)
            if isDone { _ = try await world.provider.enter(digits: digits, world.ana, pid: shown.pid) }
            let outcome = try await SigningFence.run(world.base.context)
            let count = isDone ? 0 : 1
            #expect(outcome == SigningFence.Outcome(transactions: 0, invites: count, enrolments: count))
            let again = try await SigningFence.run(world.base.context)
            #expect(again == SigningFence.Outcome(transactions: 0, invites: 0, enrolments: 0))
            if !isDone {
                await #expect(throws: SigningRefusal.self) {
                    try await world.provider.enter(digits: digits, world.ana, pid: shown.pid)
                }
            }
            #expect(try await sdk.approve(container, on: sdk.device()).effect == .approve)
        }
    }
}
