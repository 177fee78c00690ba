import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

/// Sessions that differ from the right one in one thing alone: a statement that looks at anything less is found out.
@Suite("A transaction is its user's, in its session, and nobody else's")
struct TransactionOwnerTests {
    /// Ana's session with another user, or another audit id, than the store has.
    private static func forged(_ session: LiveSession, user: User? = nil, auditID: String? = nil) -> LiveSession {
        LiveSession(
            id: session.id, auditID: auditID ?? session.auditID, user: user ?? session.user, realm: session.realm,
            authLevel: session.authLevel, createdAt: session.createdAt, latestAccess: session.latestAccess,
            maxIdle: session.maxIdle, expiresAt: session.expiresAt, properties: session.properties)
    }

    /// Who comes: another user with the right session, and the right user with another session.
    private static func strangers(_ fixture: TransactionFixture) -> [LiveSession] {
        [forged(fixture.ana, user: fixture.ben.user), fixture.anaElsewhere]
    }

    @Test("Neither another user with the session nor the user in another session starts, checks, completes or declines")
    func steps() async throws {
        let fixture = try await TransactionFixture()
        let transactions = fixture.transactions
        let waiting = try await fixture.create().id
        let running = try await fixture.create().id
        let approval = try await transactions.start(id: running, session: fixture.ana)
        for stranger in Self.strangers(fixture) {
            await #expect(throws: EngineError.transactionUnreadable) {
                try await transactions.start(id: waiting, session: stranger)
            }
            await #expect(throws: EngineError.transactionUnreadable) {
                try await transactions.check(id: running, session: stranger)
            }
            await #expect(throws: StoreError(.unexpectedCount, "")) {
                try await fixture.database.run(transactions.completion(of: approval, session: stranger))
            }
            #expect(try await !transactions.decline(id: waiting, session: stranger))
            #expect(try await !transactions.decline(id: running, session: stranger))
        }
        #expect(try await fixture.state(waiting) == "CREATED")
        #expect(try await fixture.state(running) == "IN_PROGRESS")
        #expect(
            try await fixture.audited(.transactionStart, waiting).sorted() == ["refused session", "refused subject"])
        #expect(
            try await fixture.audited(.transactionCheck, running).sorted() == ["refused session", "refused subject"])
        #expect(try await fixture.audited(.transactionComplete, running).isEmpty)
        #expect(try await fixture.audited(.transactionDecline, running).isEmpty)
    }

    @Test("Neither of them takes what was approved, and neither gets to know what became of it")
    func take() async throws {
        let fixture = try await TransactionFixture()
        let transactions = fixture.transactions
        let id = try await fixture.approved()
        for (stranger, reason) in [
            (Self.forged(fixture.ana, user: fixture.ben.user), TransactionRefusal.subject),
            (Self.forged(fixture.ana, auditID: fixture.anaElsewhere.auditID), .session),
            (fixture.anaElsewhere, .session),
        ] {
            let result = try await transactions.take(id: id, binding: try fixture.binding(session: stranger))
            #expect(result.refusal == reason)
            #expect(try await fixture.state(id) == "COMPLETED")
        }
        for stranger in Self.strangers(fixture) {
            #expect(try await transactions.outcome(id: id, session: stranger) == nil)
            #expect(try await transactions.current(id: id, session: stranger) == nil)
        }
        #expect(try await transactions.take(id: id, binding: try fixture.binding()).isTaken)
    }

    @Test("A transaction is made for a session only as the store has it: user and audit id included")
    func create() async throws {
        let fixture = try await TransactionFixture()
        for session in [
            Self.forged(fixture.ana, user: fixture.ben.user),
            Self.forged(fixture.ana, auditID: fixture.anaElsewhere.auditID),
        ] {
            await #expect(throws: EngineError.sessionRequired) {
                try await fixture.create(try fixture.binding(session: session))
            }
        }
        #expect(try await fixture.database.run(.read("SELECT id FROM transactions")).isEmpty)
        #expect(try await AuditLog(fixture.context).newest(10).allSatisfy { $0.event != .transactionCreate })
    }

    @Test("A record is shown until the second in which its time is over")
    func current() async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.create().id
        fixture.clock.advance(by: 179)
        #expect(try await fixture.transactions.current(id: id, session: fixture.ana)?.id == id)
        fixture.clock.advance(by: 1)
        #expect(try await fixture.transactions.current(id: id, session: fixture.ana) == nil)
    }

    @Test("Each step that succeeds leaves one record, which says who did it and for which access")
    func records() async throws {
        let fixture = try await TransactionFixture()
        let log = AuditLog(fixture.context)
        let id = try await fixture.approved()
        #expect(try await fixture.transactions.take(id: id, binding: try fixture.binding()).isTaken)
        let records = try await log.records(transactionID: id)
        let events: [AuditEvent] = [.transactionCreate, .transactionStart, .transactionComplete, .transactionTake]
        #expect(records.count == events.count)
        for event in events {
            let found = records.filter { $0.event == event }
            #expect(found.count == 1 && found.first?.outcome == .success, "\(event)")
            #expect(found.first?.userID == fixture.ana.user.id && found.first?.realm == "/alpha", "\(event)")
            #expect(found.first?.sessionAuditID == fixture.ana.auditID, "\(event)")
            guard event == .transactionCreate || event == .transactionTake else { continue }
            #expect(
                found.first?.detail == [
                    "policySet": "bank", "policy": "transfers", "resource": "https://api.bank.example:443/transfers",
                ])
        }
        let declined = try await fixture.create().id
        #expect(try await fixture.transactions.decline(id: declined, session: fixture.ana))
        #expect(try await !fixture.transactions.decline(id: declined, session: fixture.ana))
        #expect(try await fixture.audited(.transactionDecline, declined) == ["success -"])
    }

    @Test("A session may have twenty transactions for a policy in a minute; others do not use that up")
    func usualLimit() async throws {
        let fixture = try await TransactionFixture()
        for _ in 0..<20 { _ = try await fixture.create() }
        await #expect(throws: EngineError(.tooManyRequests)) { try await fixture.create() }
        _ = try await fixture.create(try fixture.binding(session: fixture.anaElsewhere))
        _ = try await fixture.create(try fixture.binding(policy: try TransactionFixture.policy("others")))
        _ = try await fixture.create(try fixture.binding(set: try TransactionFixture.policySet(name: "shop")))
        fixture.clock.advance(by: 59)
        await #expect(throws: EngineError(.tooManyRequests)) { try await fixture.create() }
    }
}
