import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("A reset: new keys with the user's word")
struct SigningResetTests {
    private struct Scene {
        let world: SigningWorld
        let old: TestDevice
        let new: TestDevice
        let container: TestDevice.Enrolled
        let pid: String
        let renewal: LowRenewal

        var did: SigningID { container.did }

        init(_ change: (inout SigningSettings) -> Void = { _ in }) async throws {
            world = try await SigningWorld(change)
            (old, container) = try await world.enrolled()
            new = try TestDevice(world)
            let shown = try await world.provider.invites.make(world.ana, user: nil, did: container.did.text)
            pid = shown.pid
            renewal = try await LowRenewal(old, new, container, code: InviteCode(typed: shown.code.reveal()))
        }

        var digits: String {
            get async throws {
                renewal.content.transcript(identity: try await new.trust().identity.thumbprint).digits
            }
        }

        func completed() async throws -> ConfirmBody {
            ConfirmBody(echo: try await renewal.complete(try await renewal.body(old), old, new).echo)
        }

        func enter(_ digits: String) async throws -> String? {
            try await refusal { _ = try await world.provider.invites.enter(digits: digits, world.ana, pid: pid) }
        }

        func hasNewKeys() async throws -> Bool {
            try await world.record(did).deviceKeyID == ProtocolKey(new.deviceKey).thumbprint
        }
    }

    @Test("The digits alone replace nothing: the device has to confirm, too")
    func digitsFirst() async throws {
        let scene = try await Scene()
        let confirm = try await scene.completed()
        #expect(try await scene.enter(try await scene.digits) == nil)
        #expect(try await !scene.hasNewKeys())
        #expect(try await scene.old.status(scene.did).state == .active)
        #expect(try await scene.new.code("renew/confirm", scene.did, confirm) == nil)
        #expect(try await scene.hasNewKeys())
        #expect(try await refusal { _ = try await scene.old.status(scene.did) } == "key_retired")
    }

    @Test("Keys that came with a code wait as long as those of a new device; keys that were only due do not")
    func delay() async throws {
        let scene = try await Scene { $0.approvalDelay = 3600 }
        let world = scene.world
        world.base.clock.advance(by: 600)
        let confirm = try await scene.completed()
        #expect(try await scene.new.code("renew/confirm", scene.did, confirm) == nil)
        #expect(try await scene.enter(try await scene.digits) == nil)
        #expect(try await world.record(scene.did).approvalsFrom == world.provider.now + 3600)
        world.base.clock.advance(by: 3599)
        let (txn, _) = try await world.asked()
        #expect(
            try await refusal { _ = try await scene.new.approve(txn, scene.container) } == "approvals_not_yet")
        world.base.clock.advance(by: 1)
        #expect(try await scene.new.approve(txn, scene.container).content.state == .approved)

        world.base.clock.advance(by: 350 * 86400)
        scene.new.forgetTrust()
        let third = try TestDevice(world)
        let due = try await LowRenewal(scene.new, third, scene.container)
        let enrolled = try await due.complete(try await due.body(scene.new, by: "payments"), scene.new, third)
        #expect(
            try await third.code("renew/confirm", scene.did, ConfirmBody(echo: enrolled.echo)) == nil)
        let (next, _) = try await world.asked()
        #expect(try await third.approve(next, scene.container).content.state == .approved)
    }

    @Test("The page of a reset hears how the new keys stand: the old ones are valid until they are, and afterwards")
    func told() async throws {
        func state(_ scene: Scene) async throws -> String {
            try await scene.world.provider.invites.status(scene.world.ana, pid: scene.pid).state
        }
        let scene = try await Scene()
        #expect(try await state(scene) == "UNCONFIRMED")
        let confirm = try await scene.completed()
        let digits = try await scene.digits
        let entered = try await scene.world.provider.invites.enter(digits: digits, scene.world.ana, pid: scene.pid)
        #expect(entered.state == "UNCONFIRMED")
        #expect(try await scene.new.code("renew/confirm", scene.did, confirm) == nil)
        #expect(try await state(scene) == "ACTIVE")

        let guessed = try await Scene()
        _ = try await guessed.completed()
        let right = try await guessed.digits
        for _ in 0..<3 { _ = try await guessed.enter(right == "00000000" ? "00000001" : "00000000") }
        #expect(try await state(guessed) == "VOID")

        let late = try await Scene()
        _ = try await late.completed()
        late.world.base.clock.advance(by: 25 * 60 - 1)
        #expect(try await state(late) == "UNCONFIRMED")
        late.world.base.clock.advance(by: 1)
        #expect(try await state(late) == "VOID")
        #expect(try await late.world.record(late.did).state == .active)
    }

    @Test("After three wrong entries the right digits are looked at no more, and the old keys stay")
    func wrongDigits() async throws {
        let scene = try await Scene()
        let confirm = try await scene.completed()
        #expect(try await scene.new.code("renew/confirm", scene.did, confirm) == nil)
        let digits = try await scene.digits
        let wrong = digits == "00000000" ? "00000001" : "00000000"
        for _ in 0..<3 { #expect(try await scene.enter(wrong) == "digits_wrong") }
        #expect(try await scene.enter(digits) == "enrolment_void")
        #expect(try await !scene.hasNewKeys())
        #expect(try await scene.old.status(scene.did).state == .active)
    }

    @Test("A reset that is withdrawn takes nothing of the container with it: neither its keys, nor PIN, nor codes")
    func withdrawn() async throws {
        let world = try await SigningWorld.withPIN(change: {
            $0.oneTimeKeys = [OneTimeKeySettings(label: "counted", kind: .counter)]
        })
        let (old, container, pin) = try await world.enrolledWithPIN()
        let shown = try await world.provider.invites.make(world.ana, user: nil, did: container.did.text)
        let new = try TestDevice(world, modes: [.device, .assisted])
        let renewal = try await LowRenewal(old, new, container, code: InviteCode(typed: shown.code.reveal()))
        _ = try await renewal.complete(try await renewal.body(old), old, new)
        try await world.provider.invites.withdraw(world.ana, pid: shown.pid)
        #expect(try await world.record(container.did).state == .active)
        #expect(try await world.provider.codes.keys(of: container.did).map(\.label) == ["counted"])
        #expect(try await pin.open("2580") != nil)
        let keys = try await world.base.database.run(
            .read("SELECT state FROM signing_keys WHERE did = \(container.did.text)"))
        #expect(try keys.map { try $0.text("state") } == ["ACTIVE", "ACTIVE", "ACTIVE"])
        #expect(try await new.code("status", container.did, EmptyBody()) == "bad_proof")
    }

    @Test("A code is made for a device that can still get keys: not when it is blocked, removed, expired, or another's")
    func resettable() async throws {
        let world = try await SigningWorld()
        let (_, container) = try await world.enrolled()
        func make(_ caller: SigningCaller? = nil, user: String? = nil) async throws -> String? {
            try await refusal {
                _ = try await world.provider.invites.make(caller ?? world.ana, user: user, did: container.did.text)
            }
        }
        let admin = try await world.admin()
        #expect(try await make(admin, user: "ben") == "not_found")
        #expect(try await make(admin, user: "ana") == nil)
        for change: SQL in [
            "state = 'BLOCKED'", "state = 'UNCONFIRMED'", "state = 'REVOKED'", "state = 'VOID'",
            "state = 'ACTIVE', expires_at = \(world.provider.now)",
        ] {
            try await world.set(change, of: container.did)
            #expect(try await make() == "not_found", "\(change)")
        }
        for state in ["ACTIVE", "SUSPECT"] {
            try await world.set("state = \(state), expires_at = \(world.provider.now + 1)", of: container.did)
            #expect(try await make() == nil)
        }
    }
}
