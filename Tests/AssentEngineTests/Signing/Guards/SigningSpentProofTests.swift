import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("A proof changes one thing")
struct SigningSpentProofTests {
    @Test("With an id that was spent before, no call of an active container changes anything")
    func calls() async throws {
        let (world, device, container, pin) = try await SigningWorld.withEnrolledPIN()
        let (did, jti) = (container.did, SigningID(random: device.random))
        #expect(try await device.send("update", did, UpdateBody(name: "phone"), jti: jti) == nil)
        let opened = try #require(try await pin.open("2580"))
        _ = try await pin.begin(opened, "7391")
        let slot = try #require(try await world.provider.slots.find(.signing, of: did))
        var wish = world.wish("numbered")
        (wish.user, wish.origin) = (nil, DocumentOrigin(place: "Vienna", address: "192.0.2.7"))
        let made = try await world.provider.parties.create(wish)
        let (asked, _) = try await world.asked()
        let rid = SigningID(random: device.random)
        let start = try await pin.change(.start, opened, from: 0)
        let deny = try await device.signed(device.blind(asked, container), label: nil)
        for (path, body) in [
            ("update", UpdateBody(name: "watch")),
            ("transactions/create", CreateBody(message: "Read", label: "payments", rid: rid)),
            ("transactions/claim", ClaimBody(ticket: try await world.provider.parties.ticket(of: made))),
            ("transactions/decide", deny),
            ("slots/change-start", ChangeStartBody(change: start, rid: rid, blinded: slot.publicKey)),
            ("slots/change-commit", ChangeCommitBody(change: try await pin.change(.commit, opened, from: 0))),
            ("delete", DeleteBody()),
        ] as [(String, any MessagePart)] {
            #expect(try await device.send(path, did, body, jti: jti) == "replay", "\(path)")
        }
        let record = try await world.record(did)
        #expect(record.name == "phone" && record.state == .active)
        #expect(try await world.provider.slots.find(.signing, of: did) == slot)
        #expect(try await world.provider.documents.find(made.txn, evenUnclaimed: true)?.userID.isEmpty == true)
        #expect(try await world.state(asked) == "PENDING")
        let records = try await world.base.database.run(
            .read("SELECT txn FROM signing_transactions WHERE client_id = 'device'"))
        #expect(records.isEmpty)
        // None of the bodies was spent with it.
        #expect(try await pin.commit(opened, from: 0).slots.first?.generation == 1)
        #expect(try await device.decide(deny, container).content.state == .denied)
    }

    @Test("Nor does a call of a renewal; and the very same call does nothing twice")
    func renewal() async throws {
        let world = try await SigningWorld()
        let (old, container) = try await world.enrolled()
        world.base.clock.advance(by: 350 * 86400)
        old.forgetTrust()
        let (did, jti) = (container.did, SigningID(random: old.random))
        #expect(try await old.send("renew/start", did, RenewStartBody(), jti: jti) == nil)
        let begun = try await world.provider.enrolments.renewal(of: did, at: world.provider.now)
        #expect(try await old.send("renew/start", did, RenewStartBody(), jti: jti) == "replay")
        let (offer, _) = try await old.call("renew/start", did, RenewStartBody())
        let commit = CommitBody(commitment: SigningHash(sha256: [1]), offer: .offer(offer))
        #expect(try await old.send("renew/commit", did, commit, jti: jti) == "replay")
        let still = try await world.provider.enrolments.renewal(of: did, at: world.provider.now)
        #expect(still?.pid == begun?.pid && still?.state == .started)
        let new = try TestDevice(world)
        let renewal = try await LowRenewal(old, new, container)
        let body = try await renewal.body(old, by: "payments")
        #expect(try await old.send("renew/complete", did, body, jti: jti) == "replay")
        #expect(
            try await world.provider.enrolments.renewal(of: did, at: world.provider.now)?.state == .committed)
        _ = try await renewal.complete(body, old, new)
    }

    @Test("Nor does a call of an enrolment")
    func enrolment() async throws {
        let world = try await SigningWorld()
        let invite = try await world.invite()
        let device = try TestDevice(world)
        let (jti, nonceD) = (SigningID(random: device.random), SigningNonce(random: device.random))
        let offer = try await device.start(invite.code)
        let did = offer.content.did
        let list = try await device.enrolment(offer.content, compact: offer.compact, nonceD: nonceD, nonce: nil)
        let commit = CommitBody(
            commitment: .commitment(nonceD: nonceD, keys: list.keyList), offer: .offer(offer.compact))
        let (other, known) = try await world.enrolled()
        #expect(try await other.send("update", known.did, UpdateBody(name: "phone"), jti: jti) == nil)
        #expect(try await device.send("provision/commit", did, commit, jti: jti) == "replay")
        #expect(try await world.provider.invites.find(offer.content.pid)?.committed == nil)
        let nonce: NonceReply = try await device.ask("provision/commit", did, commit)
        let content = try await device.enrolment(offer.content, compact: offer.compact, nonceD: nonceD, nonce: nonce)
        let body = CompleteBody(enrol: try await SignedMessage.sign(content, with: device.deviceKey).compact)
        #expect(try await device.send("provision/complete", did, body, jti: jti) == "replay")
        #expect(try await world.provider.devices.find(did) == nil)
        #expect(try await device.code("provision/complete", did, body) == nil)
    }

    @Test("A start of a change that is sent once more makes no other key, so the change goes on")
    func change() async throws {
        let (world, device, container, pin) = try await SigningWorld.withEnrolledPIN()
        let opened = try #require(try await pin.open("2580"))
        let body = ChangeStartBody(
            change: try await pin.change(.start, opened, from: 0), rid: SigningID(random: device.random),
            blinded: pin.kept.withLock { $0.publicKey })
        let sealed = try await device.sealed(body.encoded(), sender: container.did.text)
        let proof = try await device.proof(container.did, path: "slots/change-start", body: sealed)
        func send() async throws -> String? {
            try await refusal { _ = try await world.send("slots/change-start", proof: proof, body: sealed) }
        }
        func pending() async throws -> [UInt8]? {
            let rows = try await world.base.database.run(
                .read("SELECT pending_public_key FROM signing_slots WHERE did = \(container.did.text)"))
            return try rows.first?.optionalBlob("pending_public_key")
        }
        #expect(try await send() == nil)
        let first = try await pending()
        #expect(try await send() == "replay")
        #expect(try await pending() == first && first != nil)
    }
}
