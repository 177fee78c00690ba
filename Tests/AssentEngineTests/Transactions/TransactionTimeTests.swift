import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("A transaction's time")
struct TransactionTimeTests {
    @Test("It is good to the last second of its time, and not one longer")
    func edge() async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved()
        let late = try await fixture.approved()
        fixture.clock.advance(by: 179)
        #expect(try await fixture.transactions.take(id: id, binding: try fixture.binding()).isTaken)
        fixture.clock.advance(by: 1)
        #expect(try await fixture.transactions.take(id: late, binding: try fixture.binding()).refusal == .expired)
        #expect(try await fixture.audited(.transactionTake, late) == ["refused expired"])
    }

    @Test("What was once seen expired stays so when the clock is moved back")
    func movedBack() async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved()
        fixture.clock.advance(by: 181)
        #expect(try await fixture.transactions.take(id: id, binding: try fixture.binding()).refusal == .expired)
        fixture.clock.advance(by: -100)
        #expect(try await fixture.transactions.take(id: id, binding: try fixture.binding()).refusal == .expired)
        #expect(try await fixture.state(id) == "EXPIRED")
    }

    @Test(
        "A clock that shows a time well before the transaction's making grants nothing",
        arguments: [(-59.0, true), (-61, false), (-86_400, false)])
    func beforeMaking(seconds: Double, granted: Bool) async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved()
        fixture.clock.advance(by: seconds)
        let result = try await fixture.transactions.take(id: id, binding: try fixture.binding())
        #expect(result.isTaken == granted)
        if !granted { #expect(result.refusal == .clock) }
    }

    @Test(
        "A session that ends between approval and use takes the approval with it",
        arguments: ["logout", "inactive", "idle"])
    func endedSession(how: String) async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.transactions.create(
            binding: try fixture.binding(), url: "https://api.bank.example:443/transfers", display: [],
            ttl: 3600
        ).id
        try await fixture.approve(id)
        switch how {
        case "logout": _ = try await Sessions(fixture.context).end(id: fixture.ana.id)
        case "inactive": try await Users(fixture.context).setActive(false, userID: fixture.ana.user.id)
        default: fixture.clock.advance(by: 30 * 60)
        }
        #expect(try await fixture.transactions.take(id: id, binding: try fixture.binding()).refusal == .sessionEnded)
        #expect(try await fixture.audited(.transactionTake, id) == ["refused sessionEnded"])
        #expect(try await fixture.state(id) == "COMPLETED")
    }

    @Test(
        "A grant that ends between approval and use takes the approval with it, although its session goes on",
        arguments: ["revoked", "outdated", "deleted"])
    func endedGrant(how: String) async throws {
        let fixture = try await TransactionFixture()
        try await fixture.giveGrant("g1")
        let binding = try fixture.binding(grantID: "g1")
        let before = try await fixture.approved(binding)
        let late = try await fixture.approved(binding)
        #expect(try await fixture.transactions.take(id: before, binding: binding).isTaken)
        let end: SQL =
            switch how {
            case "revoked": "UPDATE grants SET revoked_at = 1 WHERE id = 'g1'"
            case "outdated": "UPDATE grants SET epoch = epoch - 1 WHERE id = 'g1'"
            default: "DELETE FROM grants WHERE id = 'g1'"
            }
        _ = try await fixture.database.run(SQLStatement(end, expecting: .exactly(1)))
        #expect(try await fixture.transactions.take(id: late, binding: binding).refusal == .sessionEnded)
        #expect(try await fixture.audited(.transactionTake, late) == ["refused sessionEnded"])
        #expect(try await fixture.state(late) == "COMPLETED")
        // The control: the session itself.
        let ofSession = try await fixture.approved()
        #expect(try await fixture.transactions.take(id: ofSession, binding: try fixture.binding()).isTaken)
    }

    @Test("What is long past is deleted, and what was taken is known for a day")
    func purge() async throws {
        let fixture = try await TransactionFixture()
        let unused = try await fixture.approved()
        let taken = try await fixture.approved()
        _ = try await fixture.transactions.take(id: taken, binding: try fixture.binding())
        fixture.clock.advance(by: 180 + 599)
        #expect(try await fixture.transactions.purge() == 0)
        fixture.clock.advance(by: 1)
        #expect(try await fixture.transactions.purge() == 1)
        #expect(try await fixture.state(unused) == nil)
        fixture.clock.advance(by: 23 * 3600)
        #expect(try await fixture.transactions.purge() == 0)
        guard case .alreadyTaken = try await fixture.transactions.take(id: taken, binding: try fixture.binding()) else {
            Issue.record("what is left of a taken transaction must answer well past its time")
            return
        }
        fixture.clock.advance(by: 3600)
        #expect(try await fixture.transactions.purge() == 1)
    }

    @Test("10,000 that were abandoned are deleted in one go, and what is still good stays")
    func abandoned() async throws {
        let fixture = try await TransactionFixture()
        let model = try await fixture.approved()
        _ = try await fixture.database.run(
            SQLStatement(
                """
                INSERT INTO transactions (id, kind, state, realm, policy_set, policy, policy_revision, strategy,
                    specifier, url, resource, user_id, session_id, session_audit_id, display, created_at, expires_at)
                WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10000)
                SELECT 'abandoned-' || n, kind, CASE WHEN n < 5000 THEN 'CREATED' ELSE state END, realm, policy_set,
                    policy, policy_revision, strategy, specifier, url, resource, user_id, session_id,
                    session_audit_id, display, created_at, expires_at
                FROM transactions, numbers WHERE id = \(model)
                """))
        fixture.clock.advance(by: 180 + 600)
        let good = try await fixture.approved()
        #expect(try await fixture.transactions.purge() == 10_001)
        #expect(try await fixture.transactions.purge() == 0)
        #expect(try await fixture.transactions.take(id: good, binding: try fixture.binding()).isTaken)
    }
}
