import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("New keys for a container: what must not give them")
struct SigningRenewalGuardTests {
    private static let year: Double = 365 * 86400

    private struct Scene {
        let world: SigningWorld
        let old: TestDevice
        let new: TestDevice
        let container: TestDevice.Enrolled
        let pin: TestPIN?

        var did: SigningID { container.did }

        /// A device whose keys are due soon; with a PIN for its signing key if `hasPIN`.
        init(hasPIN: Bool = false, after days: Double = 350, _ change: (inout SigningSettings) -> Void = { _ in })
            async throws
        {
            if hasPIN {
                world = try await SigningWorld.withPIN(change: change)
                (old, container, pin) = try await world.enrolledWithPIN()
                new = try TestDevice(world, modes: [.device, .assisted])
            } else {
                world = try await SigningWorld(change)
                (old, container) = try await world.enrolled()
                (new, pin) = (try TestDevice(world), nil)
            }
            world.base.clock.advance(by: days * 86400)
            old.forgetTrust()
        }

        func reset() async throws -> (pid: String, code: InviteCode) {
            let again = SigningCaller(try await TransactionFixture.signIn("ana", world.base.context))
            let shown = try await world.provider.invites.make(again, user: nil, did: did.text)
            return (shown.pid, try #require(InviteCode(typed: shown.code.reveal())))
        }

        func renewal(code: InviteCode? = nil) async throws -> LowRenewal {
            try await LowRenewal(old, new, container, code: code)
        }

        /// A renewal of which only the confirmation is missing.
        func completed() async throws -> (LowRenewal, ConfirmBody) {
            let renewal = try await renewal()
            if let pin { _ = try #require(try await pin.open("2580")) }
            let enrolled = try await renewal.complete(try await renewal.body(old, by: "payments"), old, new)
            return (renewal, ConfirmBody(echo: enrolled.echo))
        }

        func confirm(_ body: ConfirmBody) async throws -> String? { try await new.code("renew/confirm", did, body) }

        /// Whether the keys of before are those that count.
        func keepsKeys() async throws -> Bool {
            let active = try await world.provider.devices.keys(of: did).filter(\.isActive).map(\.kid)
            return try active.contains(ProtocolKey(old.deviceKey).thumbprint)
                && !active.contains(ProtocolKey(new.deviceKey).thumbprint)
        }
    }

    @Test("An endorsement is signed by a key of the container, and for this container, issuer and key list")
    func endorsements() async throws {
        let scene = try await Scene()
        let renewal = try await scene.renewal()
        let payments = try scene.old.key("payments")
        func endorsement(issuer: String? = nil, did: SigningID? = nil) async throws -> String {
            let content = Endorsement(
                issuer: issuer ?? scene.world.name, did: did ?? scene.did, enrol: .enrolment(renewal.enrol),
                jti: SigningID(random: scene.old.random))
            return try await SignedMessage.sign(content, with: payments).compact
        }
        let device = try await renewal.endorsement(by: scene.old.deviceKey)
        let (good, signIn) = (try await endorsement(), try await renewal.endorsement(by: try scene.old.key("sign-in")))
        for (endorsements, code) in [
            ([device, good.withAnotherSignature], "bad_signature"),
            ([device.withAnotherSignature, good], "bad_signature"),
            ([device, try await endorsement(issuer: "https://other.example")], "hash_mismatch"),
            ([device, try await endorsement(did: SigningID(random: scene.old.random))], "hash_mismatch"),
            ([good, signIn], "invalid_request"), ([good, good], "invalid_request"),
        ] {
            let body = CompleteBody(enrol: renewal.enrol, endorsements: endorsements)
            #expect(try await scene.old.code("renew/complete", scene.did, body) == code)
        }
        let body = CompleteBody(enrol: renewal.enrol, endorsements: [device, good])
        #expect(try await scene.old.code("renew/complete", scene.did, body) == nil)
        // Another message of the same keys is not the one that was taken.
        let other = try await SignedMessage.sign(renewal.content, with: scene.new.deviceKey).compact
        let second = CompleteBody(enrol: other, endorsements: [device, good])
        #expect(try await scene.old.code("renew/complete", scene.did, second) == "enrolment_void")
    }

    @Test("A key that was destroyed vouches for nothing, also not at a reset, which needs the device key alone")
    func destroyedKey() async throws {
        let scene = try await Scene(hasPIN: true)
        let payments = try #require(try await scene.pin?.open("2580")).key
        scene.old.keys.withLock { $0["payments"] = payments }
        let record = try await scene.world.record(scene.did)
        #expect(try await scene.world.provider.slots.act(.wipe, on: .signing, of: record, by: "admin"))
        let renewal = try await scene.renewal(code: try await scene.reset().code)
        let both = try await renewal.body(scene.old, by: "payments")
        #expect(try await scene.old.code("renew/complete", scene.did, both) == "bad_signature")
        let alone = try await renewal.body(scene.old)
        #expect(try await scene.old.code("renew/complete", scene.did, alone) == nil)
    }

    @Test("A suspect container gets new keys with the code of a reset only, and is then active")
    func suspect() async throws {
        let scene = try await Scene()
        let (_, confirm) = try await scene.completed()
        try await scene.world.set("state = 'SUSPECT'", of: scene.did)
        _ = try await scene.confirm(confirm)
        #expect(try await scene.world.record(scene.did).state == .suspect)
        #expect(try await scene.keepsKeys())
        #expect(try await scene.old.code("renew/start", scene.did, RenewStartBody()) == "container_suspect")
        let (pid, code) = try await scene.reset()
        let renewal = try await scene.renewal(code: code)
        let enrolled = try await renewal.complete(try await renewal.body(scene.old), scene.old, scene.new)
        #expect(try await scene.confirm(ConfirmBody(echo: enrolled.echo)) == nil)
        #expect(try await scene.world.record(scene.did).state == .suspect)
        let digits = renewal.content.transcript(identity: try await scene.new.trust().identity.thumbprint).digits
        _ = try await scene.world.provider.invites.enter(digits: digits, scene.world.ana, pid: pid)
        #expect(try await scene.world.record(scene.did).state == .active)
        #expect(try await !scene.keepsKeys())
    }

    @Test("After a wipe a renewal that was under way gives no new keys for the PIN, whether completed or not")
    func wiped() async throws {
        for isCompleted in [false, true] {
            let scene = try await Scene(hasPIN: true)
            let record = try await scene.world.record(scene.did)
            func wipe() async throws {
                #expect(try await scene.world.provider.slots.act(.wipe, on: .signing, of: record, by: "admin"))
            }
            if isCompleted {
                let (_, confirm) = try await scene.completed()
                try await wipe()
                #expect(try await scene.confirm(confirm) == "bad_proof")
            } else {
                let renewal = try await scene.renewal()
                _ = try #require(try await scene.pin?.open("2580"))
                let body = try await renewal.body(scene.old, by: "payments")
                try await wipe()
                #expect(try await scene.old.code("renew/complete", scene.did, body) == "enrolment_void")
            }
            #expect(try await scene.keepsKeys())
            #expect(try await scene.world.provider.slots.find(.signing, of: scene.did)?.sealedKey == nil)
            #expect(try await scene.world.provider.slots.all(of: scene.did).count == 1)
        }
    }

    @Test("A wipe does not end a reset: its code is how the user gets new keys")
    func wipedDuringReset() async throws {
        let scene = try await Scene(hasPIN: true)
        let (pid, code) = try await scene.reset()
        let renewal = try await scene.renewal(code: code)
        let record = try await scene.world.record(scene.did)
        #expect(try await scene.world.provider.slots.act(.wipe, on: .signing, of: record, by: "admin"))
        let enrolled = try await renewal.complete(try await renewal.body(scene.old), scene.old, scene.new)
        #expect(try await scene.confirm(ConfirmBody(echo: enrolled.echo)) == nil)
        let digits = renewal.content.transcript(identity: try await scene.new.trust().identity.thumbprint).digits
        _ = try await scene.world.provider.invites.enter(digits: digits, scene.world.ana, pid: pid)
        #expect(try await !scene.keepsKeys())
        #expect(try await scene.world.provider.slots.find(.signing, of: scene.did)?.sealedKey != nil)
    }

    @Test("New keys are confirmed while the container may be used: not when it is blocked, nor after the old keys' end")
    func states() async throws {
        let scene = try await Scene(after: 365 - 900 / 86400)
        let (_, confirm) = try await scene.completed()
        let admin = try await scene.world.admin()
        let did = scene.did.text
        #expect(try await scene.world.provider.devices.change(admin, did: did, .block) == .blocked)
        #expect(try await scene.confirm(confirm) == "enrolment_void")
        #expect(try await scene.keepsKeys())
        #expect(try await scene.world.provider.devices.change(admin, did: did, .unblock) == .active)
        scene.world.base.clock.advance(by: 901)
        #expect(try await scene.confirm(confirm) == "enrolment_void")
        #expect(try await scene.keepsKeys())
        // Were they not over, the same message would do.
        try await scene.world.set("expires_at = expires_at + 60", of: scene.did)
        #expect(try await scene.confirm(confirm) == nil)
        #expect(try await !scene.keepsKeys())
    }

    @Test("A renewal goes no further, and gives out no secrets, in a container that may do nothing else either")
    func halted() async throws {
        let scene = try await Scene { $0.oneTimeKeys = [OneTimeKeySettings(label: "counted", kind: .counter)] }
        let renewal = try await scene.renewal()
        let body = try await renewal.body(scene.old, by: "payments")
        let commit = CommitBody(commitment: SigningHash(sha256: [1]), offer: renewal.content.offer)
        let evaluate = EvaluateBody(
            slot: .signing, generation: 1, rid: SigningID(random: scene.old.random),
            blinded: try ObliviousInput(Secret("any")).element.bytes)
        let now = scene.world.provider.now
        for (change, code) in [
            ("state = 'BLOCKED'", "container_blocked"), ("state = 'REVOKED'", "container_revoked"),
            ("state = 'VOID'", "enrolment_void"), ("state = 'SUSPECT'", "container_suspect"),
            ("state = 'ACTIVE', expires_at = \(now)", "key_expired"),
        ] as [(SQL, String)] {
            try await scene.world.set(change, of: scene.did)
            #expect(try await scene.old.code("renew/evaluate", scene.did, evaluate) == code)
            #expect(try await scene.old.code("renew/commit", scene.did, commit) == code)
            #expect(try await scene.old.code("renew/complete", scene.did, body) == code)
        }
        try await scene.world.set("expires_at = \(now + 60)", of: scene.did)
        #expect(try await scene.old.code("renew/complete", scene.did, body) == nil)
    }

    @Test("Another commitment for the same offer ends a renewal")
    func otherCommitment() async throws {
        let scene = try await Scene()
        let renewal = try await scene.renewal()
        let other = CommitBody(commitment: SigningHash(sha256: [1]), offer: renewal.content.offer)
        #expect(try await scene.old.code("renew/commit", scene.did, other) == "commitment_changed")
        let body = try await renewal.body(scene.old, by: "payments")
        #expect(try await scene.old.code("renew/complete", scene.did, body) == "enrolment_void")
        #expect(try await scene.keepsKeys())
        #expect(try await scene.world.audited(.signingContainer).last == "refused renewal commit")
    }

    @Test("A commitment comes in the fifteen minutes of its offer")
    func lateCommitment() async throws {
        let scene = try await Scene()
        let (offer, _) = try await scene.old.call("renew/start", scene.did, RenewStartBody())
        let body = CommitBody(commitment: SigningHash(sha256: [1]), offer: .offer(offer))
        scene.world.base.clock.advance(by: 900)
        #expect(try await scene.old.code("renew/commit", scene.did, body) == "enrolment_void")
        scene.world.base.clock.advance(by: -1)
        #expect(try await scene.old.code("renew/commit", scene.did, body) == nil)
    }
}
