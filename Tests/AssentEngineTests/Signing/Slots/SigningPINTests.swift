import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("A PIN whose guesses the server counts")
struct SigningPINTests {
    @Test("The right PIN approves; the receipt and the evidence say that it was counted")
    func approve() async throws {
        for biometry in [false, true] {
            let world = try await SigningWorld.withPIN(biometry: biometry)
            let (device, container, pin) = try await world.enrolledWithPIN()
            let (txn, _) = try await world.asked()
            let receipt = try await device.approve(txn, container, pin, typing: "2580").content
            #expect(receipt.methods == [.possession, biometry ? .user : .pin])
            #expect(receipt.unlock?.n == 1 && receipt.unlock?.generation == 0 && receipt.unlock?.slot == .signing)
            let slots = try await device.status(container.did).slots
            #expect(slots.count == 1 && slots.first?.tries == 5 && slots.first?.spare == 20)
            let bytes = try await world.provider.evidence.bundle(txn.text, for: .caller(world.ana))
            let identity = try await device.trust().identity.thumbprint
            let report = EvidenceVerification.report(on: try EvidenceBundle(reading: bytes), trust: identity)
            #expect(report.exitStatus == 0, "\(report.contradicted)")
            #expect(report.attested.contains(.passwordCounted(txn: txn)))
        }
    }

    @Test("Wrong PINs open nothing, are counted, and lock the slot until a fresh authentication")
    func wrong() async throws {
        let (world, device, container, pin) = try await SigningWorld.withEnrolledPIN()
        for left in [4, 3, 2, 1, 0] {
            #expect(try await pin.unlock("0000") == nil)
            #expect(try await device.status(container.did).slots.first?.tries == left)
        }
        #expect(try await refusal { _ = try await pin.unlock("2580") } == "locked")
        #expect(try await device.status(container.did).slots.first?.state == .locked)
        let did = container.did.text
        world.base.clock.advance(by: 301)
        let unlocking = { try await world.provider.slots.act(world.ana, did: did, .unlock, on: "signing") }
        #expect(try await refusal { _ = try await unlocking() } == "fresh_authentication_required")
        let again = SigningCaller(try await TransactionFixture.signIn("ana", world.base.context))
        #expect(try await world.provider.slots.act(again, did: did, .unlock, on: "signing") == .active)
        #expect(try await pin.open("2580") != nil)
        #expect(try await device.status(container.did).slots.first?.spare == 20)
    }

    @Test("A decision needs a confirmed evaluation of its own")
    func bound() async throws {
        let (world, device, container, pin) = try await SigningWorld.withEnrolledPIN()
        func decide(_ unl: SigningID?, _ status: String = "accept", label: String? = "payments") async throws
            -> String?
        {
            let (txn, _) = try await world.asked()
            let document = try await device.fetch(txn, container)
            let body = try await device.signed(
                try device.decision(document, status: status, unl: unl), label: label)
            return try await refusal { _ = try await device.decide(body, container) }
        }
        #expect(try await decide(nil) == "unlock_required")
        #expect(try await decide(SigningID(random: device.random)) == "unlock_required")
        let unconfirmed = try #require(try await pin.unlock("2580"))
        #expect(try await decide(try unconfirmed.unl) == "unlock_required")
        let opened = try #require(try await pin.open("2580"))
        #expect(try await decide(try opened.unl, "deny", label: nil) == "invalid_request")
        #expect(try await decide(try opened.unl) == nil)
        #expect(try await decide(try opened.unl) == "unlock_required")
        let old = try #require(try await pin.open("2580"))
        world.base.clock.advance(by: 300)
        #expect(try await decide(try old.unl) == "unlock_required")
        #expect(try await decide(nil, "deny", label: nil) == nil)
    }

    @Test("A change destroys the old key; the old PIN opens nothing, and what was sealed under it is lost")
    func change() async throws {
        let (world, device, container, pin) = try await SigningWorld.withEnrolledPIN()
        let opened = try #require(try await pin.open("2580"))
        _ = try await pin.begin(opened, "1111")
        let fresh = try await pin.begin(opened, "7391")
        // Until the end the old PIN is right, and another change cannot take the same evaluation for a decision.
        let (txn, _) = try await world.asked()
        let document = try await device.fetch(txn, container)
        let taken = try await device.signed(
            try device.decision(document, status: "accept", unl: try opened.unl), label: "payments")
        #expect(try await refusal { _ = try await device.decide(taken, container) } == "unlock_required")
        for _ in 0..<2 {
            let status = try await pin.commit(opened, from: 0)
            #expect(status.slots.first?.generation == 1)
        }
        #expect(try await refusal { _ = try await pin.unlock("2580") } == "wrong_generation")
        pin.kept.withLock { old in
            let (r, next, last) = (old.r, old.next, old.last)
            old = fresh
            (old.r, old.next, old.last) = (r, next, last)
        }
        #expect(try await pin.unlock("2580") == nil)
        #expect(try await device.approve(txn, container, pin, typing: "7391").content.unlock?.generation == 1)
        let late = try #require(try await pin.open("7391"))
        #expect(try await refusal { _ = try await pin.commit(late, from: 1) } == "wrong_generation")
    }

    @Test("A request of before a change of the PIN is no repetition after it: the new key's evaluation is counted")
    func requestOfBefore() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.withSlot()
        let before = fixture.attempt(container)
        #expect(try await fixture.unlock(container, before).n == 1)
        try await fixture.slots.confirm(fixture.confirmed(container, 1), of: container)
        try await fixture.slots.begin(
            SlotChange(did: container.did, slot: .signing, from: 0, to: 1),
            with: SigningOfferedSlot(slot: .signing, generation: 1, publicKey: [2], sealedKey: [8]), unl: "unl 1",
            minimumAge: 0, of: container, proof: fixture.proof(container.did), at: fixture.now)
        // The control: until the end it is the old key's, and a repetition.
        let repeated = try await fixture.unlock(container, before)
        #expect(repeated.n == 1 && repeated.sealedKey == [7])
        try await fixture.slots.commit(
            SlotChange(did: container.did, slot: .signing, from: 0, to: 1, publicKey: [2]), of: container,
            proof: fixture.proof(container.did), at: fixture.now)
        let again = SlotTry(
            did: before.did, slot: .signing, generation: 1, rid: before.rid, element: before.element,
            ratchet: before.ratchet, next: before.next, last: before.last, nonceMadeAt: before.nonceMadeAt)
        for _ in 0..<2 {
            let counted = try await fixture.unlock(container, again)
            #expect(counted.n == 2 && counted.sealedKey == [8] && counted.tries == 4 && counted.spare == 19)
        }
        let notes = try await fixture.slotNotes(container).filter { $0.hasPrefix("evaluated") }
        #expect(notes == ["evaluated 1", "evaluated 2"])
    }

    @Test("Ages are the server's: too young is not changed, too old approves nothing until it is")
    func ages() async throws {
        let world = try await SigningWorld.withPIN {
            $0.minAge = 1
            $0.maxAge = 90
        }
        let (device, container, pin) = try await world.enrolledWithPIN()
        let early = try #require(try await pin.open("2580"))
        #expect(try await refusal { _ = try await pin.begin(early, "7391") } == "password_too_young")
        world.base.clock.advance(by: 90 * 86400)
        let (txn, _) = try await world.asked()
        #expect(
            try await refusal { _ = try await device.approve(txn, container, pin, typing: "2580") }
                == "password_expired")
        let late = try #require(try await pin.open("2580"))
        let fresh = try await pin.begin(late, "7391")
        _ = try await pin.commit(late, from: 0)
        pin.kept.withLock { old in
            let (r, last) = (old.r, old.last)
            old = fresh
            (old.r, old.last) = (r, last)
        }
        #expect(try await device.approve(txn, container, pin, typing: "7391").content.state == .approved)
    }

    @Test("A copied device is found when both copies are used, and may only refuse from then on")
    func copied() async throws {
        let (world, device, container, pin) = try await SigningWorld.withEnrolledPIN()
        _ = try await pin.open("2580")
        let (shown, _) = try await world.asked()
        _ = try await device.fetch(shown, container)
        let copy = pin.kept.withLock { $0 }
        _ = try await pin.open("2580")
        let mine = pin.kept.withLock { $0 }
        pin.kept.withLock { $0 = copy }
        world.base.clock.advance(by: 61)
        #expect(try await refusal { _ = try await pin.unlock("2580") } == "container_suspect")
        pin.kept.withLock { $0 = mine }
        #expect(try await refusal { _ = try await pin.unlock("2580") } == "container_suspect")
        #expect(try await device.status(container.did).state == .suspect)
        // It reads nothing either, also not again.
        #expect(try await refusal { _ = try await device.list(container.did) } == "container_suspect")
        #expect(try await refusal { _ = try await device.fetch(shown, container) } == "container_suspect")
        let (txn, _) = try await world.asked()
        let blind = try await device.signed(device.blind(txn, container), label: nil)
        #expect(try await device.decide(blind, container).content.state == .denied)
    }

    @Test("Administrators lock, unlock and destroy; users only unlock their own, and others do not see it")
    func administrators() async throws {
        let (world, device, container, pin) = try await SigningWorld.withEnrolledPIN()
        let did = container.did.text
        let admin = SigningCaller(try await TransactionFixture.signIn("admin", roles: [.admin], world.base.context))
        let ben = SigningCaller(try await TransactionFixture.signIn("ben", world.base.context))
        func act(_ caller: SigningCaller, _ action: SlotAction, _ slot: String = "signing") async throws -> String? {
            try await refusal { _ = try await world.provider.slots.act(caller, did: did, action, on: slot) }
        }
        for action in [SlotAction.lock, .wipe] { #expect(try await act(world.ana, action) == "forbidden") }
        for action in [SlotAction.lock, .unlock, .wipe] { #expect(try await act(ben, action) == "unknown_container") }
        #expect(try await act(admin, .lock, "otp") == "invalid_request")
        #expect(try await act(admin, .lock) == nil)
        #expect(try await refusal { _ = try await pin.unlock("2580") } == "locked")
        #expect(try await act(world.ana, .unlock) == nil)
        #expect(try await pin.open("2580") != nil)
        let (txn, _) = try await world.asked()
        for _ in 0..<2 { #expect(try await act(admin, .wipe) == nil) }
        #expect(try await act(world.ana, .unlock) == "shredded")
        #expect(try await refusal { _ = try await pin.unlock("2580") } == "shredded")
        let status = try await device.status(container.did)
        #expect(status.slots.first?.state == .shredded && status.state == .active)
        #expect(status.keys.filter { $0.state == .retired }.map(\.label) == ["payments"])
        #expect(try await device.list(container.did).isEmpty)
        let blind = try await device.signed(device.blind(txn, container), label: nil)
        #expect(try await device.decide(blind, container).content.state == .denied)
    }

    @Test("Elements that are none, and messages of somebody else, are refused before anything is counted")
    func malformed() async throws {
        let (world, device, container, pin) = try await SigningWorld.withEnrolledPIN()
        let (_, stranger, other) = try await world.enrolledWithPIN()
        let kept = pin.kept.withLock { $0 }
        let point = try ObliviousKey().publicKey.bytes
        var bad: [[UInt8]] = [
            [UInt8](repeating: 0, count: 49), [4] + point.dropFirst(), [2] + [UInt8](repeating: 255, count: 48),
            [3] + [UInt8](repeating: 0, count: 47) + [1], Array(point.dropLast()), point + [0],
        ]
        // Of each x about one half is on the curve.
        bad = bad.filter { (try? ObliviousElement($0)) == nil }
        #expect(bad.count >= 5)
        for element in bad {
            let body = pin.body(kept, next: kept.r, element: element)
            #expect(
                try await refusal { _ = try await device.call("slots/unlock", container.did, body) }
                    == "invalid_request")
        }
        let opened = try #require(try await other.open("2580"))
        let foreign = pin.body(kept, next: kept.r, element: point)
        let withForeign = UnlockBody(
            slot: .signing, generation: 0, rid: foreign.rid, blinded: point, r: foreign.r, next: foreign.next,
            last: opened.evaluation.compact)
        #expect(
            try await refusal { _ = try await device.call("slots/unlock", container.did, withForeign) }
                == "invalid_request")
        #expect(
            try await refusal {
                _ = try await device.call("slots/confirm", container.did, try await other.confirmation(opened))
            } == "invalid_request")
        #expect(try await device.status(container.did).slots.first?.spare == 20)
        #expect(try await other.device.status(stranger.did).slots.first?.spare == 20)
    }

    @Test("A confirmation counts for its own evaluation and by a key of the slot only")
    func confirmations() async throws {
        let (_, device, container, pin) = try await SigningWorld.withEnrolledPIN()
        let first = try #require(try await pin.unlock("2580"))
        let second = try #require(try await pin.unlock("2580"))
        func send(_ body: ConfirmEvaluationBody) async throws -> String? {
            try await refusal { _ = try await device.call("slots/confirm", container.did, body) }
        }
        let right = try await pin.confirmation(second)
        let mixed = ConfirmEvaluationBody(
            confirmation: right.confirmation, evaluation: first.evaluation.compact)
        #expect(try await send(mixed) == "bad_signature")
        let byDevice = try await pin.confirmation(
            TestPIN.Opened(evaluation: second.evaluation, key: device.deviceKey))
        #expect(try await send(byDevice) == "bad_signature")
        let byStranger = try await pin.confirmation(
            TestPIN.Opened(evaluation: second.evaluation, key: try SoftwareSigningKey.generate(.es256)))
        #expect(try await send(byStranger) == "bad_signature")
        #expect(try await device.status(container.did).slots.first?.tries == 3)
        for _ in 0..<3 { #expect(try await send(right) == nil) }
        let slot = try #require(try await device.status(container.did).slots.first)
        #expect(slot.tries == 5 && slot.spare == 19)
        #expect(try await send(try await pin.confirmation(first)) == nil)
        #expect(try await device.status(container.did).slots.first?.spare == 20)
    }

    @Test("A confirmation names its issuer, container, generation, number and evaluation", arguments: 0..<5)
    func confirmed(what: Int) async throws {
        let (world, device, container, pin) = try await SigningWorld.withEnrolledPIN()
        let opened = try #require(try await pin.unlock("2580"))
        let right = try await pin.confirmation(opened)
        let content = EvaluationConfirmation(
            issuer: what == 0 ? "https://other.example" : world.name,
            did: what == 1 ? SigningID(random: device.random) : container.did, slot: .signing,
            generation: what == 2 ? 1 : 0, n: what == 3 ? 2 : 1,
            unl: what == 4 ? SigningID(random: device.random) : try opened.unl,
            evaluation: .evaluation(opened.evaluation.compact))
        let wrong = ConfirmEvaluationBody(
            confirmation: try await SignedMessage.sign(content, with: opened.key).compact,
            evaluation: right.evaluation)
        func send(_ body: ConfirmEvaluationBody) async throws -> String? {
            try await refusal { _ = try await device.call("slots/confirm", container.did, body) }
        }
        #expect(try await send(wrong) == "bad_signature")
        #expect(try await device.status(container.did).slots.first?.tries == 4)
        #expect(try await send(right) == nil)
    }

    @Test("A key of a slot that was wiped confirms nothing and begins no change")
    func wiped() async throws {
        let (world, device, container, pin) = try await SigningWorld.withEnrolledPIN()
        let confirmed = try #require(try await pin.open("2580"))
        let late = try #require(try await pin.unlock("2580"))
        let admin = SigningCaller(try await TransactionFixture.signIn("admin", roles: [.admin], world.base.context))
        _ = try await world.provider.slots.act(admin, did: container.did.text, .wipe, on: "signing")
        let confirmation = try await pin.confirmation(late)
        #expect(
            try await refusal { _ = try await device.call("slots/confirm", container.did, confirmation) }
                == "key_retired")
        #expect(try await refusal { _ = try await pin.begin(confirmed, "7391") } == "key_retired")
    }

    @Test("A device that cannot do what the policy asks for is refused, and so are keys that are not sealed as it says")
    func modes() async throws {
        let world = try await SigningWorld.withPIN()
        let invite = try await world.invite()
        let plain = try TestDevice(world)
        #expect(try await refusal { _ = try await plain.start(invite.code) } == "rule_unsupported")
    }

    @Test("Settings that a device would refuse are faults")
    func faults() async throws {
        let world = try await SigningWorld.withPIN()
        func faults(_ change: (inout SigningSettings) -> Void) -> Int {
            var settings = world.provider.settings
            change(&settings)
            return settings.faults().count
        }
        #expect(faults { _ in } == 0)
        #expect(faults { $0.transportPolicy = "pin" } == 1)
        #expect(faults { $0.policies = [] } == 1)
        #expect(faults { $0.policies += $0.policies } == 2)
        let wrong = AssistedPasswordLock(max: 11, cap: 20, delays: [])
        #expect(
            faults { settings in
                settings.policies = settings.policies.map { policy in
                    guard let password = policy.password else { return policy }
                    return ProtectionPolicy(
                        id: policy.id, biometry: false,
                        password: ProtectionPolicy.Password(
                            mode: .assisted, cost: password.cost, rules: password.rules, lock: .assisted(wrong)))
                }
            } == 1)
    }
}
