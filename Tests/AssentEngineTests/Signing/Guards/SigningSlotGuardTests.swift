import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("A PIN: messages that are not the server's own, or for something else")
struct SigningSlotGuardTests {
    private struct Scene {
        let world: SigningWorld
        let device: TestDevice
        let container: TestDevice.Enrolled
        let pin: TestPIN

        init() async throws {
            (world, device, container, pin) = try await SigningWorld.withEnrolledPIN()
        }

        func start(_ change: String) async throws -> String? {
            let body = ChangeStartBody(
                change: change, rid: SigningID(random: device.random), blinded: pin.kept.withLock { $0.publicKey })
            return try await device.code("slots/change-start", container.did, body)
        }

        func commit(_ change: String) async throws -> String? {
            try await device.code("slots/change-commit", container.did, ChangeCommitBody(change: change))
        }
    }

    @Test("An evaluation that the server has not signed so is neither the last one nor confirmed")
    func evaluations() async throws {
        let scene = try await Scene()
        let opened = try #require(try await scene.pin.unlock("2580"))
        let right = try await scene.pin.confirmation(opened)
        let forged = opened.evaluation.compact.withAnotherSignature
        let content = EvaluationConfirmation(
            issuer: scene.world.name, did: scene.container.did, slot: .signing, generation: 0, n: 1,
            unl: try opened.unl, evaluation: .evaluation(forged))
        let confirmation = try await SignedMessage.sign(content, with: opened.key).compact
        let confirm = ConfirmEvaluationBody(confirmation: confirmation, evaluation: forged)
        #expect(try await scene.device.code("slots/confirm", scene.container.did, confirm) == "invalid_request")
        let kept = scene.pin.kept.withLock { $0 }
        let body = UnlockBody(
            slot: .signing, generation: 0, rid: SigningID(random: scene.device.random), blinded: kept.publicKey,
            r: kept.r, next: .ratchet(kept.r), last: forged)
        #expect(try await scene.device.code("slots/unlock", scene.container.did, body) == "invalid_request")
        let slot = try #require(try await scene.world.provider.slots.find(.signing, of: scene.container.did))
        #expect(slot.n == 1 && slot.unconfirmed == 1)
        #expect(try await scene.device.code("slots/confirm", scene.container.did, right) == nil)
    }

    @Test("The same request has two evaluations of one number: a confirmation is of the bytes that it names")
    func bytes() async throws {
        let scene = try await Scene()
        let kept = scene.pin.kept.withLock { $0 }
        let body = scene.pin.body(kept, next: kept.r, element: kept.publicKey)
        func evaluation() async throws -> SignedMessage<Evaluation> {
            let (reply, request) = try await scene.device.call("slots/unlock", scene.container.did, body)
            return try await scene.device.trust().reply(
                reply, as: Evaluation.self, audience: scene.container.did.text, request: request)
        }
        let (first, second) = (try await evaluation(), try await evaluation())
        #expect(first.compact != second.compact && first.content.n == second.content.n)
        // The key is known to this test without the PIN.
        let key = try scene.device.key("payments")
        let right = try await scene.pin.confirmation(TestPIN.Opened(evaluation: first, key: key))
        let mixed = ConfirmEvaluationBody(confirmation: right.confirmation, evaluation: second.compact)
        #expect(try await scene.device.code("slots/confirm", scene.container.did, mixed) == "bad_signature")
        #expect(try await scene.device.code("slots/confirm", scene.container.did, right) == nil)
    }

    @Test("A change is for its own issuer, container and slot, and by a key of that slot", arguments: 0..<6)
    func changes(what: Int) async throws {
        let scene = try await Scene()
        let opened = try #require(try await scene.pin.open("2580"))
        let stranger = try SoftwareSigningKey.generate(.es256)
        let key = what == 3 ? scene.device.deviceKey : what == 4 ? stranger : opened.key
        func change(_ step: PasswordChangeStep, publicKey: [UInt8]? = nil) async throws -> String {
            let content = PasswordChange(
                issuer: what == 0 ? "https://other.example" : scene.world.name,
                did: what == 1 ? SigningID(random: scene.device.random) : scene.container.did,
                slot: what == 2 ? .session : .signing, from: 0, to: 1, step: step,
                unl: step == .start ? try opened.unl : nil, publicKey: publicKey,
                jti: SigningID(random: scene.device.random))
            let message = try await SignedMessage.sign(content, with: key).compact
            return what == 5 ? message.withAnotherSignature : message
        }
        #expect(try await scene.start(try await change(.start)) == "bad_signature")
        _ = try await scene.pin.begin(opened, "7391")
        let pending = scene.pin.pending.withLock { $0 }
        #expect(try await scene.commit(try await change(.commit, publicKey: pending)) == "bad_signature")
        let slot = try #require(try await scene.world.provider.slots.find(.signing, of: scene.container.did))
        #expect(slot.generation == 0)
        #expect(try await scene.pin.commit(opened, from: 0).slots.first?.generation == 1)
    }

    @Test("Each change needs a PIN that was typed in the last five minutes, and takes it for itself")
    func evaluationsOfChanges() async throws {
        let scene = try await Scene()
        let old = try #require(try await scene.pin.open("2580"))
        scene.world.base.clock.advance(by: 300)
        #expect(try await scene.start(try await scene.pin.change(.start, old, from: 0)) == "unlock_required")
        let opened = try #require(try await scene.pin.open("2580"))
        scene.world.base.clock.advance(by: 299)
        _ = try await scene.pin.begin(opened, "7391")
        _ = try await scene.pin.commit(opened, from: 0)
        // The same word of the user does not do for the next change.
        #expect(try await scene.start(try await scene.pin.change(.start, opened, from: 1)) == "unlock_required")
    }

    @Test("A change does not begin or end in a container that another node has blocked meanwhile")
    func blocked() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.withSlot()
        _ = try await fixture.unlock(container)
        try await fixture.slots.confirm(fixture.confirmed(container, 1), of: container)
        let key = SigningOfferedSlot(slot: .signing, generation: 1, publicKey: [2], sealedKey: [8])
        func begin() async throws -> SigningErrorCode? {
            try await signingCode {
                try await fixture.slots.begin(
                    SlotChange(did: container.did, slot: .signing, from: 0, to: 1), with: key, unl: "unl 1",
                    minimumAge: 0, of: container, proof: fixture.proof(container.did), at: fixture.now)
            }
        }
        func commit() async throws -> SigningErrorCode? {
            try await signingCode {
                try await fixture.slots.commit(
                    SlotChange(did: container.did, slot: .signing, from: 0, to: 1, publicKey: [2]), of: container,
                    proof: fixture.proof(container.did), at: fixture.now)
            }
        }
        func set(_ change: SQL) async throws {
            _ = try await fixture.base.database.run(SQLStatement("UPDATE signing_containers SET \(change)"))
        }
        let changes: [(SQL, SigningErrorCode)] = [
            ("state = 'BLOCKED'", .containerBlocked), ("state = 'SUSPECT'", .containerSuspect),
            ("state = 'ACTIVE', expires_at = \(fixture.now)", .keyExpired),
        ]
        for (change, code) in changes {
            try await set(change)
            #expect(try await begin() == code)
        }
        try await set("state = 'ACTIVE', expires_at = \(fixture.now + 60)")
        #expect(try await begin() == nil)
        for (change, code) in changes {
            try await set(change)
            #expect(try await commit() == code)
        }
        #expect(try await fixture.slot(container).generation == 0)
        try await set("state = 'ACTIVE', expires_at = \(fixture.now + 60)")
        #expect(try await commit() == nil)
    }

    @Test("A PIN that was destroyed between the start of a change and its end is not made whole by it")
    func destroyed() async throws {
        let scene = try await Scene()
        let opened = try #require(try await scene.pin.open("2580"))
        _ = try await scene.pin.begin(opened, "7391")
        let (did, slots) = (scene.container.did, scene.world.provider.slots)
        let record = try await scene.world.record(did)
        #expect(try await slots.act(.wipe, on: .signing, of: record, by: "admin"))
        let code = try await signingCode {
            try await slots.commit(
                SlotChange(
                    did: did, slot: .signing, from: 0, to: 1, publicKey: scene.pin.pending.withLock { $0 }),
                of: record, proof: SpentProof(jti: SigningID(random: scene.device.random), did: did),
                at: scene.world.provider.now)
        }
        #expect(code == .shredded)
        let slot = try #require(try await slots.find(.signing, of: did))
        #expect(slot.sealedKey == nil && slot.generation == 0)
    }

    @Test("At an enrolment another element under the same id is another evaluation, of which there are five")
    func elements() async throws {
        let fixture = try await SigningStoreFixture()
        let enrolment = fixture.enrolment(try await fixture.invited())
        let slot = SigningOfferedSlot(slot: .signing, generation: 0, publicKey: [1], sealedKey: [7])
        #expect(
            try await fixture.enrolments.start(
                enrolment, slots: [slot], user: fixture.user, isAgain: false, at: fixture.now))
        func evaluate(_ element: String) async throws -> SigningErrorCode? {
            try await signingCode {
                _ = try await fixture.slots.count(
                    SlotEvaluation(
                        did: enrolment.did, pid: enrolment.pid, isRenewal: false, user: nil, slot: .signing,
                        generation: 0, rid: "a", element: element), at: fixture.now)
            }
        }
        for number in 0..<5 { #expect(try await evaluate("e\(number)") == nil) }
        #expect(try await evaluate("e5") == .rateLimited)
        #expect(try await evaluate("e4") == nil)
    }

    @Test("A new policy without a PIN destroys what the server has of the old one, when keys are renewed under it")
    func noPIN() async throws {
        let scene = try await Scene()
        let world = scene.world
        world.base.clock.advance(by: 350 * 86400)
        var settings = world.provider.settings
        settings.keys = [OfferedKey(usage: .sign, label: "payments", policy: SigningSettings.policyID)]
        let later = SigningProvider(world.base.context, settings: settings)
        try await SigningWorld.$route.withValue({ later }) {
            let new = try TestDevice(world)
            let renewal = try await LowRenewal(scene.device, new, scene.container)
            _ = try #require(try await scene.pin.open("2580"))
            let body = try await renewal.body(scene.device, by: "payments")
            let enrolled = try await renewal.complete(body, scene.device, new)
            let confirm = ConfirmBody(echo: enrolled.echo)
            #expect(try await new.code("renew/confirm", scene.container.did, confirm) == nil)
        }
        let slot = try #require(try await world.provider.slots.find(.signing, of: scene.container.did))
        #expect(slot.sealedKey == nil)
    }
}
