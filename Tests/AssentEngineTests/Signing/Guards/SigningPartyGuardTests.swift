import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("Signing: bounds and keys of what relying parties ask for")
struct SigningPartyGuardTests {
    @Test("A key for repetitions is that of one request: with any other member it is refused, and asks nobody else")
    func idempotency() async throws {
        var second = SigningWorld.payment
        second.title = LocalizedText("Confirm")
        let world = try await SigningWorld { [second] in $0.templates["second"] = second }
        let (_, container) = try await world.enrolled()
        var first = world.wish()
        first.origin = DocumentOrigin(place: "Vienna", address: "192.0.2.7")
        let made = try await world.provider.parties.create(first)
        let changes: [(inout TransactionWish) -> Void] = [
            { $0.user = "ben" }, { $0.template = "second" }, { $0.details = $0.details + " " },
            { $0.did = container.did.text }, { $0.locale = "de" }, { $0.lifetime = 180 },
            { $0.origin = DocumentOrigin(place: "Graz", address: "192.0.2.7") },
            { $0.origin = DocumentOrigin(place: "Vienna", address: "192.0.2.8") }, { $0.origin = nil },
        ]
        for (number, change) in changes.enumerated() {
            var other = first
            change(&other)
            let code = try await refusal { _ = try await world.provider.parties.create(other) }
            #expect(code == "invalid_request", "change \(number)")
        }
        #expect(try await world.provider.parties.create(first) == made)
        first.clientID = "other"
        #expect(try await world.provider.parties.create(first).txn != made.txn)
    }

    @Test("Details with the same member twice, or with members that look alike, are refused wherever they stand")
    func duplicates() async throws {
        let world = try await SigningWorld()
        for (part, other) in [
            ("\"creditorName\":\"Bob\"", "\"creditorName\":\"Bob\",\"creditorName\":\"Eve\""),
            ("\"creditorName\":\"Bob\"", "\"creditorName\":\"Bob\",\"CreditorName\":\"Eve\""),
            ("\"EUR\"", "\"EUR\",\"amount\":\"2.00\""), ("\"type\":\"payment\"", "\"type\":\"a\",\"type\":\"payment\""),
        ] {
            let wish = world.wish(details: SigningWorld.details.replacing(part, with: other))
            let code = try await refusal { _ = try await world.provider.parties.create(wish) }
            #expect(code == "invalid_request", "\(other)")
        }
    }

    @Test("Details, lifetimes and keys have their bounds")
    func bounds() async throws {
        let world = try await SigningWorld { settings in
            (settings.limits.openOfClient, settings.limits.unanswered) = (100, 100)
        }
        func code(_ change: (inout TransactionWish) -> Void) async throws -> String? {
            var wish = world.wish()
            change(&wish)
            return try await refusal { _ = try await world.provider.parties.create(wish) }
        }
        let spaces = SigningParties.detailsLimit - SigningWorld.details.utf8.count
        #expect(try await code { $0.details += String(repeating: " ", count: spaces) } == nil)
        #expect(try await code { $0.details += String(repeating: " ", count: spaces + 1) } == "too_large")
        for (seconds, expected) in [(9, "invalid_request"), (10, nil), (3600, nil), (3601, "invalid_request")] {
            #expect(try await code { $0.lifetime = Int64(seconds) } == expected, "\(seconds)")
        }
        for (count, expected) in [(0, "invalid_request"), (1, nil), (64, nil), (65, "invalid_request")] {
            #expect(
                try await code { $0.idempotencyKey = String(repeating: "k", count: count) } == expected, "\(count)")
        }
    }

    @Test("A record that a device begins again under its id is the same one, or refused when it is another text")
    func records() async throws {
        let world = try await SigningWorld()
        let (first, second) = (try await world.enrolled(), try await world.enrolled())
        let rid = SigningID(random: SystemRandom())
        func create(_ message: String, _ by: (device: TestDevice, container: TestDevice.Enrolled)) async throws
            -> SigningID
        {
            let body = CreateBody(message: message, label: "payments", rid: rid)
            let fetched: Fetched = try await by.device.askSealed("transactions/create", by.container.did, body)
            return try await by.device.trust().verified(fetched.document, as: TransactionDocument.self).content.txn
        }
        let mine = try await create("Read", first)
        #expect(try await create("Read", first) == mine)
        #expect(try await refusal { _ = try await create("Read and understood", first) } == "invalid_request")
        #expect(try await create("Read", second) != mine)
    }

    @Test("Administrators and auditors read evidence, which is noted with who they are; other users do not")
    func evidence() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let (txn, _) = try await world.asked()
        _ = try await device.approve(txn, container)
        var readers: [String] = []
        for role in Role.allCases {
            let caller = SigningCaller(
                try await TransactionFixture.signIn("with-\(role.rawValue)", roles: [role], world.base.context))
            let code = try await refusal {
                _ = try await world.provider.evidence.bundle(txn.text, for: .caller(caller))
            }
            let mayRead = role == .admin || role == .auditor
            #expect(code == (mayRead ? nil : "tx_unknown"), "\(role)")
            if mayRead { readers.append("success \(caller.session.user.id)") }
        }
        #expect(readers.count == 2)
        #expect(try await world.audited(.signingEvidence, "by") == readers)
    }

    @Test("A transaction wakes the active devices of its user, and no one's else")
    func pushes() async throws {
        let notifier = NewsRecorder()
        let world = try await SigningWorld(notifier: notifier)
        func enrolled(_ caller: SigningCaller, _ pushID: String) async throws -> SigningID {
            let invite = try await world.invite(caller)
            let container = try await TestDevice(world).enrol(invite.code, pushID: pushID)
            _ = try await world.provider.invites.enter(digits: container.digits, caller, pid: invite.pid)
            return container.did
        }
        let removed = try await enrolled(world.ana, "removed")
        _ = try await enrolled(world.ana, "first")
        let blocked = try await enrolled(world.ana, "blocked")
        _ = try await enrolled(SigningCaller(world.base.ben), "ben's")
        _ = try await world.provider.devices.change(world.ana, did: removed.text, .revoke)
        _ = try await world.provider.devices.change(try await world.admin(), did: blocked.text, .block)
        _ = try await world.asked()
        #expect(notifier.waiting.withLock { $0.map(\.pushIDs) } == [["first"]])
    }
}
