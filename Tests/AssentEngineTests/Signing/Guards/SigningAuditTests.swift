import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("What the audit log has of a device's life")
struct SigningAuditTests {
    /// Each record of an event, oldest first: its outcome, its step and its reason.
    private static func records(_ world: SigningWorld, _ event: AuditEvent) async throws -> [AuditRecord] {
        try await AuditLog(world.base.context).newest(10_000).reversed().filter { $0.event == event }
    }

    private static func lines(_ world: SigningWorld, _ event: AuditEvent) async throws -> [String] {
        try await records(world, event).map { record in
            [record.outcome == .success ? nil : record.outcome.rawValue, record.detail["step"]?.string, record.reason]
                .compactMap(\.self).joined(separator: " ")
        }
    }

    /// Whose the records of an event are: all of the user, and of the container unless they are about an invite.
    private static func belong(
        _ world: SigningWorld, _ event: AuditEvent, _ container: TestDevice.Enrolled, from first: Int = 0
    ) async throws -> Bool {
        try await records(world, event).dropFirst(first).allSatisfy {
            $0.userID == world.base.ana.user.id && $0.realm == "/alpha"
                && $0.detail["did"]?.string == container.did.text
        }
    }

    @Test("Each step of an enrolment with a PIN, and each entry of digits, has one record of its user and container")
    func enrolment() async throws {
        let world = try await SigningWorld.withPIN()
        let invite = try await world.invite()
        let device = try TestDevice(world, modes: [.device, .assisted])
        let (container, pin) = try await device.enrol(invite.code, pin: "2580")
        let wrong = container.digits == "00000000" ? "00000001" : "00000000"
        for digits in [wrong, container.digits, container.digits] {
            _ = try await refusal {
                _ = try await world.provider.invites.enter(digits: digits, world.ana, pid: invite.pid)
            }
        }
        #expect(
            try await Self.lines(world, .signingEnrol) == [
                "start", "evaluate", "commit", "complete", "confirm", "refused digits_wrong", "digits", "active",
            ])
        #expect(try await Self.belong(world, .signingEnrol, container))
        #expect(try await Self.lines(world, .signingInvite) == ["made"])
        _ = try await pin.open("2580")
        let opened = try #require(try await pin.open("2580"))
        _ = try await pin.begin(opened, "7391")
        _ = try await pin.commit(opened, from: 0)
        #expect(
            try await Self.lines(world, .signingSlot) == [
                "evaluated", "confirmed", "evaluated", "confirmed", "change", "changed",
            ])
        #expect(try await Self.belong(world, .signingSlot, container))
    }

    @Test("What ends an enrolment is noted with its reason: wrong digits, another commitment, too many devices")
    func refusedEnrolments() async throws {
        let world = try await SigningWorld { $0.limits.containers = 1 }
        _ = try await world.enrolled()
        let before = try await Self.lines(world, .signingEnrol).count
        let invite = try await world.invite()
        #expect(try await refusal { _ = try await TestDevice(world).enrol(invite.code) } == "device_limit")
        let device = try TestDevice(world)
        let offer = try await device.start(try await world.invite().code)
        for (number, code) in [(1, nil), (2, "commitment_changed")] as [(UInt8, String?)] {
            let commit = CommitBody(commitment: SigningHash(sha256: [number]), offer: .offer(offer.compact))
            #expect(try await device.code("provision/commit", offer.content.did, commit) == code)
        }
        #expect(
            try await Self.lines(world, .signingEnrol).dropFirst(before) == [
                "start", "commit", "refused device_limit", "start", "commit", "refused commitment_changed",
            ])
        let fresh = try await SigningWorld()
        let second = try await fresh.invite()
        let container = try await TestDevice(fresh).enrol(second.code)
        let wrong = container.digits == "00000000" ? "00000001" : "00000000"
        for _ in 0..<3 {
            _ = try await refusal {
                _ = try await fresh.provider.invites.enter(digits: wrong, fresh.ana, pid: second.pid)
            }
        }
        #expect(try await Self.lines(fresh, .signingInvite) == ["made", "refused void digits_wrong"])
        #expect(
            try await Self.lines(fresh, .signingEnrol).count { $0 == "refused digits_wrong" } == 3)
    }

    @Test("Each step of a renewal and of a reset is noted, and what an active device does with its name and its end")
    func life() async throws {
        let world = try await SigningWorld { $0.freshness = 10 * 365 * 86400 }
        let (old, container) = try await world.enrolled()
        world.base.clock.advance(by: 350 * 86400)
        let new = try TestDevice(world)
        let due = try await LowRenewal(old, new, container)
        let enrolled = try await due.complete(try await due.body(old, by: "payments"), old, new)
        #expect(try await new.code("renew/confirm", container.did, ConfirmBody(echo: enrolled.echo)) == nil)
        let shown = try await world.provider.invites.make(world.ana, user: nil, did: container.did.text)
        let third = try TestDevice(world)
        let reset = try await LowRenewal(new, third, container, code: InviteCode(typed: shown.code.reveal()))
        let again = try await reset.complete(try await reset.body(new), new, third)
        #expect(try await third.code("renew/confirm", container.did, ConfirmBody(echo: again.echo)) == nil)
        let digits = reset.content.transcript(identity: try await third.trust().identity.thumbprint).digits
        _ = try await world.provider.invites.enter(digits: digits, world.ana, pid: shown.pid)
        #expect(try await third.code("update", container.did, UpdateBody(name: "phone")) == nil)
        #expect(try await third.code("delete", container.did, DeleteBody(reason: "sold")) == nil)
        let steps = ["renewal", "renewal commit", "renewal complete"]
        #expect(
            try await Self.lines(world, .signingContainer) == steps + ["renewed"] + steps
                + ["reset", "updated", "revoked"])
        #expect(try await Self.belong(world, .signingContainer, container))
        let last = try #require(try await Self.records(world, .signingContainer).last)
        #expect(last.detail["by"]?.string == "device" && last.detail["why"]?.string == "sold")
    }

    @Test("Claiming, refusing and limits are noted, with the client or the container")
    func transactions() async throws {
        let world = try await SigningWorld { $0.limits.openOfClient = 2 }
        let (device, container) = try await world.enrolled()
        var wish = world.wish("numbered")
        (wish.user, wish.origin) = (nil, DocumentOrigin(place: "Vienna", address: "192.0.2.7"))
        let made = try await world.provider.parties.create(wish)
        let claim = ClaimBody(ticket: try await world.provider.parties.ticket(of: made))
        #expect(try await device.code("transactions/claim", container.did, claim) == nil)
        let (txn, _) = try await world.asked()
        #expect(try await refusal { _ = try await world.asked() } == "rate_limited")
        try await world.provider.parties.cancel(txn.text, client: "shop")
        #expect(try await Self.lines(world, .signingCreate) == ["claim", "", "refused rate_limited"])
        #expect(
            try await world.audited(.signingCreate, "client").map { String($0.suffix(4)) } == ["shop", "shop", "shop"])
        #expect(try await Self.lines(world, .signingFetch) == ["claimed"])
        #expect(try await Self.belong(world, .signingFetch, container))
        let canceled = try await Self.records(world, .signingCancel)
        #expect(canceled.map(\.transactionID) == [txn.text] && canceled.first?.detail["client"] == "shop")
        let approving = try await device.signed(device.blind(made.txn, container), label: "payments")
        let refused = try await refusal { _ = try await device.decide(approving, container) }
        #expect(refused == "status_not_allowed")
        let decided = try await Self.records(world, .signingDecide)
        #expect(decided.map(\.reason) == ["status_not_allowed"] && decided.map(\.outcome) == [.refused])
        #expect(decided.first?.transactionID == made.txn.text)
    }

    @Test("A copied store is noted with what gave it away, and a server that went back with the number that it lost")
    func alarms() async throws {
        let fixture = try await SigningStoreFixture()
        for (copy, why) in [(("b", "x"), "fork"), (("a", "b"), "stale")] as [((SigningHash, SigningHash), String)] {
            let container = try await fixture.withSlot()
            _ = try await fixture.unlock(container, fixture.attempt(container, r: "a", next: "b"))
            _ = try await fixture.unlock(container, fixture.attempt(container, r: "b", next: "c"))
            let late = fixture.attempt(container, r: copy.0, next: copy.1, nonceMadeAt: fixture.now + 61)
            #expect(try await fixture.refusal(container, late) == .containerSuspect)
            let notes = try await fixture.base.database.run(
                .read("SELECT detail FROM audit WHERE event = 'signing.container' ORDER BY position DESC LIMIT 1"))
            let detail = try JSONValue.parse(try #require(notes.first).text("detail"))
            #expect(detail["step"] == "suspect" && detail["why"]?.string == why)
            #expect(detail["did"]?.string == container.did.text)
        }
        let container = try await fixture.withSlot()
        for _ in 0..<2 {
            #expect(
                try await fixture.refusal(container, fixture.attempt(container, last: 9)) == .serverRolledBack)
        }
        let notes = try await fixture.base.database.run(
            .read("SELECT detail FROM audit WHERE reason = 'server_rolled_back'"))
        // One, however often the device asks.
        #expect(try notes.map { try JSONValue.parse($0.text("detail"))["n"]?.string } == ["9"])
    }
}
