import AssentCore
import AssentStore
import AssentTesting
import Foundation
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("What belonged to a key before the column said that it is a key")
struct SenderMigrationTests {
    private static let tables = ["oauth_codes", "grants", "sessions", "transactions"]

    @Test("Each row belongs to the same key after the migration, and one without a key still to none")
    func older() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "assent-senders-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let steps = Schema.current.steps
        let older = try #require(steps.firstIndex { $0.name == "senders" })
        let clock = ManualClock()
        let place = try await TestDatabase.location(directory.appending(path: "assent.sqlite").path, isEmpty: true)
        let old = try await place.open(schema: Schema(Array(steps[..<older])), clock: clock)
        let token = Secret("an-older-token")
        _ = try await old.run(
            [
                SQLStatement(
                    """
                    INSERT INTO users (id, realm, username, active, roles, attributes, created_at)
                    VALUES ('u', '/alpha', 'ana', 1, '', '{}', 0)
                    """)
            ] + Self.rows(["bound": "a-key", "unbound": nil], session: TokenHash.of(token), at: clock.epochSeconds))
        try await old.close()

        let new = try await place.open(clock: clock)
        for table in Self.tables {
            let rows = try await new.run(
                .read("SELECT sender FROM \(SQL(verbatim: table)) ORDER BY CASE WHEN sender IS NULL THEN 1 ELSE 0 END"))
            #expect(try rows.map { try $0.sender() } == [.key(thumbprint: "a-key"), nil], "\(table)")
            #expect(try rows.first?.text("sender") == "jkt:a-key", "\(table)")
        }
        let live = try await Sessions(try TransactionFixture.context(new, clock: clock)).live(token: token)
        #expect(live?.sender == .key(thumbprint: "a-key"))
        try await new.close()
    }

    /// A row of each table for each name, which belongs to the key of that name.
    private static func rows(_ keys: [String: String?], session: String, at now: Int64) -> [SQLStatement] {
        keys.flatMap { name, key in
            [
                SQLStatement(
                    """
                    INSERT INTO sessions (id, audit_id, user_id, realm, auth_level, created_at, latest_access,
                        max_idle, expires_at, properties, key_thumbprint)
                    VALUES (\(key == nil ? name : session), \(name), 'u', '/alpha', 0, \(now), \(now), 1800,
                        \(now + 7200), '{}', \(key))
                    """),
                SQLStatement(
                    """
                    INSERT INTO grants (id, realm, client_id, scope, key_thumbprint, is_offline, created_at, expires_at)
                    VALUES (\(name), '/alpha', 'app', 'openid', \(key), 0, \(now), \(now + 60))
                    """),
                SQLStatement(
                    """
                    INSERT INTO oauth_codes
                        (id, grant_id, client_id, redirect_uri, code_challenge, key_thumbprint, expires_at)
                    VALUES (\(name), \(name), 'app', '', '', \(key), \(now + 60))
                    """),
                SQLStatement(
                    """
                    INSERT INTO transactions (id, kind, state, realm, policy_set, policy, policy_revision, strategy,
                        specifier, url, resource, user_id, session_id, session_audit_id, key_thumbprint, display,
                        created_at, expires_at)
                    VALUES (\(name), 'gateway', 'CREATED', '/alpha', 's', 'p', 'r', 'x', 'y', 'u', 'u', 'u', 's', 'a',
                        \(key), '[]', \(now), \(now + 60))
                    """),
            ]
        }
    }
}
