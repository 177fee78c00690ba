import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("What housekeeping of transaction signing deletes, and when")
struct SigningHousekeepingTests {
    private static func count(_ fixture: SigningStoreFixture, _ what: SQL) async throws -> Int64 {
        let rows = try await fixture.base.database.run(.read("SELECT count(*) AS n FROM \(what)"))
        return try #require(rows.first).integer("n")
    }

    @Test("An invite that made no device goes a day after its end; the one by which a device was let in stays")
    func invites() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.active()
        let unused = try await fixture.invited()
        fixture.base.clock.advance(by: Double(unused.expiresAt + 86400 - fixture.now) - 1)
        try await SigningHousekeeping.purge(fixture.base.context)
        #expect(try await fixture.invites.find(unused.pid) != nil)
        fixture.base.clock.advance(by: 1)
        try await SigningHousekeeping.purge(fixture.base.context)
        #expect(try await fixture.invites.find(unused.pid) == nil)
        #expect(try await fixture.invites.find(container.pid) != nil)
    }

    @Test("The bytes of a confirmed evaluation go after a day; that it was used stays, so that it is not used again")
    func evaluations() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.withSlot(expiresIn: 1 << 20)
        _ = try await fixture.unlock(container)
        try await fixture.slots.confirm(fixture.confirmed(container, 1), of: container)
        func kept() async throws -> Int64 { try await Self.count(fixture, "signing_confirms WHERE eval IS NOT NULL") }
        fixture.base.clock.advance(by: 86399)
        try await SigningHousekeeping.purge(fixture.base.context)
        #expect(try await kept() == 1)
        fixture.base.clock.advance(by: 1)
        try await SigningHousekeeping.purge(fixture.base.context)
        #expect(try await kept() == 0)
        _ = try await fixture.unlock(container)
        // Its number is known, and gives back nothing again.
        try await fixture.slots.confirm(fixture.confirmed(container, 1), of: container)
        #expect(try await fixture.slot(container).unconfirmed == 1)
        #expect(try await Self.count(fixture, "signing_confirms") == 1)
    }

    @Test("A renewal ends ten minutes after its offer, its keys go with it, and its row a day later")
    func renewals() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.active()
        let pid = fixture.id()
        let renewal = SigningRenewalRecord(
            pid: pid, did: container.did, invite: nil, commitMode: .exchange, offer: "offer",
            expiresAt: fixture.now + 900)
        #expect(
            try await fixture.enrolments.start(
                renewal, isAgain: false, user: fixture.user, proof: fixture.proof(container.did), at: fixture.now))
        _ = try await fixture.base.database.run(
            SQLStatement("UPDATE signing_keys SET state = 'PENDING' WHERE usage = 'sign'", expecting: .exactly(1)))
        _ = try await fixture.base.database.run(SQLStatement("UPDATE signing_renewals SET state = 'COMPLETED'"))
        func purge(after seconds: Double) async throws -> (state: String?, keys: Int64) {
            fixture.base.clock.advance(by: seconds)
            try await SigningHousekeeping.purge(fixture.base.context)
            let rows = try await fixture.base.database.run(.read("SELECT state FROM signing_renewals"))
            return (try rows.first?.text("state"), try await Self.count(fixture, "signing_keys"))
        }
        #expect(try await purge(after: 1499) == ("COMPLETED", 3))
        #expect(try await purge(after: 1) == ("VOID", 2))
        #expect(try await purge(after: 86400 - 601) == ("VOID", 2))
        #expect(try await purge(after: 1) == (nil, 2))
    }

    @Test("What a device was not told in ninety days is forgotten")
    func notices() async throws {
        let fixture = try await SigningStoreFixture()
        let listener = try await fixture.active()
        _ = try await fixture.active()
        #expect(try await fixture.notices.waiting(for: listener.did).map(\.event) == [.enrolled])
        fixture.base.clock.advance(by: 90 * 86400 - 1)
        try await SigningHousekeeping.purge(fixture.base.context)
        #expect(try await fixture.notices.waiting(for: listener.did).count == 1)
        fixture.base.clock.advance(by: 1)
        try await SigningHousekeeping.purge(fixture.base.context)
        #expect(try await fixture.notices.waiting(for: listener.did).isEmpty)
    }

    @Test("A device hears what has happened in one second in the order in which it happened")
    func order() async throws {
        let fixture = try await SigningStoreFixture()
        let listener = try await fixture.active()
        let other = try await fixture.active()
        let events: [DeviceEvent] = [.suspect, .reset, .suspect, .removed, .reset, .suspect, .reset, .removed]
        for event in events {
            _ = try await fixture.base.database.run(
                SQLStatement(fixture.notices.telling(event, about: other.did, at: fixture.now)))
        }
        let heard = try await fixture.notices.waiting(for: listener.did).map(\.event)
        #expect(heard.first == .enrolled && Array(heard.dropFirst()) == events)
    }

    @Test("A device that was never confirmed ends, with one record of it")
    func overdue() async throws {
        let fixture = try await SigningStoreFixture()
        let container = try await fixture.completed()
        fixture.base.clock.advance(by: 1499)
        try await SigningHousekeeping.purge(fixture.base.context)
        #expect(try await fixture.state(container) == .unconfirmed)
        fixture.base.clock.advance(by: 1)
        for _ in 0..<2 { try await SigningHousekeeping.purge(fixture.base.context) }
        #expect(try await fixture.state(container) == .void)
        let notes = try await fixture.base.database.run(
            .read("SELECT outcome, reason, user_id, detail FROM audit WHERE outcome = 'failed'"))
        #expect(notes.count == 1)
        let note = try #require(notes.first)
        #expect(try note.text("reason") == "enrolment_void" && note.text("user_id") == fixture.user)
        #expect(try JSONValue.parse(note.text("detail"))["did"]?.string == container.did.text)
    }
}
