import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("Two realms over one database: what one of them knows, the other does not")
struct SigningIssuerTests {
    /// The issuer of another realm, on the database of the first one.
    private final class Other: TestIssuer {
        let provider: SigningProvider
        let admin: SigningCaller

        init(_ world: SigningWorld) async throws {
            var settings = world.provider.settings
            settings.issuer = SigningIssuer(
                name: "https://am.bank.example/am/signing/realms/root/realms/beta", realm: "/beta")
            provider = SigningProvider(world.base.context, settings: settings)
            admin = try await world.admin()
            _ = try await Users(world.base.context).create(username: "ana", realm: "/beta", passwordHash: nil)
        }

        var name: String { provider.settings.issuer.name }

        func configuration() async throws -> (bytes: [UInt8], nonce: String) {
            (try await provider.door.configuration(), provider.door.nonce())
        }

        func send(_ path: String, proof: String?, body: String) async throws -> String {
            let call = try #require(DeviceCall(rawValue: path))
            do {
                return try await provider.door.answer(call, proof: proof, body: Array(body.utf8), address: "192.0.2.1")
            } catch {
                throw TestRefusal(error.code.rawValue)
            }
        }

        func code(_ device: TestDevice, _ did: SigningID, _ path: String, _ body: some MessagePart) async throws
            -> String?
        {
            let mine = try TestDevice(self)
            let sealed = try await mine.sealed(body.encoded(), sender: did.text)
            let proof = try await mine.proof(did, path: path, body: sealed, key: device.deviceKey)
            return try await refusal { _ = try await send(path, proof: proof, body: sealed) }
        }
    }

    @Test("A device, and one that is enrolling, are unknown at the other issuer, also with a proof that is made for it")
    func devices() async throws {
        let world = try await SigningWorld()
        let other = try await Other(world)
        let (device, container) = try await world.enrolled()
        let begun = try TestDevice(world)
        let offer = try await begun.start(try await world.invite().code).content
        for (device, did) in [(device, container.did), (begun, offer.did)] {
            #expect(try await other.code(device, did, "status", EmptyBody()) == "unknown_container")
            #expect(try await device.code("status", did, EmptyBody()) == nil)
        }
        let (provider, did) = (other.provider, container.did.text)
        #expect(
            try await refusal { _ = try await provider.devices.change(other.admin, did: did, .revoke) }
                == "unknown_container")
        #expect(
            try await refusal { _ = try await provider.invites.make(other.admin, user: "ana", did: did) }
                == "not_found")
        #expect(try await provider.devices.list(world.ana, user: nil).isEmpty)
        #expect(try await device.status(container.did).state == .active)
    }

    @Test("A code, its digits and its state are those of one issuer")
    func invites() async throws {
        let world = try await SigningWorld()
        let other = try await Other(world)
        let made = try await world.invite()
        let device = try TestDevice(world)
        let container = try await device.enrol(made.code)
        let pid = try #require(SigningID(text: made.pid))
        let invites = other.provider.invites
        #expect(try await refusal { _ = try await invites.status(other.admin, pid: made.pid) } == "not_found")
        #expect(try await refusal { try await invites.withdraw(other.admin, pid: made.pid) } == "not_found")
        #expect(
            try await refusal { _ = try await invites.enter(digits: container.digits, other.admin, pid: made.pid) }
                == "not_found")
        #expect(
            try await invites.compare(digits: container.digits, pid: pid, at: other.provider.now) == .nothingToCompare)
        let open = try await world.invite()
        #expect(try await refusal { _ = try await TestDevice(other).start(open.code) } == "invalid_code")
        let status = try await world.provider.invites.enter(digits: container.digits, world.ana, pid: made.pid)
        #expect(status.state == "ACTIVE")
    }

    @Test("A client of both sees at each issuer what it has asked there, and its keys for repetitions are two")
    func transactions() async throws {
        let world = try await SigningWorld()
        let other = try await Other(world)
        let (device, container) = try await world.enrolled()
        let wish = world.wish()
        let made = try await world.provider.parties.create(wish)
        let theirs = try await other.provider.parties.create(wish)
        #expect(made.txn != theirs.txn && made.userID != theirs.userID)
        let (parties, txn) = (other.provider.parties, made.txn.text)
        #expect(try await refusal { _ = try await parties.view(txn, client: "shop") } == "tx_unknown")
        #expect(try await refusal { try await parties.cancel(txn, client: "shop") } == "tx_unknown")
        _ = try await device.approve(made.txn, container)
        #expect(
            try await refusal { _ = try await other.provider.evidence.bundle(txn, for: .client("shop")) }
                == "tx_unknown")
        var claim = world.wish("numbered")
        (claim.user, claim.origin) = (nil, DocumentOrigin(place: "Vienna", address: "192.0.2.7"))
        let page = try await parties.create(claim)
        // Signed by the issuer's own key, which the other one does not have.
        let ticket = ClaimBody(ticket: try await parties.ticket(of: page))
        #expect(try await device.code("transactions/claim", container.did, ticket) == "tx_unknown")
        let mine = ClaimBody(ticket: try await world.provider.parties.ticket(of: page))
        #expect(try await device.code("transactions/claim", container.did, mine) == "tx_unknown")
        #expect(try await other.provider.documents.find(page.txn, evenUnclaimed: true)?.userID.isEmpty == true)
    }

    @Test("Users of the other realm are not found, neither by name nor by the id that an administrator may know")
    func users() async throws {
        let world = try await SigningWorld()
        let other = try await Other(world)
        let id = world.base.ana.user.id
        for user in [id, "ben"] {
            var wish = world.wish()
            wish.user = user
            let provider = other.provider
            #expect(try await refusal { _ = try await provider.parties.create(wish) } == "not_found")
            #expect(try await refusal { _ = try await provider.invites.make(other.admin, user: user) } == "not_found")
            #expect(try await refusal { _ = try await provider.devices.list(other.admin, user: user) } == "not_found")
        }
        _ = try await world.provider.invites.make(other.admin, user: id)
    }

    @Test("Each has its own keys, and withdrawing or replacing those of one leaves the other's")
    func keys() async throws {
        let world = try await SigningWorld()
        let other = try await Other(world)
        func read(_ issuer: any TestIssuer) async throws -> IssuerConfiguration {
            try IssuerConfiguration(reading: try await issuer.configuration().bytes)
        }
        let (mine, theirs) = (try await read(world), try await read(other))
        #expect(mine.identity != theirs.identity)
        #expect(Set(mine.certificates).isDisjoint(with: theirs.certificates) && mine.certificates.count == 2)
        for change in [SigningKeyAdministration.KeyChange.withdrawOnlineKeys, .rotateIdentity] {
            _ = try await other.provider.administration.change(other.admin, change)
        }
        _ = try await world.provider.keys.current(fresh: true)
        let (after, changed) = (try await read(world), try await read(other))
        #expect(after.identity == mine.identity && after.certificates == mine.certificates && after.next.isEmpty)
        #expect(changed.identity != theirs.identity && changed.next.count == 1)
    }

    @Test("A node signs with no key that another one has withdrawn half a minute ago")
    func staleness() async throws {
        let world = try await SigningWorld()
        let node = SigningProvider(world.base.context, settings: world.provider.settings)
        let old = try #require(try await node.keys.current().newest(.sig)).kid
        _ = try await world.provider.administration.change(try await world.admin(), .withdrawOnlineKeys)
        func signer() async throws -> KeyThumbprint {
            let ticket = Ticket(
                issuer: world.name, txn: SigningID(random: SystemRandom()), expiresAt: Int(world.provider.now) + 60,
                handle: SigningID(random: SystemRandom()))
            return try UnverifiedMessage<Ticket>(try await node.keys.sign(ticket)).kid
        }
        world.base.clock.advance(by: 29)
        #expect(try await signer() == old)
        world.base.clock.advance(by: 1)
        #expect(try await signer() != old)
        #expect(try await node.keys.signer(old) == nil)
    }

    @Test("An identity key has sixteen successors, since a device follows no more")
    func successors() async throws {
        let world = try await SigningWorld()
        let admin = try await world.admin()
        func rotate() async throws -> String? {
            try await refusal { _ = try await world.provider.administration.change(admin, .rotateIdentity) }
        }
        for _ in 0..<16 { #expect(try await rotate() == nil) }
        #expect(try await rotate() == "invalid_request")
        #expect(try await world.provider.keys.current(fresh: true).next.count == 16)
    }
}
