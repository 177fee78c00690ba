import AssentCore
import AssentStore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine

@Suite("Grants that are over by the clock of the node that deletes them")
struct GrantPurgeTests {
    private static let lifetime: TimeInterval = 7 * 24 * 3600

    private let fixture: ProviderFixture
    /// Was used for ``next``.
    private let used: IssuedTokens
    private let next: IssuedTokens
    /// A node by whose clock the grant is not over yet.
    private let slow: OAuthProvider

    init() async throws {
        fixture = try await ProviderFixture()
        used = try await fixture.tokens()
        next = try await fixture.refresh(used.refreshToken)
        fixture.clock.advance(by: Self.lifetime)
        slow = try Self.node(of: fixture, on: fixture.database, behind: 59)
    }

    private static func node(
        of fixture: ProviderFixture, on database: any SQLDatabase, behind seconds: TimeInterval = 0
    ) throws -> OAuthProvider {
        let context = EngineContext(
            database: database, clock: ManualClock(fixture.clock.now.addingTimeInterval(-seconds)),
            random: SystemRandom(), masterKey: fixture.context.masterKey, logger: fixture.context.logger)
        return try OAuthProvider(context, keys: ServerKeys(context), configuration: fixture.grants.configuration)
    }

    @Test("A grant of which something is deleted is not prolonged by a node whose clock is behind")
    func deleting() async throws {
        let database = InterruptedDatabase(fixture.database) { [fixture, next, slow] statement in
            guard statement.sql.text().hasPrefix("DELETE FROM refresh_tokens ") else { return false }
            await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(next.refreshToken, on: slow) }
            return true
        }
        let node = try Self.node(of: fixture, on: database)
        #expect(try await node.purge() == 1)
        #expect(database.wasInterrupted)
        for table in ["grants", "refresh_tokens"] { #expect(try await fixture.count(table) == 0) }
    }

    @Test("A grant that is prolonged just before it ends keeps its used tokens: a second use still ends it")
    func prolonged() async throws {
        let database = InterruptedDatabase(fixture.database) { [fixture, next, slow] statement in
            guard statement.sql.text().hasPrefix("UPDATE grants ") else { return false }
            _ = try await fixture.refresh(next.refreshToken, on: slow)
            return true
        }
        let node = try Self.node(of: fixture, on: database)
        #expect(try await node.purge() == 0)
        #expect(database.wasInterrupted)
        #expect(try await fixture.count("refresh_tokens", where: "used_at IS NOT NULL") == 2)
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(used.refreshToken, on: slow) }
        #expect(try await fixture.count("grants", where: "revoked_because = 'refresh_reuse'") == 1)
    }
}
