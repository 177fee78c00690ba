import AssentCore
import AssentJOSE
import AssentSigning
import AssentSigningProtocol
import AssentStore
import AssentTesting
import AssentVault
import Foundation
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("New keys for a container")
struct SigningRenewalTests {
    /// Enough for every test to make an invite late.
    private static func world() async throws -> SigningWorld {
        try await SigningWorld { $0.freshness = 20 * 365 * 86400 }
    }

    @Test("When they are due, a device replaces its keys; evidence leads from the old keys to the new ones")
    func due() async throws {
        let sdk = try SDKWorld(try await Self.world())
        let device = sdk.device()
        let container = try await sdk.enrolled(device)
        await #expect(throws: SigningError(.freshAuthenticationRequired)) { try await container.renew() }
        let before = try await sdk.approve(container, on: device)
        sdk.passUntilDue(container)
        let renewal = try await container.renew()
        #expect(renewal.isDone && renewal.digits == nil)
        let renewed = try await container.renewed()
        #expect(renewed.id == container.id && renewed.serial == container.serial && renewed.name == container.name)
        #expect(Set(renewed.keys.map(\.id)).isDisjoint(with: container.keys.map(\.id)))
        #expect(renewed.expiresAt > container.expiresAt)
        #expect(try await sdk.keys.keyNames().count == renewed.keys.count)
        let after = try await sdk.approve(renewed, on: sdk.device())
        let report = try await sdk.report(after.transactionID)
        #expect(report.contradicted.isEmpty, "\(report.contradicted)")
        #expect(report.established.count { if case .keySet = $0 { true } else { false } } == 2)
        #expect(report.established.count { if case .endorsed = $0 { true } else { false } } == 2)
        #expect(!report.notEstablished.contains(.samePerson(sequence: 1)))
        let old = try await sdk.report(before.transactionID)
        #expect(old.contradicted.isEmpty, "\(old.contradicted)")
        // Up to the keys that decided.
        #expect(old.established.count { if case .keySet = $0 { true } else { false } } == 1)
    }

    @Test("A value from before a renewal goes on working, and the keys that it names are the new ones")
    func staleValue() async throws {
        let (sdk, container) = try await EnrolledWorlds.plain.next()
        sdk.passUntilDue(container)
        try await container.renew()
        #expect(try await sdk.approve(container, on: sdk.device()).effect == .approve)
        try await container.rename("Other")
        #expect(try await sdk.device().container(container.id).name == "Other")
    }

    @Test("A container has a thousand renewals and no more: no device could read the number of a further record")
    func last() async throws {
        let (sdk, container) = try await EnrolledWorlds.plain.next()
        sdk.passUntilDue(container)
        let last = Int64(EnrolmentRecord.maximumSequence)
        func number(_ sequence: Int64) async throws {
            _ = try await sdk.world.base.database.run(
                SQLStatement("UPDATE signing_records SET seq = \(sequence) WHERE did = \(container.id)"))
        }
        try await number(last)
        await #expect(throws: SigningError(.keyExpired)) { try await container.renew() }
        #expect(try await sdk.approve(container, on: sdk.device()).effect == .approve)
        try await number(last - 1)
        #expect(try await container.renew().isDone)
    }

    @Test("After a reset the digits decide; until then the old keys count, and afterwards only the new ones")
    func reset() async throws {
        let sdk = try SDKWorld(try await Self.world())
        let (device, world) = (sdk.device(), sdk.world)
        let container = try await sdk.enrolled(device)
        let shown = try await world.provider.invites.make(world.ana, user: nil, did: container.id)
        let invite = try SigningInvite(scanned: shown.qr.reveal())
        let renewal = try await container.renew(invite: invite)
        let digits = try #require(renewal.digits)
        #expect(!renewal.isDone && renewal.userName == "ana")
        #expect(try await container.renew(invite: invite) == renewal)
        #expect(try await sdk.approve(container, on: device).effect == .approve)
        let old = try await device.container(container.id).keys
        let wrong = digits == "0000 0000" ? "0000 0001" : "0000 0000"
        await #expect(throws: SigningRefusal(.digitsWrong)) {
            try await world.provider.invites.enter(digits: wrong, world.ana, pid: shown.pid)
        }
        _ = try await world.provider.invites.enter(digits: digits, world.ana, pid: shown.pid)
        _ = try await world.provider.invites.enter(digits: digits, world.ana, pid: shown.pid)
        // A call with the old key finds that it was replaced, and goes on with the new one.
        #expect(try await sdk.approve(container, on: sdk.device()).effect == .approve)
        let new = try await container.renewed()
        #expect(Set(new.keys.map(\.id)).isDisjoint(with: old.map(\.id)))
        #expect(try await sdk.keys.keyNames().count == new.keys.count)
        let report = try await sdk.report(try await sdk.approve(new, on: device).transactionID)
        #expect(report.contradicted.isEmpty, "\(report.contradicted)")
    }

    @Test("Three wrong digits end a reset, and the old keys stay")
    func wrongDigits() async throws {
        let sdk = try SDKWorld(try await Self.world())
        let (device, world) = (sdk.device(), sdk.world)
        let container = try await sdk.enrolled(device)
        let shown = try await world.provider.invites.make(world.ana, user: nil, did: container.id)
        let renewal = try await container.renew(invite: SigningInvite(scanned: shown.qr.reveal()))
        let wrong = renewal.digits == "0000 0000" ? "0000 0001" : "0000 0000"
        for _ in 0..<3 {
            await #expect(throws: SigningRefusal(.digitsWrong)) {
                try await world.provider.invites.enter(digits: wrong, world.ana, pid: shown.pid)
            }
        }
        await #expect(throws: SigningError(.enrolmentVoid)) { try await container.renewed() }
        #expect(try await sdk.approve(container, on: device).effect == .approve)
        // The new ones stay for as long as right digits might have made them count.
        #expect(try await sdk.keys.keyNames().count == 2 * container.keys.count)
        sdk.clock.advance(by: 1600)
        try await device.sendQueued()
        #expect(try await sdk.keys.keyNames().count == container.keys.count)
    }

    @Test("The code of a reset enrols nothing, and the code of an enrolment resets nothing")
    func codes() async throws {
        let sdk = try SDKWorld(try await Self.world())
        let (device, world) = (sdk.device(), sdk.world)
        let container = try await sdk.enrolled(device)
        let other = try await sdk.enrolled(device)
        let reset = try await world.provider.invites.make(world.ana, user: nil, did: container.id)
        let plain = try await world.provider.invites.make(world.ana, user: nil)
        await #expect(throws: SigningError(.invalidCode)) {
            try await SDKWorld(world).device().enrol(SigningInvite(scanned: reset.qr.reveal()))
        }
        for wrong in [plain, reset] {
            await #expect(throws: SigningError(.invalidCode)) {
                try await other.renew(invite: SigningInvite(scanned: wrong.qr.reveal()))
            }
        }
        await #expect(throws: SigningRefusal(.notFound)) {
            try await world.provider.invites.make(SigningCaller(world.base.ben), user: nil, did: container.id)
        }
    }

    @Test("A renewal that crashes at any write or call goes on, and loses no key", arguments: [false, true])
    func crashes(after: Bool) async throws {
        for moment in SDKWorld.Crash.moments {
            let (sdk, container) = try await EnrolledWorlds.plain.next()
            sdk.passUntilDue(container)
            let crash = SDKWorld.Crash(at: moment, after: after)
            do {
                _ = try await sdk.device(crash).container(container.id).renew()
            } catch is SDKWorld.Crash.Happened {
            }
            let again = sdk.device()
            do {
                #expect(try await again.container(container.id).renew().isDone, "moment \(moment)")
            } catch let error as SigningError where error.code == .freshAuthenticationRequired {
                // It had ended before the crash, and the next one is not due.
            }
            let renewed = try await again.container(container.id)
            #expect(Set(renewed.keys.map(\.id)).isDisjoint(with: container.keys.map(\.id)), "moment \(moment)")
            #expect(try await sdk.approve(renewed, on: again).effect == .approve)
            #expect(try await sdk.keys.keyNames().count == renewed.keys.count, "moment \(moment)")
            guard crash.hasHappened else { return }
        }
        Issue.record("The renewal never ended without a crash.")
    }

    @Test("New keys count only with the old ones' word, and not before they are confirmed")
    func endorsements() async throws {
        let world = try await Self.world()
        let (old, container) = try await world.enrolled()
        world.base.clock.advance(by: 350 * 86400)
        let new = try TestDevice(world)
        let renewal = try await LowRenewal(old, new, container)
        typealias Body = CompleteBody
        let stranger = try SoftwareSigningKey.generate(.es256)
        let payments = try #require(old.keys.withLock { $0["payments"] })
        let other = try await renewal.endorsement(by: old.deviceKey, of: "other")
        let device = try await renewal.endorsement(by: old.deviceKey)
        let sign = try await renewal.endorsement(by: payments)
        let forged = try await renewal.endorsement(by: stranger)
        let cases: [([String]?, String)] = [
            (nil, "invalid_request"), ([device], "invalid_request"), ([sign], "invalid_request"),
            ([device, device], "invalid_request"), ([device, forged], "bad_signature"),
            ([other, sign], "hash_mismatch"),
        ]
        for (endorsements, code) in cases {
            let body = Body(enrol: renewal.enrol, endorsements: endorsements)
            let found = try await refusal { _ = try await old.call("renew/complete", container.did, body) }
            #expect(found == code, "\(endorsements?.count ?? 0)")
        }
        let body = Body(enrol: renewal.enrol, endorsements: [device, sign])
        let enrolled = try await renewal.complete(body, old, new)
        // The old keys count, and the new device key may ask how it stands, and confirm: nothing else.
        #expect(try await old.status(container.did).keys.contains { $0.kid?.text == renewal.newDevice } == false)
        #expect(try await new.status(container.did).keys.contains { $0.kid?.text == renewal.newDevice } == false)
        #expect(try await refusal { _ = try await new.list(container.did) } == "bad_proof")
        let confirm = ConfirmBody(echo: enrolled.echo)
        let guessed = ConfirmBody(echo: SigningNonce(random: SystemRandom()))
        #expect(
            try await refusal { _ = try await new.call("renew/confirm", container.did, guessed) } == "enrolment_void")
        #expect(try await old.status(container.did).state == .active)
        #expect(try await refusal { _ = try await old.call("renew/confirm", container.did, confirm) } == "bad_proof")
        let status: ContainerStatus = try await new.ask("renew/confirm", container.did, confirm)
        #expect(status.keys.contains { $0.kid?.text == renewal.newDevice && $0.state == .active })
        let again: ContainerStatus = try await new.ask("renew/confirm", container.did, confirm)
        #expect(again.keys.map(\.kid) == status.keys.map(\.kid))
        #expect(try await refusal { _ = try await old.status(container.did) } == "key_retired")
        #expect(
            try await refusal { _ = try await new.call("renew/start", container.did, RenewStartBody()) }
                == "fresh_authentication_required")
    }

    @Test("New keys are for their own issuer, container, user, renewal, offer and nonce", arguments: 0..<6)
    func otherMembers(what: Int) async throws {
        let world = try await Self.world()
        let (old, container) = try await world.enrolled()
        world.base.clock.advance(by: 350 * 86400)
        let new = try TestDevice(world)
        let renewal = try await LowRenewal(old, new, container)
        let (right, random) = (renewal.content, SystemRandom())
        let wrong = Enrolment(
            issuer: what == 0 ? "https://other.example" : right.issuer,
            pid: what == 1 ? SigningID(random: random) : right.pid,
            did: what == 2 ? SigningID(random: random) : right.did, sub: what == 3 ? "somebody" : right.sub,
            offer: what == 4 ? .offer("another") : right.offer, nonceD: right.nonceD,
            nonceS: what == 5 ? SigningNonce(random: random) : right.nonceS, keys: right.keys)
        let payments = try #require(old.keys.withLock { $0["payments"] })
        func send(_ enrol: String) async throws -> String? {
            let endorsements = [
                try await renewal.endorsement(by: old.deviceKey, of: enrol),
                try await renewal.endorsement(by: payments, of: enrol),
            ]
            let body = CompleteBody(enrol: enrol, endorsements: endorsements)
            return try await refusal { _ = try await old.call("renew/complete", container.did, body) }
        }
        #expect(try await send(try await SignedMessage.sign(wrong, with: new.deviceKey).compact) == "hash_mismatch")
        #expect(try await send(renewal.enrol) == nil)
    }

    @Test("A renewal that was not confirmed in time is over, and nothing has changed")
    func tooLate() async throws {
        let world = try await Self.world()
        let (old, container) = try await world.enrolled()
        world.base.clock.advance(by: 350 * 86400)
        let renewal = try await LowRenewal(old, try TestDevice(world), container)
        world.base.clock.advance(by: 1600)
        let body = CompleteBody(enrol: renewal.enrol, endorsements: [try await renewal.endorsement(by: old.deviceKey)])
        #expect(try await refusal { _ = try await old.call("renew/complete", container.did, body) } == "enrolment_void")
        #expect(try await old.status(container.did).state == .active)
        world.base.clock.advance(by: 30 * 86400)
        #expect(
            try await refusal { _ = try await old.call("renew/start", container.did, RenewStartBody()) }
                == "key_expired")
    }
}

/// A renewal as far as the commitment, by hand.
struct LowRenewal {
    let did: SigningID
    let issuer: String
    let content: Enrolment
    let enrol: String
    let newDevice: String

    init(
        _ old: TestDevice, _ new: TestDevice, _ container: TestDevice.Enrolled, code: InviteCode? = nil
    ) async throws {
        old.forgetTrust()
        did = container.did
        issuer = old.issuer.name
        newDevice = try ProtocolKey(new.deviceKey).thumbprint.text
        let (reply, request) = try await old.call("renew/start", did, RenewStartBody(code: code))
        let kid = try ProtocolKey(old.deviceKey).thumbprint.text
        let offer = try await old.trust().reply(reply, as: Offer.self, audience: kid, request: request)
        try offer.content.check(isRenewal: true)
        let nonceD = SigningNonce(random: SystemRandom())
        let list = try await new.enrolment(offer.content, compact: offer.compact, nonceD: nonceD, nonce: nil).keyList
        let nonce: NonceReply = try await old.ask(
            "renew/commit", did,
            CommitBody(commitment: .commitment(nonceD: nonceD, keys: list), offer: .offer(offer.compact)))
        content = try await new.enrolment(offer.content, compact: offer.compact, nonceD: nonceD, nonce: nonce)
        enrol = try await SignedMessage.sign(content, with: new.deviceKey).compact
    }

    /// Sends the new keys, and opens the answer with the new transport key.
    func complete(_ body: CompleteBody, _ old: TestDevice, _ new: TestDevice) async throws -> Enrolled {
        let (reply, request) = try await old.call("renew/complete", did, body)
        let opened = try await SealedEnvelope(reply).opened(
            with: new.transportKey, content: .reply, sender: issuer, recipient: did.text)
        return try await new.trust().reply(
            String(decoding: opened, as: UTF8.self), as: Enrolled.self, audience: did.text, request: request
        ).content
    }

    func endorsement(by key: SoftwareSigningKey, of other: String? = nil) async throws -> String {
        try await SignedMessage.sign(
            Endorsement(
                issuer: issuer, did: did, enrol: .enrolment(other ?? enrol), jti: SigningID(random: SystemRandom())),
            with: key
        ).compact
    }
}
