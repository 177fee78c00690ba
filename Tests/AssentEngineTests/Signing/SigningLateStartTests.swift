import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("An offer that a delayed request replaces before the commitment to it")
struct SigningLateStartTests {
    /// A device that has an offer, and the commitment to the keys that it made for it.
    private struct Offered {
        let device: TestDevice
        let offer: SignedMessage<Offer>
        let nonceD = SigningNonce(random: SystemRandom())

        var did: SigningID { offer.content.did }

        func list(_ nonce: NonceReply? = nil) async throws -> Enrolment {
            try await device.enrolment(offer.content, compact: offer.compact, nonceD: nonceD, nonce: nonce)
        }

        func body() async throws -> CommitBody {
            let keys = try await list().keyList
            return CommitBody(commitment: .commitment(nonceD: nonceD, keys: keys), offer: .offer(offer.compact))
        }

        func complete(_ nonce: NonceReply) async throws -> AssentSigningProtocol.Enrolled {
            let enrol = try await SignedMessage.sign(try await list(nonce), with: device.deviceKey).compact
            return try await device.askSealed("provision/complete", did, CompleteBody(enrol: enrol))
        }
    }

    /// A start that its sender has made, and that nobody has sent yet.
    private func start(_ device: TestDevice, _ code: InviteCode) async throws -> String {
        try await SignedMessage.sign(
            Start(
                issuer: device.issuer.name, code: code, nonce: try await device.issuer.configuration().nonce,
                jwk: try ProtocolKey(device.deviceKey), modes: device.modes, info: ["model": "tablet"]),
            with: device.deviceKey
        ).compact
    }

    private func invite(_ world: SigningWorld, _ pid: String) async throws -> SigningInviteRecord {
        let pid = try #require(SigningID(text: pid))
        return try #require(try await world.provider.invites.find(pid))
    }

    @Test("A late start: the commitment is refused, nothing is spent, and the same invite enrols the device")
    func enrolment() async throws {
        let world = try await SigningWorld()
        let invite = try await world.invite()
        let device = try TestDevice(world)
        let held = try await start(device, invite.code)
        let accepted = Offered(device: device, offer: try await device.start(invite.code))
        let late = try await device.start(held)
        #expect(late.content.did == accepted.did && late.compact != accepted.offer.compact)
        let body = try await accepted.body()
        for _ in 0..<2 {
            let code = try await refusal { _ = try await device.call("provision/commit", accepted.did, body) }
            #expect(code == "hash_mismatch")
        }
        let spent = try await self.invite(world, invite.pid)
        #expect(spent.committed == nil && spent.state == .open)
        let known = try #require(try await world.provider.enrolments.find(accepted.did))
        #expect(known.state == .started && known.commitment == nil && known.nonce == nil && known.offer == late.compact)
        let container = try await device.enrol(invite.code)
        #expect(container.did == accepted.did)
        let status = try await world.provider.invites.enter(digits: container.digits, world.ana, pid: invite.pid)
        #expect(status.state == "ACTIVE")
    }

    @Test("A commitment to keys for the earlier offer that comes after the right one ends nothing")
    func lateCommitment() async throws {
        let world = try await SigningWorld()
        let invite = try await world.invite()
        let device = try TestDevice(world)
        let first = Offered(device: device, offer: try await device.start(invite.code))
        let second = Offered(device: device, offer: try await device.start(invite.code))
        let nonce: NonceReply = try await device.ask("provision/commit", second.did, try await second.body())
        let late = try await first.body()
        #expect(try await refusal { _ = try await device.call("provision/commit", first.did, late) } == "hash_mismatch")
        let again: NonceReply = try await device.ask("provision/commit", second.did, try await second.body())
        #expect(again.nonceS == nonce.nonceS)
        let enrolled = try await second.complete(nonce)
        #expect(try await refusal { _ = try await device.call("provision/commit", first.did, late) } != nil)
        let confirm = ConfirmBody(echo: enrolled.echo)
        let status: ContainerStatus = try await device.ask("provision/confirm", second.did, confirm)
        #expect(status.state == .unconfirmed)
    }

    @Test("Another commitment to keys for the same offer ends the enrolment")
    func otherCommitment() async throws {
        let world = try await SigningWorld()
        let invite = try await world.invite()
        let device = try TestDevice(world)
        let offer = try await device.start(invite.code)
        let (one, two) = (Offered(device: device, offer: offer), Offered(device: device, offer: offer))
        let _: NonceReply = try await device.ask("provision/commit", one.did, try await one.body())
        let other = try await two.body()
        #expect(
            try await refusal { _ = try await device.call("provision/commit", one.did, other) } == "commitment_changed")
        #expect(try await self.invite(world, invite.pid).state == .void)
    }

    @Test("A commitment names its offer: another hash or none is refused, and nothing is spent")
    func namesOffer() async throws {
        let world = try await SigningWorld()
        let invite = try await world.invite()
        let device = try TestDevice(world)
        let offered = Offered(device: device, offer: try await device.start(invite.code))
        let right = try await offered.body()
        for index in [0, 15, 31] {
            var bytes = right.offer.bytes
            bytes[index] ^= 1
            let flipped = CommitBody(commitment: right.commitment, offer: try #require(SigningHash(bytes: bytes)))
            let code = try await refusal { _ = try await device.call("provision/commit", offered.did, flipped) }
            #expect(code == "hash_mismatch")
        }
        let json = [
            #"{"commitment":"\#(right.commitment.text)"}"#, #"{"offer":"\#(right.offer.text)"}"#,
            #"{"commitment":"\#(right.commitment.text)","offer":""}"#,
            #"{"commitment":"\#(right.commitment.text)","offer":"\#(right.offer.text.dropLast())"}"#,
        ]
        for text in json {
            let body = try await device.sealed(Array(text.utf8), sender: offered.did.text)
            let proof = try await device.proof(offered.did, path: "provision/commit", body: body)
            let code = try await refusal { _ = try await world.send("provision/commit", proof: proof, body: body) }
            #expect(code == "invalid_request", "\(text)")
        }
        #expect(try await self.invite(world, invite.pid).committed == nil)
        let _: NonceReply = try await device.ask("provision/commit", offered.did, right)
    }

    @Test("A late start of a renewal: the commitment is refused, and the same renewal goes on with its last offer")
    func renewal() async throws {
        let world = try await SigningWorld()
        let (old, container) = try await world.enrolled()
        world.base.clock.advance(by: 350 * 86400)
        old.forgetTrust()
        let held = try await old.sealed(RenewStartBody().encoded(), sender: container.did.text)
        let proof = try await old.proof(container.did, path: "renew/start", body: held)
        let (accepted, _) = try await old.call("renew/start", container.did, RenewStartBody())
        _ = try await world.send("renew/start", proof: proof, body: held)
        let known = try #require(
            try await world.provider.enrolments.renewal(of: container.did, at: world.provider.enrolments.now))
        #expect(known.state == .started && known.offer != accepted)
        let body = CommitBody(commitment: SigningHash(sha256: [1]), offer: .offer(accepted))
        for _ in 0..<2 {
            let code = try await refusal { _ = try await old.call("renew/commit", container.did, body) }
            #expect(code == "hash_mismatch")
        }
        let still = try await world.provider.enrolments.renewal(pid: known.pid)
        #expect(still?.state == .started && still?.commitment == nil)
        let new = try TestDevice(world)
        let renewal = try await LowRenewal(old, new, container)
        #expect(renewal.content.pid == known.pid)
        try await finish(renewal, old, new)
    }

    /// Completes and confirms a renewal that is committed.
    private func finish(_ renewal: LowRenewal, _ old: TestDevice, _ new: TestDevice) async throws {
        let enrolled = try await renewal.complete(try await body(renewal, old), old, new)
        let status: ContainerStatus = try await new.ask("renew/confirm", renewal.did, ConfirmBody(echo: enrolled.echo))
        #expect(status.keys.contains { $0.kid?.text == renewal.newDevice && $0.state == .active })
    }

    private func body(_ renewal: LowRenewal, _ old: TestDevice) async throws -> CompleteBody {
        let payments = try #require(old.keys.withLock { $0["payments"] })
        return CompleteBody(
            enrol: renewal.enrol,
            endorsements: [
                try await renewal.endorsement(by: old.deviceKey), try await renewal.endorsement(by: payments),
            ])
    }

    @Test(
        "A late start of a renewal after the commitment ends it: the old keys stay, and the device begins another one")
    func afterCommitment() async throws {
        let world = try await SigningWorld()
        let (old, container) = try await world.enrolled()
        world.base.clock.advance(by: 350 * 86400)
        old.forgetTrust()
        let held = try await old.sealed(RenewStartBody().encoded(), sender: container.did.text)
        let proof = try await old.proof(container.did, path: "renew/start", body: held)
        let first = try TestDevice(world)
        let renewal = try await LowRenewal(old, first, container)
        _ = try await world.send("renew/start", proof: proof, body: held)
        let known = try #require(
            try await world.provider.enrolments.renewal(of: container.did, at: world.provider.enrolments.now))
        #expect(known.state == .started && known.pid != renewal.content.pid)
        let body = try await self.body(renewal, old)
        #expect(
            try await refusal { _ = try await old.call("renew/complete", container.did, body) } == "enrolment_void")
        let kept = try await world.provider.devices.find(container.did)
        #expect(try kept?.deviceKeyID.text == ProtocolKey(old.deviceKey).thumbprint.text)

        let second = try TestDevice(world)
        let again = try await LowRenewal(old, second, container)
        #expect(again.content.pid == known.pid)
        try await finish(again, old, second)
    }

    /// A container whose keys are due, and the code of a reset of it.
    private struct Reset {
        let world: SigningWorld
        let old: TestDevice
        let container: TestDevice.Enrolled
        let user: SigningCaller
        let pid: String
        let code: InviteCode

        init() async throws {
            world = try await SigningWorld()
            (old, container) = try await world.enrolled()
            world.base.clock.advance(by: 350 * 86400)
            old.forgetTrust()
            user = SigningCaller(try await TransactionFixture.signIn("ana", world.base.context))
            let shown = try await world.provider.invites.make(user, user: nil, did: container.did.text)
            pid = shown.pid
            code = try #require(InviteCode(typed: shown.code.reveal()))
        }
    }

    @Test("A late start of a renewal without a code does not end a reset, whenever it comes")
    func duringReset() async throws {
        let reset = try await Reset()
        let (world, old, did) = (reset.world, reset.old, reset.container.did)
        let held = try await old.sealed(RenewStartBody().encoded(), sender: did.text)
        let proof = try await old.proof(did, path: "renew/start", body: held)
        func comesLate() async throws {
            let refused = try await refusal { _ = try await world.send("renew/start", proof: proof, body: held) }
            #expect(refused == "fresh_authentication_required")
        }
        _ = try await old.call("renew/start", did, RenewStartBody(code: reset.code))
        try await comesLate()
        let new = try TestDevice(world)
        let renewal = try await LowRenewal(old, new, reset.container, code: reset.code)
        try await comesLate()
        let enrolled = try await renewal.complete(try await renewal.body(old), old, new)
        try await comesLate()
        let _: ContainerStatus = try await new.ask("renew/confirm", did, ConfirmBody(echo: enrolled.echo))
        try await comesLate()
        let digits = renewal.content.transcript(identity: try await new.trust().identity.thumbprint).digits
        _ = try await world.provider.invites.enter(digits: digits, reset.user, pid: reset.pid)
        let kept = try await world.record(did)
        #expect(kept.deviceKeyID.text == renewal.newDevice)
    }

    @Test("A renewal without a code begins when a reset was withdrawn or is over, and ends what is left of it")
    func afterReset() async throws {
        for isWithdrawn in [true, false] {
            let reset = try await Reset()
            let (world, old) = (reset.world, reset.old)
            let renewal = try await LowRenewal(old, try TestDevice(world), reset.container, code: reset.code)
            if isWithdrawn {
                try await world.provider.invites.withdraw(reset.user, pid: reset.pid)
            } else {
                world.base.clock.advance(by: Double(SigningInviteRecord.lifetime + SigningInviteRecord.completion))
            }
            let new = try TestDevice(world)
            let due = try await LowRenewal(old, new, reset.container)
            let over = try await world.provider.enrolments.renewal(pid: renewal.content.pid)
            #expect(over?.state == .void)
            try await finish(due, old, new)
        }
    }
}

@Suite("A replaced offer, as statements")
struct SigningReplacedOfferStoreTests {
    private func another(_ enrolment: SigningEnrolmentRecord, _ offer: String) -> SigningEnrolmentRecord {
        SigningEnrolmentRecord(
            did: enrolment.did, pid: enrolment.pid, deviceKeyID: enrolment.deviceKeyID, deviceJWK: "{}",
            requestHash: "request of \(offer)", offer: offer, info: "{}", expiresAt: enrolment.expiresAt)
    }

    @Test("An offer that is replaced after it was read takes no commitment")
    func afterReading() async throws {
        let fixture = try await SigningStoreFixture()
        let enrolment = try await fixture.started(try await fixture.invited())
        let second = another(enrolment, "second")
        #expect(try await fixture.enrolments.start(second, user: fixture.user, isAgain: true, at: fixture.now))
        #expect(try await signingCode { _ = try await fixture.commit(enrolment) } == .hashMismatch)
        #expect(try await fixture.invites.find(enrolment.pid)?.committed == nil)
        #expect(try await fixture.enrolments.find(enrolment.did)?.state == .started)
        let nonce = try await fixture.commit(second)
        #expect(try await signingCode { _ = try await fixture.commit(enrolment, "another") } == .hashMismatch)
        #expect(try await fixture.commit(second) == nonce)
        #expect(try await fixture.complete(fixture.container(second)))
    }

    @Test("Of a start and a commitment at the same moment the invite takes one, and the offer fits to it")
    func race() async throws {
        let fixture = try await SigningStoreFixture()
        for round in 0..<20 {
            let enrolment = try await fixture.started(try await fixture.invited())
            let second = another(enrolment, "second")
            async let start = fixture.enrolments.start(second, user: fixture.user, isAgain: true, at: fixture.now)
            async let commit = signingCode { _ = try await fixture.commit(enrolment) }
            let (isReplaced, refused) = try await (start, commit)
            let known = try #require(try await fixture.enrolments.find(enrolment.did))
            let committed = try await fixture.invites.find(enrolment.pid)?.committed
            if isReplaced {
                #expect(refused == .hashMismatch && committed == nil, "round \(round)")
                #expect(known.state == .started && known.offer == "second" && known.commitment == nil)
            } else {
                #expect(refused == nil && committed == enrolment.did, "round \(round)")
                #expect(known.state == .committed && known.offer == enrolment.offer)
            }
        }
    }

    @Test("The same of a renewal, whose offer is replaced before or at the same moment", arguments: [false, true])
    func renewal(atOnce: Bool) async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.active()
        let (enrolments, now) = (fixture.enrolments, fixture.now)
        func renewal(_ pid: SigningID, _ offer: String) -> SigningRenewalRecord {
            SigningRenewalRecord(
                pid: pid, did: container.did, invite: nil, commitMode: .exchange, offer: offer,
                expiresAt: now + SigningRenewalRecord.lifetime)
        }
        func start(_ renewal: SigningRenewalRecord, isAgain: Bool) async throws -> Bool {
            try await enrolments.start(
                renewal, isAgain: isAgain, user: fixture.user, proof: fixture.proof(container.did), at: now)
        }
        func commit(_ renewal: SigningRenewalRecord) async throws {
            _ = try await enrolments.commit(
                KeyEnrolment(renewal, user: fixture.user, named: "ana"),
                CommitBody(commitment: "commitment", offer: .offer(renewal.offer)),
                nonce: SigningNonce(random: SystemRandom()), proof: fixture.proof(container.did), at: now)
        }
        for round in 0..<10 {
            let pid = fixture.id()
            let (first, second) = (renewal(pid, "first"), renewal(pid, "second"))
            #expect(try await start(first, isAgain: false))
            var isReplaced = true
            var refused: SigningErrorCode?
            if atOnce {
                async let late = start(second, isAgain: true)
                async let commitment = signingCode { try await commit(first) }
                (isReplaced, refused) = try await (late, commitment)
            } else {
                #expect(try await start(second, isAgain: true))
                refused = try await signingCode { try await commit(first) }
            }
            let known = try #require(try await enrolments.renewal(pid: pid))
            #expect(refused == (isReplaced ? .hashMismatch : nil), "round \(round)")
            #expect(known.state == (isReplaced ? .started : .committed) && (known.commitment == nil) == isReplaced)
            #expect(known.offer == (isReplaced ? "second" : "first"))
            if isReplaced { try await commit(second) }
        }
    }
}
