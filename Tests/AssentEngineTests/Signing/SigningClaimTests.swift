import AssentCore
import AssentSigning
import AssentSigningProtocol
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("Scan to approve")
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
        let made = try await world.provider.parties.create(wish(world))
        #expect(made.userID.isEmpty && made.expiresAt - made.createdAt == 120)
        #expect(try await world.provider.parties.view(made.txn.text, client: "shop").state == .pending)
        #expect(try await container.transactionIDs().isEmpty)
        let text = try await world.provider.parties.ticket(of: made)
        #expect(text.utf8.count <= 800)
        let info = try await device.retrieveTransactionInfo(text)
        #expect(info.isClaim && info.transactionID == made.txn.text)
        let transaction = try await info.transaction()
        #expect(try await info.transaction().id == transaction.id)
        #expect(transaction.displayed.place == "Vienna" && transaction.displayed.address == "192.0.2.7")
        let receipt = try await transaction.setStatus("accept", number: made.matchNumber)
        #expect(receipt.effect == .approve)
        #expect(try await world.provider.parties.view(made.txn.text, client: "shop").state == .approved)
        let report = try await sdk.report(made.txn.text)
        #expect(report.contradicted.isEmpty, "\(report.contradicted)")
    }

    @Test("Of many containers that scan at once one gets it; the others learn nothing, and the number is not theirs")
    func race() async throws {
        let world = try await SigningWorld { $0.limits.containers = 20 }
        var devices: [(device: TestDevice, container: TestDevice.Enrolled)] = []
        for _ in 0..<6 { devices.append(try await world.enrolled()) }
        let made = try await world.provider.parties.create(wish(world))
        let text = try await world.provider.parties.ticket(of: made)
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
        let txn = made.txn
        var fetched = 0
        for (device, container) in devices {
            let found = try await refusal { _ = try await device.fetch(txn, container) }
            #expect(found == nil || found == "tx_unknown")
            fetched += found == nil ? 1 : 0
        }
        #expect(fetched == 1)
    }

    @Test("What one device has scanned, another one of the same user cannot refuse")
    func claimedByAnother() async throws {
        let world = try await SigningWorld()
        let (first, second) = (try await world.enrolled(), try await world.enrolled())
        let made = try await world.provider.parties.create(wish(world))
        let body = ClaimBody(ticket: try await world.provider.parties.ticket(of: made))
        _ = try await first.device.call("transactions/claim", first.container.did, body)
        let txn = made.txn
        for effect in [DecisionEffect.deny, .report] {
            let blind = try await second.device.signed(
                second.device.blind(txn, second.container, effect), label: nil)
            #expect(try await refusal { _ = try await second.device.decide(blind, second.container) } == "tx_unknown")
        }
        #expect(try await world.state(txn) == "PENDING")
        let blind = try await first.device.signed(first.device.blind(txn, first.container), label: nil)
        #expect(try await first.device.decide(blind, first.container).content.state == .denied)
    }

    @Test("What one device has scanned, another one of the same user cannot end by a signature that is not good")
    func endedByAnother() async throws {
        let world = try await SigningWorld()
        let (first, second) = (try await world.enrolled(), try await world.enrolled())
        let made = try await world.provider.parties.create(wish(world))
        let ticket = ClaimBody(ticket: try await world.provider.parties.ticket(of: made))
        _ = try await first.device.call("transactions/claim", first.container.did, ticket)
        let txn = made.txn
        let blind = try await second.device.signed(second.device.blind(txn, second.container), label: nil)
        var parts = blind.decision.split(separator: ".").map(String.init)
        try #require(parts.count == 3)
        parts[2] = (parts[2].first == "A" ? "B" : "A") + parts[2].dropFirst()
        let broken = DecideBody(decision: parts.joined(separator: "."))
        #expect(try await refusal { _ = try await second.device.decide(broken, second.container) } == "tx_unknown")
        #expect(try await world.state(txn) == "PENDING")
        let receipt = try await first.device.approve(txn, first.container, number: made.matchNumber)
        #expect(receipt.content.state == .approved)
        // Its end is not told to the other one either.
        #expect(try await refusal { _ = try await second.device.decide(blind, second.container) } == "tx_unknown")
    }

    @Test("A device without a key that could approve it claims nothing, and another one can")
    func withoutKey() async throws {
        let plain = try await SigningWorld { $0.keys = [SigningSettings.standardKeys[0]] }
        let (device, container) = try await plain.enrolled()
        var settings = plain.provider.settings
        settings.keys = SigningSettings.standardKeys
        settings.templates["login"] = SigningTemplate(
            kind: .authentication, title: LocalizedText("Sign in"), matchesNumber: true, notShown: ["/"])
        let later = SigningProvider(plain.base.context, settings: settings)
        var wish = wish(plain)
        wish.template = "login"
        let made = try await later.parties.create(wish)
        let body = ClaimBody(ticket: try await later.parties.ticket(of: made))
        #expect(
            try await refusal { _ = try await device.call("transactions/claim", container.did, body) } == "tx_unknown")
        let second = try await SigningWorld.$route.withValue({ later }) { try await plain.enrolled() }
        _ = try await second.device.call("transactions/claim", second.container.did, body)
        let stored = try await plain.provider.documents.find(made.txn)
        #expect(stored?.userID == plain.base.ana.user.id)
    }

    @Test("A device claims nothing while its user is deactivated")
    func deactivated() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let (users, ana) = (Users(world.base.context), world.base.ana.user.id)
        let made = try await world.provider.parties.create(wish(world))
        let body = ClaimBody(ticket: try await world.provider.parties.ticket(of: made))
        try await users.setActive(false, userID: ana)
        #expect(
            try await refusal { _ = try await device.call("transactions/claim", container.did, body) } == "tx_unknown")
        #expect(try await world.provider.documents.find(made.txn, evenUnclaimed: true)?.userID.isEmpty == true)
        try await users.setActive(true, userID: ana)
        _ = try await device.call("transactions/claim", container.did, body)
        #expect(try await world.provider.documents.find(made.txn)?.userID == ana)
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
            let found = try await refusal { _ = try await world.provider.parties.create(wish) }
            #expect(found == "invalid_request" || found == "not_found")
        }
        // A place or an address that people cannot read is refused, also where no origin is needed.
        for (place, address) in [(" ", "192.0.2.7"), ("Vienna", "\u{A0}\u{3000}"), ("Vienna    Bonn", "192.0.2.7")] {
            for template in ["numbered", "payment"] {
                var wish = template == "numbered" ? good : world.wish()
                wish.origin = DocumentOrigin(place: place, address: address)
                let found = try await refusal { _ = try await world.provider.parties.create(wish) }
                #expect(found == "invalid_request", "\(template): \(place), \(address)")
            }
        }
        #expect(try await world.provider.parties.create(good).txn == world.provider.parties.create(good).txn)
    }

    @Test("A client has a hundred that nobody has claimed; another client has its own, and time makes room")
    func limit() async throws {
        let world = try await SigningWorld()
        func make(_ client: String = "shop") async throws -> String? {
            var wanted = wish(world)
            wanted.clientID = client
            return try await refusal { _ = try await world.provider.parties.create(wanted) }
        }
        for _ in 0..<100 { #expect(try await make() == nil) }
        #expect(try await make() == "rate_limited")
        #expect(try await make("other") == nil)
        world.base.clock.advance(by: 120)
        #expect(try await make() == nil)
    }

    @Test("A code that is passed on is signed only with the place where it began, the page's number, and in time")
    func relayed() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        func claimed() async throws -> (number: String, document: SignedMessage<TransactionDocument>) {
            let made = try await world.provider.parties.create(wish(world))
            let ticket = try await world.provider.parties.ticket(of: made)
            _ = try await device.call("transactions/claim", container.did, ClaimBody(ticket: ticket))
            let txn = made.txn
            return (try #require(made.matchNumber), try await device.fetch(txn, container))
        }
        func approve(
            _ document: SignedMessage<TransactionDocument>, number: String?, from address: String = "192.0.2.7"
        ) async throws -> String? {
            let content = document.content
            let status = try #require(content.status(named: "accept"))
            let texts = content.displayed(status: status, match: number).map { $0 == "192.0.2.7" ? address : $0 }
            let decision = Decision(
                issuer: world.name, did: content.did, sub: content.sub, txn: content.txn, nonce: content.nonce,
                document: .document(document.compact), displayed: .displayed(texts), status: "accept",
                effect: .approve, reason: nil, match: number, jti: SigningID(random: SystemRandom()))
            let body = try await device.signed(decision, label: "payments")
            return try await refusal { _ = try await device.decide(body, container) }
        }
        let (number, document) = try await claimed()
        #expect(document.content.body.origin?.place == "Vienna" && document.content.body.origin?.address == "192.0.2.7")
        // Only the page that asked has the number; somebody who was sent the code has to guess, and once.
        #expect(try await approve(document, number: nil) == "hash_mismatch")
        #expect(try await approve(document, number: number, from: "198.51.100.1") == "hash_mismatch")
        #expect(try await world.state(document.content.txn) == "PENDING")
        #expect(try await approve(document, number: number == "00" ? "01" : "00") == "match_wrong")
        #expect(try await approve(document, number: number) == "tx_failed")
        let (late, second) = try await claimed()
        world.base.clock.advance(by: 120)
        #expect(try await approve(second, number: late) == "tx_expired")
        let (right, third) = try await claimed()
        #expect(try await approve(third, number: right) == nil)
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
        let made = try await world.provider.parties.create(wish(world))
        let forged = Ticket(
            issuer: world.name, txn: made.txn, expiresAt: Int(made.expiresAt),
            isClaim: true)
        #expect(try await claim(try await SignedMessage.sign(forged, with: device.deviceKey).compact) == "tx_unknown")
        let text = try await world.provider.parties.ticket(of: made)
        try await world.provider.parties.cancel(made.txn.text, client: "shop")
        #expect(try await claim(text) == "tx_canceled")
        let late = try await world.provider.parties.ticket(of: try await world.provider.parties.create(wish(world)))
        world.base.clock.advance(by: 121)
        #expect(try await claim(late) == "tx_expired")
        // A blind refusal needs a transaction of one's own.
        let other = try await world.provider.parties.create(wish(world))
        let blind = device.blind(other.txn, container)
        let body = try await device.signed(blind, label: nil)
        #expect(try await refusal { _ = try await device.decide(body, container) } == "tx_unknown")
    }
}
