import AssentCore
import AssentJOSE
import AssentSigning
import AssentSigningProtocol
import AssentStore
import AssentTesting
import Foundation
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("The issuer's keys over time")
struct SigningRotationTests {
    private static func world() async throws -> (SigningWorld, SigningCaller) {
        let world = try await SigningWorld { $0.freshness = 30 * 365 * 86400 }
        let admin = try await TransactionFixture.signIn("root", roles: [.admin], world.base.context)
        return (world, SigningCaller(admin))
    }

    private static func identity(_ world: SigningWorld) async throws -> KeyThumbprint {
        try #require(try await world.provider.keys.current(fresh: true).identity).thumbprint
    }

    @Test("A device follows a new identity key by itself; a device that enrols afterwards pins it")
    func follows() async throws {
        let (world, admin) = try await Self.world()
        let sdk = try SDKWorld(world)
        let container = try await sdk.enrolled(sdk.device())
        let old = try await Self.identity(world)
        let changed = try await world.provider.administration.change(admin, .rotateIdentity)
        #expect(changed.identity != old.text)
        #expect(try await sdk.approve(container, on: sdk.device()).effect == .approve)
        let second = try SDKWorld(world)
        let other = try await second.enrolled(second.device())
        #expect(try await second.approve(other, on: second.device()).effect == .approve)
    }

    @Test("Ten years on, after many rotations, evidence is judged with the first identity key, and with the last")
    func tenYears() async throws {
        let (world, admin) = try await Self.world()
        let sdk = try SDKWorld(world)
        let device = sdk.device()
        var container = try await sdk.enrolled(device)
        let first = try await Self.identity(world)
        var txns: [String] = [try await sdk.approve(container, on: device).transactionID]
        for year in 1...10 {
            // Keys live for a year, and are renewed in its last month.
            world.base.clock.advance(by: container.renewableFrom.timeIntervalSince(world.base.clock.now) + 3600)
            if year.isMultiple(of: 3) { _ = try await world.provider.administration.change(admin, .rotateIdentity) }
            if year == 5 { _ = try await world.provider.administration.change(admin, .withdrawOnlineKeys) }
            try await container.renew()
            container = try await container.renewed()
            txns.append(try await sdk.approve(container, on: sdk.device()).transactionID)
        }
        let last = try await Self.identity(world)
        #expect(first != last)
        for txn in txns {
            for trust in [first, last] {
                let report = try await sdk.report(txn, trust: trust)
                #expect(report.contradicted.isEmpty, "\(txn): \(report.contradicted)")
            }
        }
        let stranger = try ProtocolKey(SoftwareSigningKey.generate(.es256)).thumbprint
        #expect(!(try await sdk.report(try #require(txns.first), trust: stranger)).contradicted.isEmpty)
    }

    @Test(
        "Of a new identity key and a withdrawal at the same moment one counts, and what signs is certified by it",
        arguments: [SigningKeyAdministration.KeyChange.rotateIdentity, .withdrawOnlineKeys])
    func atOnce(first: SigningKeyAdministration.KeyChange) async throws {
        let (world, admin) = try await Self.world()
        let provider = world.provider
        _ = try await provider.keys.current()
        // The second one has read the keys when the first one changes them.
        let database = NodeDatabase(
            world.base.database, [],
            beforeWrite: { write in
                if write == 0 { _ = try? await provider.administration.change(admin, first) }
            })
        let node = SigningProvider(world.base.context.anotherNode(on: database), settings: provider.settings)
        let second: SigningKeyAdministration.KeyChange =
            first == .rotateIdentity ? .withdrawOnlineKeys : .rotateIdentity
        #expect(try await refusal { _ = try await node.administration.change(admin, second) } == "busy")
        let keys = try await provider.keys.current(fresh: true)
        #expect(keys.identities.count == (first == .rotateIdentity ? 2 : 1))
        let identity = try #require(keys.identity)
        let certificates = keys.certificates(at: world.base.clock.epochSeconds)
        #expect(certificates.count == 2)
        for certificate in certificates { _ = try SignedMessage<KeyCertificate>(certificate, key: identity) }
        #expect(try await refusal { _ = try await node.administration.change(admin, second) } == nil)
    }

    @Test(
        "After a withdrawal a device that has asked takes nothing from the old keys, and evidence of before stays good")
    func withdrawal() async throws {
        let (world, admin) = try await Self.world()
        let sdk = try SDKWorld(world)
        let container = try await sdk.enrolled(sdk.device())
        let before = try await sdk.approve(container, on: sdk.device())
        let old = try #require(try await world.provider.keys.current().newest(.sig))
        guard case .signs(let stolen, verifies: _) = old.work else { throw UnexpectedOutcome() }
        let changed = try await world.provider.administration.change(admin, .withdrawOnlineKeys)
        #expect(changed.minimum > old.generation)
        #expect(try await sdk.approve(container, on: sdk.device()).effect == .approve)
        // What the thief of the old key signs is not taken any more.
        let device = try TestDevice(world)
        let configuration = try IssuerConfiguration(reading: try await world.configuration().bytes)
        let trust = try IssuerTrust(configuration, issuer: world.name, anchor: .none)
        #expect(trust.minimum == changed.minimum)
        let forged = try await SignedMessage.sign(
            Ticket(
                issuer: world.name, txn: SigningID(random: SystemRandom()), expiresAt: Int(world.provider.now) + 60,
                handle: SigningID(random: SystemRandom())),
            with: stolen)
        #expect(throws: SigningProtocolError.self) { try trust.verified(forged.compact, as: Ticket.self) }
        #expect(try await sdk.report(before.transactionID).contradicted.isEmpty)
        // Keys that are made later keep the limit, also under a new identity key.
        _ = try await world.provider.administration.change(admin, .rotateIdentity)
        let kinds = try await world.audited(.signingKeys, "key")
        for kind in ["identity", "sig", "enc", "withdrawn"] {
            #expect(kinds.count { $0 == "success \(kind)" } == 2, "\(kinds)")
        }
        let actors = try await world.audited(.signingKeys, "by")
        #expect(actors.count { $0 == "success \(admin.session.user.id)" } == 3)
        world.base.clock.advance(by: 201 * 86400)
        let later = try IssuerConfiguration(reading: try await world.configuration().bytes)
        #expect(try IssuerTrust(later, issuer: world.name, anchor: .none).minimum == changed.minimum)
        _ = device
    }

    @Test("A withdrawn key is not listed any more, and an id that it has signed for a page is scanned in vain")
    func withdrawnTicket() async throws {
        let (world, admin) = try await Self.world()
        var wish = world.wish("numbered")
        (wish.user, wish.origin) = (nil, DocumentOrigin(place: "Vienna", address: "192.0.2.7"))
        let made = try await world.provider.parties.create(wish)
        let early = ClaimBody(ticket: try await world.provider.parties.ticket(of: made))
        let old = try #require(try await world.provider.keys.current().newest(.sig))
        _ = try await world.provider.administration.change(admin, .withdrawOnlineKeys)
        let configuration = try IssuerConfiguration(reading: try await world.configuration().bytes)
        #expect(configuration.certificates.count == 2 && !configuration.certificates.contains(old.certificate))
        let (device, container) = try await world.enrolled()
        #expect(
            try await refusal { _ = try await device.call("transactions/claim", container.did, early) } == "tx_unknown")
        let late = ClaimBody(ticket: try await world.provider.parties.ticket(of: made))
        _ = try await device.call("transactions/claim", container.did, late)
    }

    @Test("What is encrypted to a withdrawn key is not opened; the device asks for the new one, and goes on")
    func withdrawnEncryption() async throws {
        let (world, admin) = try await Self.world()
        let (device, container) = try await world.enrolled()
        _ = try await world.provider.administration.change(admin, .withdrawOnlineKeys)
        #expect(try await refusal { _ = try await device.status(container.did) } == "unknown_key")
        device.forgetTrust()
        #expect(try await device.status(container.did).state == .active)
    }

    @Test("An evaluation whose key was withdrawn is not confirmed, and costs a try; the next one is")
    func withdrawnEvaluation() async throws {
        let world = try await SigningWorld.withPIN { _ in
        } change: {
            $0.freshness = 86400
        }
        let admin = SigningCaller(
            try await TransactionFixture.signIn("root", roles: [.admin], world.base.context))
        let (device, container, pin) = try await world.enrolledWithPIN()
        let opened = try #require(try await pin.unlock("2580"))
        let confirmation = try await pin.confirmation(opened)
        _ = try await world.provider.administration.change(admin, .withdrawOnlineKeys)
        device.forgetTrust()
        #expect(
            try await refusal { _ = try await device.call("slots/confirm", container.did, confirmation) }
                == "invalid_request")
        #expect(try await device.status(container.did).slots.first?.tries == 4)
        #expect(try await pin.open("2580") != nil)
        #expect(try await device.status(container.did).slots.first?.tries == 5)
    }

    @Test("Only an administrator with a fresh sign-in changes keys, and of two at once one does")
    func callers() async throws {
        let (world, admin) = try await Self.world()
        #expect(
            try await refusal { _ = try await world.provider.administration.change(world.ana, .rotateIdentity) }
                == "forbidden")
        let attempts = try await world.audited(.signingKeys, "act")
        #expect(attempts.last == "refused rotateIdentity", "\(attempts)")
        let strict = try await SigningWorld()
        let late = SigningCaller(
            try await TransactionFixture.signIn("root", roles: [.admin], strict.base.context))
        strict.base.clock.advance(by: 301)
        let found = try await refusal { _ = try await strict.provider.administration.change(late, .withdrawOnlineKeys) }
        #expect(found == "fresh_authentication_required")
        let strong = try await SigningWorld { $0.freshLevel = 2 }
        for (level, code) in [(1, "fresh_authentication_required"), (2, nil)] {
            let caller = SigningCaller(
                try await TransactionFixture.signIn("root", roles: [.admin], level: level, strong.base.context))
            #expect(
                try await refusal { _ = try await strong.provider.administration.change(caller, .rotateIdentity) }
                    == code)
            #expect(try await refusal { _ = try await strong.provider.invites.make(caller, user: nil) } == code)
        }
        _ = try await world.provider.door.configuration()
        let outcomes = try await withThrowingTaskGroup(of: String?.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    try await refusal { _ = try await world.provider.administration.change(admin, .rotateIdentity) }
                }
            }
            return try await group.reduce(into: [String?]()) { $0.append($1) }
        }
        let keys = try await world.provider.keys.current(fresh: true)
        #expect(keys.next.count == outcomes.count { $0 == nil } && outcomes.allSatisfy { $0 == nil || $0 == "busy" })
        #expect(keys.previous.count == keys.next.count)
    }

    @Test("A bundle forged with a stolen identity key verifies, and the report says exactly what that proves")
    func forged() async throws {
        let (world, _) = try await Self.world()
        let sdk = try SDKWorld(world)
        let container = try await sdk.enrolled(sdk.device())
        let honest = try await sdk.approve(container, on: sdk.device())
        // The thief has the identity key, and nothing of Ana's: a server and a device of their own, in her name.
        let thief = try await SigningWorld { $0.freshness = 30 * 365 * 86400 }
        let stolen = try #require(try await world.provider.keys.current().identities.last)
        try await thief.use(identity: stolen)
        let forging = try SDKWorld(thief)
        let forgedContainer = try await forging.enrolled(forging.device())
        let forged = try await forging.approve(forgedContainer, on: forging.device())
        let trust = stolen.publicKey.thumbprint
        let report = try await forging.report(forged.transactionID, trust: trust)
        let genuine = try await sdk.report(honest.transactionID, trust: trust)
        #expect(report.contradicted.isEmpty, "\(report.contradicted)")
        // No check tells them apart: so the report never says that it was Ana, or when.
        #expect(report.established.count == genuine.established.count)
        #expect(report.attested.count == genuine.attested.count)
        #expect(report.notEstablished == EvidenceGap.always)
        let kinds = report.attested.map { attestation in
            switch attestation {
            case .user: "user"
            case .decidedAt: "time"
            case .keyActive: "key"
            case .audit: "audit"
            case .numberMatched, .passwordCounted: "more"
            }
        }
        #expect(kinds.sorted() == ["audit", "key", "time", "user"])
    }
}

extension SigningWorld {
    /// Makes a key the issuer's identity key, before there is another.
    func use(identity: SigningKeySet.Identity) async throws {
        let kid = identity.publicKey.thumbprint.text
        let sealed = try base.context.masterKey.seal(identity.key.privateKey, for: .signingKey, context: kid)
        _ = try await base.context.database.run(
            SQLStatement(
                """
                INSERT INTO signing_identities (iss, seq, kid, public_jwk, sealed_key, created_at)
                VALUES (\(name), 0, \(kid), \(identity.publicKey.json.serialized()), \(sealed), \(provider.now))
                """))
    }
}
