import AssentCore
import AssentSigning
import AssentSigningProtocol
import AssentStore
import AssentTesting
import Foundation
import TestSupport
import Testing

@testable import AssentEngine

@Suite("New keys for a container, over two nodes")
struct SigningRenewalNodeTests {
    private static let pin = Secret("271828")

    /// The writes of a renewal at which something happens: in a short run some of them.
    private static let moments = stride(from: 0, to: 60, by: Soak.isOn ? 1 : 4)

    /// A device of Ana's whose keys are due.
    private struct Scene {
        let sdk: SDKWorld
        let container: SigningContainer
        let pin: Secret?

        var world: SigningWorld { sdk.world }

        init(hasPIN: Bool) async throws {
            let worlds = hasPIN ? EnrolledWorlds.withPIN : EnrolledWorlds.plain
            (sdk, container) = try await worlds.next()
            pin = hasPIN ? SigningRenewalNodeTests.pin : nil
            sdk.passUntilDue(container)
        }

        /// A node on the world's data.
        func node(_ database: (any SQLDatabase)? = nil) throws -> SigningProvider {
            let context = try TransactionFixture.context(database ?? world.base.database, clock: sdk.clock)
            return SigningProvider(context, settings: world.provider.settings)
        }

        /// Has a device do something while its calls go to two nodes in turn; to the second one when the first is dead.
        func inTurn<Result>(
            _ first: NodeDatabase, from begin: Int, _ body: () async throws -> Result
        ) async throws -> Result {
            let nodes = [try node(first), try node()]
            let calls = Locked(begin)
            return try await SigningWorld.$route.withValue({
                let call = calls.withLock { calls in
                    defer { calls += 1 }
                    return calls
                }
                return nodes[first.isDead ? 1 : call % 2]
            }) { try await body() }
        }

        /// Renews the keys, as a user does who starts it again after a failure.
        func renew(_ copy: SDKWorld? = nil) async throws {
            let pin = pin
            let prompt = pin.map { pin -> SigningPasswordPrompt in { _ in pin } }
            let device = try await (copy ?? sdk).device().container(container.id)
            do {
                let renewal = try await device.renew(password: prompt)
                #expect(renewal.isDone)
            } catch let error as SigningError where error.code == .freshAuthenticationRequired {
                // It had ended, and the next one is not due.
            }
        }

        /// The keys of a device.
        func keys(_ copy: SDKWorld? = nil) async throws -> Set<String> {
            Set(try await (copy ?? sdk).device().container(container.id).keys.map(\.id))
        }

        /// Approves a payment with the keys of a device, and has the evidence verified.
        func approve(_ copy: SDKWorld? = nil) async throws {
            let device = (copy ?? sdk).device()
            let receipt = try await sdk.approve(
                try await device.container(container.id), on: device, pin: pin)
            let report = try await sdk.report(receipt.transactionID)
            #expect(report.exitStatus == 0, "\(report.contradicted)")
        }

        /// The keys that count at the server: always one set. No key waits when no renewal is under way.
        func active(_ place: String) async throws -> Set<String> {
            let did = container.id
            let rows = try await world.base.database.run(
                .read("SELECT kid, label, state FROM signing_keys WHERE did = \(did)"))
            let active = try rows.filter { try $0.text("state") == "ACTIVE" }
            let labels = try active.map { try $0.text("label") }
            #expect(labels.sorted() == container.keys.map(\.label).sorted(), "\(place): \(labels)")
            let open = try await world.base.database.run(
                .read(
                    """
                    SELECT pid FROM signing_renewals
                    WHERE did = \(did) AND state IN ('STARTED', 'COMMITTED', 'COMPLETED')
                    """))
            let waiting = try rows.filter { try $0.text("state") == "PENDING" }
            #expect(waiting.isEmpty || !open.isEmpty, "\(place): \(waiting)")
            return Set(try active.map { try $0.text("kid") })
        }
    }

    @Test(
        "With calls to two nodes in turn, of which one dies or loses what it wrote, one set of keys counts in the end",
        arguments: [false, true], [0, 1])
    func faults(hasPIN: Bool, begin: Int) async throws {
        var happened = 0
        for fault in NodeDatabase.Fault.allCases where fault != .none {
            for write in Self.moments {
                let place = "\(fault) at \(write)"
                let scene = try await Scene(hasPIN: hasPIN)
                let copy = try await scene.sdk.copy()
                let old = try await scene.keys()
                let first = NodeDatabase(
                    scene.world.base.database, Array(repeating: .none, count: write) + [fault])
                try await scene.inTurn(first, from: begin) {
                    do { try await scene.renew() } catch is SigningError { try await scene.renew() }
                }
                let new = try await scene.active(place)
                #expect(new.isDisjoint(with: old), "\(place)")
                #expect(try await scene.keys() == new, "\(place)")
                let records = try await scene.world.base.database.run(
                    .read("SELECT seq FROM signing_records WHERE did = \(scene.container.id)"))
                #expect(records.count == 2, "\(place)")
                try await scene.approve()
                await #expect(throws: SigningError.self, "\(place)") { try await scene.approve(copy) }
                if hasPIN {
                    let slot = try #require(
                        try await scene.world.provider.slots.find(.signing, of: scene.container.id))
                    // An evaluation whose reply was lost is the only one that is held against the user.
                    #expect(slot.generation == 1 && slot.floor == slot.n && slot.unconfirmed <= 1, "\(place)")
                }
                guard first.writeCount > write else { break }
                happened += 1
            }
        }
        #expect(happened >= (Soak.isOn ? (hasPIN ? 20 : 12) : 4))
    }

    /// What somebody else does in the middle of a renewal, over the other node.
    enum Meanwhile: CaseIterable {
        case copyRenews
        case copyApproves
        case userRevokes
    }

    @Test(
        "Whatever happens over the other node before any write of a renewal, one set of keys counts, or none",
        arguments: [false, true], Meanwhile.allCases)
    func interleaved(hasPIN: Bool, meanwhile: Meanwhile) async throws {
        var winners: Set<String> = []
        for write in Self.moments {
            let place = "\(meanwhile) before \(write)"
            let scene = try await Scene(hasPIN: hasPIN)
            let copy = try await scene.sdk.copy()
            let old = try await scene.keys()
            let second = try scene.node()
            let approved = Locked(false)
            let database = NodeDatabase(scene.world.base.database, []) { count in
                guard count == write else { return }
                await SigningWorld.$route.withValue({ second }) {
                    switch meanwhile {
                    case .copyRenews: try? await scene.renew(copy)
                    case .copyApproves:
                        let isApproved: Void? = try? await scene.approve(copy)
                        approved.withLock { $0 = isApproved != nil }
                    case .userRevokes:
                        _ = try? await scene.world.provider.devices.change(
                            scene.world.ana, did: scene.container.id, .revoke)
                    }
                }
            }
            let first = try scene.node(database)
            await SigningWorld.$route.withValue({ first }) { try? await scene.renew() }
            guard database.writeCount > write else { break }
            winners.insert(try await judge(scene, copy, old, place))
            if meanwhile == .copyApproves { winners.insert(approved.withLock { $0 } ? "approved" : "refused") }
        }
        // Each of the ends that there may be was seen.
        switch meanwhile {
        case .copyRenews: #expect(winners.isSuperset(of: ["copy"]), "\(winners)")
        case .copyApproves: #expect(winners.isSuperset(of: hasPIN ? ["mine"] : ["mine", "approved"]))
        case .userRevokes: #expect(winners == ["none"], "\(winners)")
        }
    }

    @Test(
        "A device and a copy of its store that renew at once, each call at another node: the keys of one of them count",
        arguments: [false, true])
    func copies(hasPIN: Bool) async throws {
        for round in 0..<(Soak.isOn ? 6 : 2) {
            let scene = try await Scene(hasPIN: hasPIN)
            let copy = try await scene.sdk.copy()
            let old = try await scene.keys()
            try await scene.inTurn(NodeDatabase(scene.world.base.database, []), from: round) {
                await withTaskGroup(of: Void.self) { group in
                    for each in [scene.sdk, copy] {
                        group.addTask { for _ in 0..<3 { try? await scene.renew(each) } }
                    }
                }
                // Each may have ended what the other had begun.
                try? await scene.renew()
            }
            let winner = try await judge(scene, copy, old, "round \(round)")
            #expect(hasPIN || winner != "old", "round \(round)")
        }
    }

    @Test(
        "Two processes of one device that renew at once, each call at another node, end with the same keys",
        arguments: [false, true])
    func processes(hasPIN: Bool) async throws {
        for round in 0..<(Soak.isOn ? 4 : 2) {
            let scene = try await Scene(hasPIN: hasPIN)
            let old = try await scene.keys()
            try await scene.inTurn(NodeDatabase(scene.world.base.database, []), from: round) {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<2 { group.addTask { try await scene.renew() } }
                    try await group.waitForAll()
                }
            }
            let new = try await scene.active("round \(round)")
            #expect(new.isDisjoint(with: old), "round \(round)")
            #expect(try await scene.keys() == new, "round \(round)")
            try await scene.approve()
        }
    }

    /// Whose keys count, and that nobody else's sign.
    private func judge(
        _ scene: Scene, _ copy: SDKWorld, _ old: Set<String>, _ place: String
    ) async throws -> String {
        let record = try #require(try await scene.world.provider.devices.find(scene.container.id))
        let state = record.state(at: scene.world.provider.now)
        if state == .revoked {
            let active = try await scene.world.base.database.run(
                .read("SELECT kid FROM signing_keys WHERE did = \(scene.container.id) AND state = 'ACTIVE'"))
            #expect(active.isEmpty, "\(place): \(active)")
            for each in [scene.sdk, copy] {
                await #expect(throws: SigningError.self, "\(place)") { try await scene.approve(each) }
            }
            return "none"
        }
        let active = try await scene.active(place)
        if state == .suspect {
            // The ratchet has told the two apart: neither approves until the user has authenticated.
            for each in [scene.sdk, copy] {
                await #expect(throws: SigningError.self, "\(place)") { try await scene.approve(each) }
            }
            return "suspect"
        }
        #expect(state == .active, "\(place): \(state)")
        if active == old { return "old" }
        #expect(active.isDisjoint(with: old), "\(place)")
        // What a device has found out by itself; the winner may not know yet.
        var winners: [String] = []
        for (name, each) in [("mine", scene.sdk), ("copy", copy)] {
            if (try? await scene.approve(each)) != nil { winners.append(name) }
        }
        #expect(winners.count == 1, "\(place): \(winners)")
        let winner = try #require(winners.first)
        #expect(try await scene.keys(winner == "mine" ? scene.sdk : copy) == active, "\(place)")
        return winner
    }
}
