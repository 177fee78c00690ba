import AssentCore
import AssentStore
import AssentTesting
import Foundation
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("Sessions that are older than their keys")
struct SessionKeyMigrationTests {
    @Test("A session of an earlier version belongs to no key after the migration, and a new one may")
    func older() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "assent-keys-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let steps = Schema.current.steps
        let older = try #require(steps.firstIndex { $0.name == "session keys" })
        let clock = ManualClock()
        let place = try await TestDatabase.location(directory.appending(path: "assent.sqlite").path, isEmpty: true)
        let old = try await place.open(schema: Schema(Array(steps[..<older])), clock: clock)
        let token = Secret("an-older-token")
        let (id, now) = (TokenHash.of(token), clock.epochSeconds)
        _ = try await old.run([
            SQLStatement(
                """
                INSERT INTO users (id, realm, username, active, roles, attributes, created_at)
                VALUES ('u', '/alpha', 'ana', 1, '', '{}', \(now))
                """),
            SQLStatement(
                """
                INSERT INTO sessions
                    (id, audit_id, user_id, realm, auth_level, created_at, latest_access, max_idle, expires_at,
                    properties)
                VALUES (\(id), 'a', 'u', '/alpha', 0, \(now), \(now), 1800, \(now + 7200), '{}')
                """),
        ])
        try await old.close()
        let new = try await place.open(clock: clock)
        let sessions = Sessions(try TransactionFixture.context(new, clock: clock))
        let found = try #require(try await sessions.live(token: token))
        #expect(found.sender == nil)
        let bound = try await sessions.begin(
            userID: "u", realm: "/alpha", limits: SessionLimits(), sender: .key(thumbprint: "a-key")
        ).token
        #expect(try await sessions.live(token: bound)?.sender == .key(thumbprint: "a-key"))
        try await new.close()
    }
}
