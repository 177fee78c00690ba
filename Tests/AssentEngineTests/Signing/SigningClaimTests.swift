import AssentCore
import AssentSigning
import AssentSigningProtocol
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("Scan to approve", .timeLimit(.minutes(3)))
struct SigningClaimTests {
    private func wish(_ world: SigningWorld) -> TransactionWish {
        var wish = world.wish("numbered")
        wish.user = nil
        wish.origin = DocumentOrigin(place: "Vienna", address: "192.0.2.7")
        return wish
    }

    @Test("Whoever scans first gets the transaction, sees where it began, and signs with the page's number")
    func story() async throws {
        let sdk = try SDKWorld(try await SigningWorld())
        let (device, world) = (sdk.device(), sdk.world)
        let container = try await sdk.enrolled(device)
        let made = try await world.provider.create(wish(world))
        #expect(made.userID.isEmpty && made.expiresAt - made.createdAt == 120)
        #expect(try await world.provider.view(made.txn, client: "shop").state == .pending)
        #expect(try await container.transactionIDs().isEmpty)
        let text = try await world.provider.ticket(of: made)
        #expect(text.utf8.count <= 800)
        let info = try await device.retrieveTransactionInfo(text)
        #expect(info.isClaim && info.transactionID == made.txn)
        let transaction = try await info.transaction()
        #expect(try await info.transaction().id == transaction.id)
        #expect(transaction.displayed.place == "Vienna" && transaction.displayed.address == "192.0.2.7")
        let receipt = try await transaction.setStatus("accept", number: made.matchNumber)
        #expect(receipt.effect == .approve)
        #expect(try await world.provider.view(made.txn, client: "shop").state == .approved)
        let report = try await sdk.report(made.txn)
        #expect(report.contradicted.isEmpty, "\(report.contradicted)")
    }

    @Test("Of many containers that scan at once one gets it; the others learn nothing, and the number is not theirs")
    func race() async throws {
        let world = try await SigningWorld { $0.limits.containers = 20 }
        var devices: [(device: TestDevice, container: TestDevice.Enrolled)] = []
        for _ in 0..<6 { devices.append(try await world.enrolled()) }
        let made = try await world.provider.create(wish(world))
        let text = try await world.provider.ticket(of: made)
        let outcomes = try await withThrowingTaskGroup(of: String?.self) { group in
            for (device, container) in devices {
                group.addTask {
                    try await refusal {
                        _ = try await device.call("transactions/claim", container.did, ClaimBody(ticket: text))
                    }
                }
            }
            return try await group.reduce(into: [String?]()) { $0.append($1) }
        }
        #expect(outcomes.count { $0 == nil } == 1)
        #expect(outcomes.count { $0 == "tx_unknown" } == 5)
        let txn = try #require(SigningID(text: made.txn))
        var fetched = 0
        for (device, container) in devices {
            let found = try await refusal { _ = try await device.fetch(txn, container) }
            #expect(found == nil || found == "tx_unknown")
            fetched += found == nil ? 1 : 0
        }
        #expect(fetched == 1)
    }

    @Test("Without number, origin or user, with a long life or a device, no transaction is made")
    func settings() async throws {
        let world = try await SigningWorld()
        let good = wish(world)
        let changes: [(inout TransactionWish) -> Void] = [
            { $0.template = "payment" }, { $0.origin = nil }, { $0.lifetime = 121 }, { $0.did = "x" },
        ]
        for change in changes {
            var wish = good
            change(&wish)
            let found = try await refusal { _ = try await world.provider.create(wish) }
            #expect(found == "invalid_request" || found == "not_found")
        }
        #expect(try await world.provider.create(good).txn == world.provider.create(good).txn)
    }

    @Test("What is forged, expired, canceled, or no id to be claimed, is claimed by nobody")
    func refused() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        func claim(_ text: String) async throws -> String? {
            try await refusal {
                _ = try await device.call("transactions/claim", container.did, ClaimBody(ticket: text))
            }
        }
        let own = try await world.asked()
        let listed = try await device.list(container.did)
        #expect(listed.count == 1 && listed.first?.txn == own.txn)
        let handle = Ticket(
            issuer: world.name, txn: own.txn, expiresAt: Int(world.provider.now) + 60,
            handle: SigningID(random: SystemRandom()))
        #expect(try await claim(try await world.provider.keys.sign(handle)) == "tx_unknown")
        let made = try await world.provider.create(wish(world))
        let forged = Ticket(
            issuer: world.name, txn: try #require(SigningID(text: made.txn)), expiresAt: Int(made.expiresAt),
            isClaim: true)
        #expect(try await claim(try await SignedMessage.sign(forged, with: device.deviceKey).compact) == "tx_unknown")
        let text = try await world.provider.ticket(of: made)
        try await world.provider.cancel(made.txn, client: "shop")
        #expect(try await claim(text) == "tx_canceled")
        let late = try await world.provider.ticket(of: try await world.provider.create(wish(world)))
        world.base.clock.advance(by: 121)
        #expect(try await claim(late) == "tx_expired")
        // A blind refusal needs a transaction of one's own.
        let other = try await world.provider.create(wish(world))
        let blind = device.blind(try #require(SigningID(text: other.txn)), container)
        let body = try await device.signed(blind, label: nil)
        #expect(try await refusal { _ = try await device.decide(body, container) } == "tx_unknown")
    }
}
