import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("Enrolling a signing device")
struct SigningEnrolmentTests {
    @Test("A device enrols with a code, and is active after the digits that it shows were typed")
    func enrol() async throws {
        let world = try await SigningWorld()
        let invite = try await world.invite()
        let device = try TestDevice(world)
        let container = try await device.enrol(invite.code)
        #expect(try await device.status(container.did).state == .unconfirmed)
        #expect(try await world.provider.invites.status(world.ana, pid: invite.pid).state == "UNCONFIRMED")
        let wrong = container.digits == "00000000" ? "00000001" : "00000000"
        await #expect(throws: SigningRefusal(.digitsWrong)) {
            try await world.provider.invites.enter(digits: wrong, world.ana, pid: invite.pid)
        }
        let shown = "\(container.digits.prefix(4)) \(container.digits.suffix(4))"
        let status = try await world.provider.invites.enter(digits: shown, world.ana, pid: invite.pid)
        #expect(status.state == "ACTIVE" && status.did == container.did.text && status.name == "laptop")
        #expect(try await world.provider.invites.enter(digits: shown, world.ana, pid: invite.pid) == status)
        let known = try await device.status(container.did)
        #expect(known.state == .active && known.keys.map(\.usage) == [.device, .transport, .sign, .auth])
        #expect(try await world.provider.devices.list(world.ana, user: nil).map(\.container.did) == [container.did])
    }

    @Test("The QR code is signed by a certified key and names the identity key")
    func qrCode() async throws {
        let world = try await SigningWorld()
        let shown = try await world.provider.invites.make(world.ana, user: nil)
        let trust = try await TestDevice(world).trust()
        let invite = try trust.verified(shown.qr.reveal(), as: Invite.self)
        #expect(invite.content.identity == trust.identity.thumbprint && invite.content.pid.text == shown.pid)
        #expect(invite.content.code.shown == shown.code)
    }

    @Test("What is repeated is answered with the same values")
    func repetition() async throws {
        let world = try await SigningWorld()
        let invite = try await world.invite()
        let device = try TestDevice(world)
        let first = try await device.start(invite.code)
        let offer = try await device.start(invite.code)
        #expect(offer.content.did == first.content.did && offer.compact != first.compact)
        let did = offer.content.did
        let nonceD = SigningNonce(random: SystemRandom())
        let keys = try await device.enrolment(offer.content, compact: offer.compact, nonceD: nonceD, nonce: nil).keyList
        let body = CommitBody(commitment: .commitment(nonceD: nonceD, keys: keys), offer: .offer(offer.compact))
        let nonce: NonceReply = try await device.ask("provision/commit", did, body)
        let again: NonceReply = try await device.ask("provision/commit", did, body)
        #expect(nonce.nonceS == again.nonceS)
        let content = try await device.enrolment(offer.content, compact: offer.compact, nonceD: nonceD, nonce: nonce)
        let enrol = CompleteBody(enrol: try await SignedMessage.sign(content, with: device.deviceKey).compact)
        let one: Enrolled = try await device.askSealed("provision/complete", did, enrol)
        let two: Enrolled = try await device.askSealed("provision/complete", did, enrol)
        #expect(one.echo == two.echo && one.handle == two.handle && one.serial == two.serial)
        let other = CompleteBody(enrol: try await SignedMessage.sign(content, with: device.deviceKey).compact)
        #expect(
            try await refusal { _ = try await device.call("provision/complete", did, other) } == "enrolment_void")
        for _ in 0..<2 {
            let status: ContainerStatus = try await device.ask("provision/confirm", did, ConfirmBody(echo: one.echo))
            #expect(status.state == .unconfirmed)
        }
        let wrong = ConfirmBody(echo: SigningNonce(random: SystemRandom()))
        #expect(
            try await refusal { _ = try await device.call("provision/confirm", did, wrong) } == "enrolment_void")
    }

    @Test("Another key, nonce, offer or user than committed to is refused", arguments: 0..<6)
    func changed(what: Int) async throws {
        let world = try await SigningWorld()
        let invite = try await world.invite()
        let device = try TestDevice(world)
        let offer = try await device.start(invite.code)
        let did = offer.content.did
        let nonceD = SigningNonce(random: SystemRandom())
        let before = try await device.enrolment(offer.content, compact: offer.compact, nonceD: nonceD, nonce: nil)
        let commitment = SigningHash.commitment(nonceD: nonceD, keys: before.keyList)
        let body = CommitBody(commitment: commitment, offer: .offer(offer.compact))
        let nonce: NonceReply = try await device.ask("provision/commit", did, body)
        let right = try await device.enrolment(offer.content, compact: offer.compact, nonceD: nonceD, nonce: nonce)
        var keys = right.keys
        if what == 0 {
            let stranger = try TestDevice(world)
            keys[2] = try await stranger.enrolment(
                offer.content, compact: offer.compact, nonceD: nonceD, nonce: nonce
            ).keys[2]
        }
        if what == 1 { keys.swapAt(2, 3) }
        let random = SystemRandom()
        let wrong = Enrolment(
            issuer: right.issuer, pid: what == 2 ? SigningID(random: random) : right.pid, did: right.did,
            sub: what == 3 ? "somebody" : right.sub, offer: what == 4 ? .offer("another") : right.offer,
            nonceD: what == 5 ? SigningNonce(random: random) : nonceD, nonceS: right.nonceS, keys: keys)
        let bad = CompleteBody(enrol: try await SignedMessage.sign(wrong, with: device.deviceKey).compact)
        let code = try await refusal { _ = try await device.call("provision/complete", did, bad) }
        #expect(["commitment_changed", "hash_mismatch", "invalid_request"].contains(code))
        let good = CompleteBody(enrol: try await SignedMessage.sign(right, with: device.deviceKey).compact)
        let _: Enrolled = try await device.askSealed("provision/complete", did, good)
    }

    /// An enrolment that has committed, and its key list.
    private struct Committed {
        let device: TestDevice
        let did: SigningID
        let content: Enrolment

        init(_ world: SigningWorld) async throws {
            let device = try TestDevice(world)
            let offer = try await device.start(try await world.invite().code)
            let did = offer.content.did
            let nonceD = SigningNonce(random: SystemRandom())
            func list(_ nonce: NonceReply?) async throws -> Enrolment {
                try await device.enrolment(offer.content, compact: offer.compact, nonceD: nonceD, nonce: nonce)
            }
            let commitment = SigningHash.commitment(nonceD: nonceD, keys: try await list(nil).keyList)
            let body = CommitBody(commitment: commitment, offer: .offer(offer.compact))
            let nonce: NonceReply = try await device.ask("provision/commit", did, body)
            content = try await list(nonce)
            (self.device, self.did) = (device, did)
        }

        func complete(_ content: Enrolment) async throws {
            let body = CompleteBody(enrol: try await SignedMessage.sign(content, with: device.deviceKey).compact)
            let _: Enrolled = try await device.askSealed("provision/complete", did, body)
        }
    }

    @Test("A key's proof of possession is for its own enrolment, device and place", arguments: 0..<7)
    func possession(what: Int) async throws {
        let world = try await SigningWorld()
        let committed = try await Committed(world)
        let (right, random) = (committed.content, SystemRandom())
        let sign = try #require(right.keys.first { $0.usage == .sign })
        let auth = try #require(right.keys.first { $0.usage == .auth })
        let proof = KeyPossession(
            issuer: what == 0 ? "https://other.example" : right.issuer,
            did: what == 1 ? SigningID(random: random) : right.did,
            nonceS: what == 2 ? SigningNonce(random: random) : right.nonceS,
            device: what == 3 ? sign.kid : right.device.kid, usage: what == 4 ? .auth : sign.usage,
            label: what == 5 ? auth.label : sign.label, kid: what == 6 ? auth.kid : sign.kid)
        let key = try #require(committed.device.keys.withLock { $0[sign.label] })
        let moved = EnrolledKey(
            usage: sign.usage, label: sign.label, kid: sign.kid, jwk: sign.jwk, policy: sign.policy,
            keystore: sign.keystore, slot: sign.slot,
            possession: try await SignedMessage.sign(proof, with: key).compact)
        let wrong = Enrolment(
            issuer: right.issuer, pid: right.pid, did: right.did, sub: right.sub, offer: right.offer,
            nonceD: right.nonceD, nonceS: right.nonceS, keys: right.keys.map { $0.kid == sign.kid ? moved : $0 })
        #expect(try await refusal { try await committed.complete(wrong) } == "hash_mismatch")
        #expect(try await refusal { try await committed.complete(right) } == nil)
    }

    @Test("A user who was deactivated is asked nothing, and completes no enrolment")
    func deactivated() async throws {
        let world = try await SigningWorld()
        _ = try await world.enrolled()
        let committed = try await Committed(world)
        let users = Users(world.base.context)
        try await users.setActive(false, userID: world.base.ana.user.id)
        #expect(try await refusal { _ = try await world.provider.parties.create(world.wish()) } == "not_found")
        #expect(try await refusal { try await committed.complete(committed.content) } == "enrolment_void")
        #expect(try await world.provider.devices.find(committed.did.text) == nil)
        try await users.setActive(true, userID: world.base.ana.user.id)
        _ = try await world.asked()
    }

    @Test("An unknown, used, withdrawn or late code is answered alike, and guesses are counted")
    func codes() async throws {
        let world = try await SigningWorld()
        let used = try await world.invite()
        let device = try TestDevice(world)
        _ = try await device.enrol(used.code)
        let withdrawn = try await world.invite()
        try await world.provider.invites.withdraw(world.ana, pid: withdrawn.pid)
        let late = try await world.invite()
        for code in [used.code, withdrawn.code, InviteCode(random: SystemRandom())] {
            let stranger = try TestDevice(world)
            #expect(try await refusal { _ = try await stranger.start(code) } == "invalid_code")
        }
        #expect(try await refusal { _ = try await device.start(used.code) } == "invalid_code")
        world.base.clock.advance(by: 900)
        let stranger = try TestDevice(world)
        #expect(try await refusal { _ = try await stranger.start(late.code) } == "invalid_code")
        for _ in 0..<9 { _ = try await refusal { _ = try await stranger.start(late.code) } }
        #expect(try await refusal { _ = try await stranger.start(late.code) } == "rate_limited")
        let audit = try await world.audited(.signingInvite)
        #expect(audit == ["success made", "success made", "success void", "success made"])
    }

    @Test("An invite needs a fresh authentication; for others an administrator makes it")
    func whoInvites() async throws {
        let world = try await SigningWorld()
        let ben = SigningCaller(world.base.ben)
        #expect(try await refusal { _ = try await world.invite(ben, user: "ana") } == "forbidden")
        let admin = SigningCaller(
            try await TransactionFixture.signIn("admin", roles: [.admin], world.base.context))
        let invite = try await world.invite(admin, user: "ana")
        #expect(try await refusal { _ = try await world.invite(admin, user: "nobody") } == "not_found")
        #expect(try await world.provider.invites.status(world.ana, pid: invite.pid).state == "OPEN")
        #expect(
            try await refusal { _ = try await world.provider.invites.status(ben, pid: invite.pid) } == "not_found")
        world.base.clock.advance(by: 301)
        #expect(try await refusal { _ = try await world.invite() } == "fresh_authentication_required")
    }
}

@Suite("The proof of a device's call")
struct SigningProofTests {
    @Test("A call needs a proof of its own issuer, method, path, body and device, with a nonce of five minutes")
    func proofs() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let did = container.did
        let body = try await device.sealed(EmptyBody().encoded(), sender: did.text)
        func send(_ proof: String?, body other: String? = nil, path: String = "status") async throws -> String? {
            try await refusal { _ = try await world.send(path, proof: proof, body: other ?? body) }
        }
        let good = try await device.proof(did, path: "status", body: body)
        #expect(try await send(good) == nil)
        #expect(try await send(nil) == "bad_proof")
        #expect(try await send("x") == "bad_proof")
        #expect(try await send(good, path: "update") == "bad_proof")
        let another = try await device.sealed(EmptyBody().encoded(), sender: did.text)
        #expect(try await send(good, body: another) == "bad_proof")
        let stranger = try SoftwareSigningKey.generate(.es256)
        #expect(
            try await send(try await device.proof(did, path: "status", body: body, key: stranger)) == "bad_proof")
        let get = try await device.proof(did, path: "status", body: body, method: "GET")
        let foreign = try await device.proof(did, path: "status", body: body, audience: "https://other.example")
        for other in [get, foreign] { #expect(try await send(other) == "bad_proof") }
        let unknown = SigningID(random: SystemRandom())
        #expect(try await send(try await device.proof(unknown, path: "status", body: body)) == "unknown_container")
        let forged = try await device.proof(did, path: "status", body: body, nonce: String(repeating: "A", count: 43))
        #expect(try await send(forged) == "use_nonce")
        world.base.clock.advance(by: 299)
        #expect(try await send(good) == nil)
        world.base.clock.advance(by: 1)
        #expect(try await send(good) == "use_nonce")
    }

    @Test("Calls without a good proof count against their address, and change nothing for the container")
    func badProofs() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        for _ in 0..<100 {
            #expect(try await refusal { _ = try await world.send("status", proof: "x", body: "x") } == "bad_proof")
        }
        #expect(try await refusal { _ = try await world.send("status", proof: "x", body: "x") } == "rate_limited")
        #expect(try await device.status(container.did).state == .active)
    }

    @Test("What is encrypted to another key, by another sender or not at all is refused")
    func envelopes() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let did = container.did
        func send(_ body: String) async throws -> String? {
            let proof = try await device.proof(did, path: "status", body: body)
            return try await refusal { _ = try await world.send("status", proof: proof, body: body) }
        }
        #expect(try await send("{}") == "invalid_request")
        #expect(try await send(try await device.sealed([1, 2], sender: did.text)) == "invalid_request")
        let sender = SigningID(random: SystemRandom()).text
        #expect(try await send(try await device.sealed(EmptyBody().encoded(), sender: sender)) == "invalid_request")
        let stranger = SoftwareAgreementKey.generate()
        let foreign = try SealedEnvelope.seal(
            EmptyBody().encoded(), to: ProtocolKey(stranger), content: .request, sender: did.text,
            recipient: world.name)
        #expect(try await send(foreign) == "unknown_key")
        let huge = String(repeating: "a", count: 65 << 10)
        #expect(try await send(huge) == "too_large")
        // Nobody has to prove anything to hear that, and nothing else is looked at.
        for path in ["status", "provision/start"] {
            #expect(try await refusal { _ = try await world.send(path, proof: nil, body: huge) } == "too_large")
        }
    }

    @Test("A proof that has changed something changes nothing again")
    func replay() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let body = try await device.sealed(UpdateBody(name: "phone").encoded(), sender: container.did.text)
        let proof = try await device.proof(container.did, path: "update", body: body)
        _ = try await world.send("update", proof: proof, body: body)
        #expect(try await refusal { _ = try await world.send("update", proof: proof, body: body) } == "replay")
        #expect(try await world.provider.devices.list(world.ana, user: nil).first?.container.name == "phone")
    }

    @Test(
        "A container that was deleted may ask how it stands, and nothing else; deleting it again is answered the same")
    func delete() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        for _ in 0..<2 {
            let status: ContainerStatus = try await device.ask("delete", container.did, DeleteBody(reason: "sold"))
            #expect(status.state == .revoked && status.keys.allSatisfy { $0.state == .retired })
        }
        #expect(try await device.status(container.did).state == .revoked)
        #expect(try await refusal { _ = try await device.list(container.did) } == "container_revoked")
        world.base.clock.advance(by: 366 * 86400)
        #expect(try await refusal { _ = try await device.status(container.did) } == "unknown_container")
    }

    @Test("Two nodes that start at once have the same keys")
    func keys() async throws {
        let world = try await SigningWorld()
        let providers = (0..<8).map { _ in SigningProvider(world.base.context, settings: world.provider.settings) }
        let configurations = try await withThrowingTaskGroup(of: [UInt8].self) { group in
            for provider in providers { group.addTask { try await provider.door.configuration() } }
            return try await group.reduce(into: Set<[UInt8]>()) { $0.insert($1) }
        }
        let latest = try await world.provider.door.configuration()
        #expect(configurations == [latest])
    }
}
