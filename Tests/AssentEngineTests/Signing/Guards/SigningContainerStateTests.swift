import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("What a container may ask for in each of its states")
struct SigningContainerStateTests {
    /// A device with a PIN, and one good body for each call that an active container may make.
    private struct Scene {
        let world: SigningWorld
        let device: TestDevice
        let container: TestDevice.Enrolled
        let bodies: [(call: DeviceCall, body: any MessagePart)]
        let claimed: SigningID
        let txn: SigningID

        init() async throws {
            let enrolled = try await SigningWorld.withEnrolledPIN()
            let pin = enrolled.pin
            (world, device, container) = (enrolled.world, enrolled.device, enrolled.container)
            txn = try await world.asked().txn
            var wish = world.wish("numbered")
            (wish.user, wish.origin) = (nil, DocumentOrigin(place: "Vienna", address: "192.0.2.7"))
            let made = try await world.provider.parties.create(wish)
            claimed = made.txn
            let opened = try #require(try await pin.open("2580"))
            _ = try await pin.begin(opened, "7391")
            let late = try #require(try await pin.unlock("2580"))
            let kept = pin.kept.withLock { $0 }
            let id = SigningID(random: device.random)
            bodies = [
                (.update, UpdateBody(name: "phone")), (.list, ListBody(wait: 0)), (.fetch, FetchBody(txn: txn)),
                (.create, CreateBody(message: "Read on 1 May", label: "payments", rid: id)),
                (.claim, ClaimBody(ticket: try await world.provider.parties.ticket(of: made))),
                (.unlock, pin.body(kept, next: kept.r, element: kept.publicKey)),
                (.confirmEvaluation, try await pin.confirmation(late)),
                (
                    .startChange,
                    ChangeStartBody(
                        change: try await pin.change(.start, opened, from: 0), rid: id, blinded: kept.publicKey)
                ),
                (.commitChange, ChangeCommitBody(change: try await pin.change(.commit, opened, from: 0))),
                (.renewStart, RenewStartBody()),
            ]
        }

        /// What a call that is refused must not have changed.
        func stored() async throws -> [String] {
            let did = container.did.text
            let reads: [SQL] = [
                "SELECT name, 0 AS n, 0 AS g FROM signing_containers WHERE did = \(did)",
                "SELECT '' AS name, n, generation AS g FROM signing_slots WHERE did = \(did)",
                "SELECT '' AS name, unconfirmed AS n, floor AS g FROM signing_slots WHERE did = \(did)",
                "SELECT '' AS name, count(*) AS n, count(user_id) AS g FROM signing_transactions",
                "SELECT '' AS name, count(*) AS n, 0 AS g FROM signing_documents",
                "SELECT '' AS name, count(*) AS n, 0 AS g FROM signing_renewals",
            ]
            var all: [String] = []
            for read in reads {
                for row in try await world.base.database.run(.read(read)) {
                    all.append("\(try row.text("name")) \(try row.integer("n")) \(try row.integer("g"))")
                }
            }
            return all
        }
    }

    @Test("Blocked, suspect, expired and removed containers ask how they stand, and are refused all else")
    func refused() async throws {
        let scene = try await Scene()
        let (device, did) = (scene.device, scene.container.did)
        let before = try await scene.stored()
        for (change, code) in [
            ("state = 'BLOCKED'", "container_blocked"), ("state = 'SUSPECT'", "container_suspect"),
            ("state = 'ACTIVE', expires_at = \(scene.world.provider.now)", "key_expired"),
            ("state = 'REVOKED'", "container_revoked"),
            ("state = 'VOID'", "enrolment_void"),
        ] as [(SQL, String)] {
            try await scene.world.set(change, of: did)
            for (call, body) in scene.bodies {
                #expect(try await device.code(call.rawValue, did, body) == code, "\(call) while \(change)")
            }
            #expect(try await device.code("status", did, EmptyBody()) == nil)
            #expect(try await scene.stored() == before, "\(change)")
        }
    }

    @Test("The same calls succeed for an active container, of which each was a good one")
    func active() async throws {
        let scene = try await Scene()
        for (call, body) in scene.bodies {
            let code = try await scene.device.code(call.rawValue, scene.container.did, body)
            // It is not due, and its change was begun anew by the call before.
            let expected: [DeviceCall: String] = [
                .renewStart: "fresh_authentication_required", .commitChange: "wrong_generation",
            ]
            #expect(code == expected[call], "\(call)")
        }
        let known = try await scene.world.provider.documents.find(scene.claimed)
        #expect(known?.userID == scene.world.base.ana.user.id)
    }

    @Test("A device that was never confirmed is neither blocked nor let in: that would spare it the digits")
    func unconfirmed() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.completed()
        for change in [ContainerChange.block, .unblock] {
            #expect(try await !fixture.devices.change(container, change, by: "admin", at: fixture.now))
        }
        #expect(try await fixture.state(container) == .unconfirmed)
        let transaction = try await fixture.pending()
        for state in [SigningTransactionRecord.State.approved, .denied] {
            let decision = fixture.decision(transaction, container, state)
            let code = try await signingCode {
                _ = try await fixture.decisions.decide(
                    decision, container: container, proof: fixture.proof(container.did), at: fixture.now)
            }
            #expect(code == .enrolmentVoid)
        }
    }

    @Test("A block and its end make no suspect container good again, and may both be said twice")
    func suspectAgain() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let (admin, did) = (try await world.admin(), container.did.text)
        try await world.set("state = 'SUSPECT'", of: container.did)
        for (change, state) in [(.block, .blocked), (.unblock, .suspect)] as [(ContainerChange, ContainerState)] {
            for _ in 1...2 { #expect(try await world.provider.devices.change(admin, did: did, change) == state) }
            #expect(try await device.status(container.did).state == state)
        }
        let code = try await device.code(DeviceCall.list.rawValue, container.did, ListBody(wait: 0))
        #expect(code == "container_suspect")
    }

    @Test("Users let in no device that an administrator has blocked, and give it no name that misleads")
    func users() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        func change(_ caller: SigningCaller, _ change: ContainerChange) async throws -> String? {
            try await refusal { _ = try await world.provider.devices.change(caller, did: container.did.text, change) }
        }
        for name in ["", "a\u{202E}b", String(repeating: "x", count: 129)] {
            #expect(try await change(world.ana, .rename(name)) == "invalid_request")
        }
        #expect(try await change(world.ana, .rename(String(repeating: "x", count: 128))) == nil)
        #expect(try await change(try await world.admin(), .block) == nil)
        #expect(try await change(world.ana, .unblock) == "forbidden")
        #expect(try await change(SigningCaller(world.base.ben), .unblock) == "unknown_container")
        #expect(try await device.status(container.did).state == .blocked)
        #expect(try await change(world.ana, .revoke) == nil)
    }
}
