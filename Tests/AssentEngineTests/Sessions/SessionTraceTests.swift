import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Sessions that end, and those that must not begin")
struct SessionTraceTests {
    @Test("The end of a session and its record are one: whoever comes second leaves none")
    func recorded() async throws {
        let fixture = try await ProviderFixture()
        let sessions = Sessions(fixture.context)
        let record = AuditRecord(
            .sessionEnd, .success, reason: "test", realm: "/alpha", userID: fixture.user.id,
            sessionAuditID: fixture.session.auditID)
        #expect(try await sessions.end(id: fixture.session.id, recording: record))
        #expect(try await !sessions.end(id: fixture.session.id, recording: record))
        #expect(try await !sessions.end(id: "unknown", recording: record))
        #expect(try await fixture.audit(.sessionEnd).map(\.reason) == ["test"])
    }

    @Test("A session does not begin for a user whose sessions were all ended since they proved who they are")
    func outdated() async throws {
        let fixture = try await ProviderFixture()
        let sessions = Sessions(fixture.context)
        func prepare(_ epoch: Int64?, userID: String? = nil) -> PreparedSession {
            sessions.prepare(
                userID: userID ?? fixture.user.id, epoch: epoch, realm: "/alpha", authLevel: 0,
                limits: SessionLimits(), properties: JSONObject())
        }
        let epoch = fixture.user.epoch
        for session in [prepare(epoch - 1), prepare(epoch + 1), prepare(nil), prepare(epoch, userID: "nobody")] {
            await #expect(throws: StoreError(.unexpectedCount, "")) {
                try await fixture.database.run([session.statement])
            }
            #expect(try await sessions.live(token: session.token) == nil)
        }
        let good = prepare(epoch)
        _ = try await fixture.database.run([good.statement])
        #expect(try await sessions.live(token: good.token) != nil)
        _ = try await fixture.database.run(
            SQLStatement("UPDATE users SET epoch = epoch + 1 WHERE id = \(fixture.user.id)"))
        #expect(try await sessions.live(token: good.token) == nil)
        #expect(try await sessions.live(id: good.id) == nil)
    }

    @Test("A session ends at the earlier of the end of its idle time and of its maximum")
    func idleEnd() async throws {
        let fixture = try await ProviderFixture(limits: SessionLimits(maxSession: 1000, maxIdle: 1800))
        #expect(fixture.session.idleExpiresAt == fixture.clock.epochSeconds + 1000)
        let usual = try await ProviderFixture(limits: SessionLimits())
        #expect(usual.session.expiresAt == usual.clock.epochSeconds + 7200)
        #expect(usual.session.idleExpiresAt == usual.clock.epochSeconds + 1800)
    }

    @Test("What is purged is expired or idle, and nothing else")
    func purge() async throws {
        let fixture = try await ProviderFixture(limits: SessionLimits(maxSession: 86_400, maxIdle: 86_400))
        let sessions = Sessions(fixture.context)
        func begin(_ maxSession: Int64, _ maxIdle: Int64) async throws -> Secret {
            try await sessions.begin(
                userID: fixture.user.id, realm: "/alpha",
                limits: SessionLimits(maxSession: maxSession, maxIdle: maxIdle)
            ).token
        }
        let expired = try await begin(100, 1000)
        let idle = try await begin(1000, 100)
        let alive = try await begin(101, 101)
        fixture.clock.advance(by: 100)
        #expect(try await sessions.purge() == 2)
        for token in [expired, idle] { #expect(try await sessions.live(token: token) == nil) }
        for token in [alive, fixture.sessionToken] { #expect(try await sessions.live(token: token) != nil) }
        fixture.clock.advance(by: 1)
        #expect(try await sessions.live(token: alive) == nil)
        #expect(try await sessions.purge() == 1)
    }
}
