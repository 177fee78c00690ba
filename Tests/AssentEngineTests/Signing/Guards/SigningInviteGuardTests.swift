import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("Whose invite it is, and how long it lasts")
struct SigningInviteGuardTests {
    @Test("Digits are entered by the invite's user; what somebody else enters is not looked at, and costs no try")
    func digits() async throws {
        let world = try await SigningWorld()
        let invite = try await world.invite()
        let container = try await TestDevice(world).enrol(invite.code)
        let ben = SigningCaller(world.base.ben)
        for _ in 0..<4 {
            #expect(
                try await refusal {
                    _ = try await world.provider.invites.enter(digits: container.digits, ben, pid: invite.pid)
                } == "not_found")
            #expect(
                try await refusal { try await world.provider.invites.withdraw(ben, pid: invite.pid) } == "not_found")
        }
        for text in ["", "1234567", "123456789", "1234567x", "١٢٣٤٥٦٧٨"] {
            #expect(
                try await refusal {
                    _ = try await world.provider.invites.enter(digits: text, world.ana, pid: invite.pid)
                } == "invalid_request", "\(text)")
        }
        let pid = try #require(SigningID(text: invite.pid))
        #expect(try await world.provider.invites.find(pid)?.tries == 0)
        let status = try await world.provider.invites.enter(digits: container.digits, world.ana, pid: invite.pid)
        #expect(status.state == "ACTIVE")
    }

    @Test("A user who was deactivated gets no invite, also not from an administrator")
    func deactivated() async throws {
        let world = try await SigningWorld()
        let admin = try await world.admin()
        let users = Users(world.base.context)
        try await users.setActive(false, userID: world.base.ana.user.id)
        #expect(try await refusal { _ = try await world.invite(admin, user: "ana") } == "not_found")
        #expect(try await world.base.database.run(.read("SELECT pid FROM signing_invites")).isEmpty)
        try await users.setActive(true, userID: world.base.ana.user.id)
        _ = try await world.invite(admin, user: "ana")
    }

    @Test("The record of a device says who has let it in: its user, or an administrator")
    func makers() async throws {
        let world = try await SigningWorld()
        let admin = try await world.admin()
        for (caller, user, ground) in [
            (world.ana, nil, RecordGround.invite), (admin, "ana", .administrator), (admin, nil, .invite),
        ] {
            let invite = try await world.invite(caller, user: user)
            let container = try await TestDevice(world).enrol(invite.code)
            _ = try await world.provider.invites.enter(digits: container.digits, caller, pid: invite.pid)
            let rows = try await world.base.database.run(
                .read("SELECT record FROM signing_records WHERE did = \(container.did.text)"))
            let record = try UnverifiedMessage<EnrolmentRecord>(try #require(rows.first).text("record")).content
            #expect(record.by == [ground])
            let known = try await world.record(container.did)
            #expect(record.sub == known.userID && record.user == known.username)
        }
    }

    @Test("An invite takes a commitment for fifteen minutes, and the keys for ten minutes more")
    func times() async throws {
        let world = try await SigningWorld()
        func begun() async throws -> (TestDevice, SignedMessage<Offer>, SigningNonce, CommitBody) {
            let device = try TestDevice(world)
            let again = SigningCaller(try await TransactionFixture.signIn("ana", world.base.context))
            let offer = try await device.start(try await world.invite(again).code)
            let nonceD = SigningNonce(random: device.random)
            let list = try await device.enrolment(offer.content, compact: offer.compact, nonceD: nonceD, nonce: nil)
            let commitment = SigningHash.commitment(nonceD: nonceD, keys: list.keyList)
            return (device, offer, nonceD, CommitBody(commitment: commitment, offer: .offer(offer.compact)))
        }
        let (late, offered, _, commit) = try await begun()
        world.base.clock.advance(by: 900)
        #expect(try await late.code("provision/commit", offered.content.did, commit) == "enrolment_void")
        #expect(try await world.provider.invites.status(world.ana, pid: offered.content.pid.text).state == "VOID")
        for (seconds, state) in [(599.0, ContainerState.unconfirmed), (1, .void)] {
            world.base.clock.advance(by: seconds)
            #expect(try await late.status(offered.content.did).state == state)
        }
        for (seconds, code) in [(1499.0, nil), (1500, "enrolment_void")] {
            let (device, offer, nonceD, commit) = try await begun()
            let did = offer.content.did
            let nonce: NonceReply = try await device.ask("provision/commit", did, commit)
            let content = try await device.enrolment(
                offer.content, compact: offer.compact, nonceD: nonceD, nonce: nonce)
            let enrol = try await SignedMessage.sign(content, with: device.deviceKey).compact
            world.base.clock.advance(by: seconds)
            #expect(try await device.code("provision/complete", did, CompleteBody(enrol: enrol)) == code)
            #expect((try await world.provider.devices.find(did) == nil) == (code != nil))
        }
    }

    @Test("A device whose invite was withdrawn hears that its enrolment is void, however far it has come")
    func withdrawn() async throws {
        let world = try await SigningWorld()
        for isCommitted in [false, true] {
            let invite = try await world.invite()
            let device = try TestDevice(world)
            let offer = try await device.start(invite.code)
            let did = offer.content.did
            let commit = CommitBody(commitment: SigningHash(sha256: [1]), offer: .offer(offer.compact))
            if isCommitted { #expect(try await device.code("provision/commit", did, commit) == nil) }
            #expect(try await device.status(did).state == .unconfirmed)
            try await world.provider.invites.withdraw(world.ana, pid: invite.pid)
            #expect(try await device.status(did).state == .void)
            #expect(try await device.code("provision/commit", did, commit) == "enrolment_void")
        }
    }

    @Test("An active device that repeats its confirmation is answered the same; with another echo it is refused")
    func confirmation() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let right = ConfirmBody(echo: container.echo)
        let wrong = ConfirmBody(echo: SigningNonce(random: device.random))
        #expect(try await device.code("provision/confirm", container.did, wrong) == "enrolment_void")
        #expect(try await device.code("provision/confirm", container.did, right) == nil)
        let records = try await world.base.database.run(
            .read("SELECT seq FROM signing_records WHERE did = \(container.did.text)"))
        #expect(records.count == 1)
    }

    @Test("An invite for the user's own devices needs the session of the last five minutes, to the second")
    func freshness() async throws {
        let world = try await SigningWorld()
        world.base.clock.advance(by: 300)
        _ = try await world.invite()
        world.base.clock.advance(by: 1)
        #expect(try await refusal { _ = try await world.invite() } == "fresh_authentication_required")
    }
}
