import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentSigning
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("Devices on their way in a restored backup")
struct RestoredEnrolmentTests {
    /// Fences the database, and gives the counts of what has to do with devices. For a minute nonces are refused then.
    private static func fence(_ world: SigningWorld) async throws -> [FencedKind: Int64] {
        let outcome = try await RestoredDatabase(world.base.context).fence(keepingSessions: true)
        world.base.clock.advance(by: 61)
        return outcome.counts.filter { [.signingTransactions, .invites, .enrolments].contains($0.key) }
    }

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
        let counts = try await Self.fence(world)
        // Not the invite by which the first device is active.
        #expect(counts == [.signingTransactions: 1, .invites: 2, .enrolments: 1])
        #expect(try await world.state(open.txn) == "FAILED")
        #expect(try await world.state(decided.txn) == "APPROVED")
        #expect(try await device.status(container.did).state == .active)
        #expect(try await unfinished.status(second.did).state == .void)
        #expect(try await refusal { _ = try await TestDevice(world).start(unused.code) } == "invalid_code")
        #expect(try await Self.fence(world) == [:])
        #expect(try await world.audited(.databaseRestore) == ["success -", "success -"])
        let new = try await world.asked()
        #expect(try await device.approve(new.txn, container).content.effect == .approve)
    }

    @Test("A reset that waits for its digits is over with its invite; one that is done keeps both, and is not counted")
    func resets() async throws {
        for isDone in [false, true] {
            let sdk = try SDKWorld(try await SigningWorld())
            let (device, world) = (sdk.device(), sdk.world)
            let container = try await sdk.enrolled(device)
            let shown = try await world.provider.invites.make(world.ana, user: nil, did: container.id)
            let renewal = try await container.renew(invite: SigningInvite(scanned: shown.qr.reveal()))
            let digits = try #require(renewal.digits)
            if isDone { _ = try await world.provider.invites.enter(digits: digits, world.ana, pid: shown.pid) }
            let counts = try await Self.fence(world)
            #expect(counts == (isDone ? [:] : [.invites: 1, .enrolments: 1]))
            #expect(try await Self.fence(world) == [:])
            if !isDone {
                await #expect(throws: SigningRefusal.self) {
                    try await world.provider.invites.enter(digits: digits, world.ana, pid: shown.pid)
                }
            }
            #expect(try await sdk.approve(container, on: sdk.device()).effect == .approve)
        }
    }
}
