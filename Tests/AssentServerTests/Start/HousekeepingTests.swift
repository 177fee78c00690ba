import AssentCore
import AssentStore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Housekeeping")
struct HousekeepingTests {
    private static let tables = [
        "attempts", "grants", "journey_steps", "oauth_codes", "refresh_tokens", "revoked_access_tokens", "sessions",
        "transactions",
    ]

    /// Moves the clock and waits until the round that this begins has ended.
    private func pass(_ seconds: TimeInterval, _ fixture: ServerFixture) async {
        while fixture.clock.sleeperCount == 0 { await Task.yield() }
        fixture.clock.advance(by: seconds)
        // A round has begun, or does not, by the time at which it sleeps again.
        while fixture.clock.sleeperCount == 0 { await Task.yield() }
        while fixture.server.isCleaning.withLock({ $0 }) { await Task.yield() }
    }

    private func counts(_ fixture: ServerFixture) async throws -> [String: Int64] {
        var counts: [String: Int64] = [:]
        for table in Self.tables { counts[table] = try await fixture.count(table) }
        return counts
    }

    @Test("A clock that is set back by a day keeps nobody from cleaning up in the next minutes")
    func setBack() async throws {
        try await ServerFixture.run { fixture in
            _ = try await fixture.server.context.database.run(
                SQLStatement("INSERT INTO attempts (counter, window_start, count) VALUES ('old', 0, 1)"))
            let old: SQL = "SELECT counter FROM attempts WHERE counter = 'old'"
            while fixture.clock.sleeperCount == 0 { await Task.yield() }
            fixture.clock.put(by: -86_400)
            // It wakes, looks anew when to clean up, and does.
            await pass(300, fixture)
            await pass(300, fixture)
            #expect(try await fixture.rows(old).isEmpty)
        }
    }

    @Test("A running server deletes what has expired, every five minutes and nothing earlier; audit records stay")
    func wiring() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.signIn()
            let tokens = try await fixture.tokens(session: session)
            let form = [("Content-Type", "application/x-www-form-urlencoded")]
            let revoke = ServerFixture.query([("token", tokens.access), ("client_id", "bank-app")])
            #expect(try await fixture.send("POST", fixture.oauth("token/revoke"), form, text: revoke).status == 200)
            let advised = try await fixture.send(
                "POST", fixture.gateway("/nods"), ServerFixture.jsonFields + ServerFixture.session(session),
                text: FixtureBody.transfer)
            #expect(advised.status == 401)
            _ = try await fixture.server.context.database.run(
                SQLStatement("UPDATE users SET roles = 'admin' WHERE username = 'ana'"))
            let rotated = try await fixture.send(
                "POST", fixture.json("administration?_action=rotateKeys"),
                ServerFixture.session(session) + [("Content-Type", "application/json")], text: "{}")
            #expect(rotated.status == 200)
            let keys = try await fixture.count("server_keys")
            let retired = try await fixture.rows("SELECT kid FROM server_keys WHERE retired_at IS NOT NULL").count
            #expect(retired == 2)
            let before = try await counts(fixture)
            for (table, count) in before { #expect(count > 0, "\(table)") }
            let replies: SQL = "SELECT id FROM journey_steps WHERE length(sealed_reply) > 0"
            #expect(try await !fixture.rows(replies).isEmpty)

            // Only the replies' half minute is over.
            await pass(299, fixture)
            #expect(try await !fixture.rows(replies).isEmpty)
            await pass(1, fixture)
            #expect(try await fixture.rows(replies).isEmpty)
            for table in ["grants", "refresh_tokens", "sessions", "transactions", "attempts"] {
                #expect(try await fixture.count(table) == before[table], "\(table)")
            }
            #expect(try await fixture.count("server_keys") == keys)

            let audit = try await fixture.count("audit")
            await pass(400 * 86_400, fixture)
            for (table, count) in try await counts(fixture) { #expect(count == 0, "\(table)") }
            #expect(try await fixture.count("server_keys") == keys - Int64(retired))
            #expect(try await fixture.count("audit") == audit && audit > 0)
        }
    }
}
