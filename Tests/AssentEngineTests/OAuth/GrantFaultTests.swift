import AssentCore
import AssentStore
import AssentTesting
import Foundation
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("When the database cannot serve")
struct GrantFaultTests {
    /// Leaves no room for another row: what a full disk looks like.
    private func fill(_ fixture: ProviderFixture) async throws {
        let pages = try await fixture.database.run(.read("PRAGMA page_count")).first?.integer("page_count") ?? 0
        try await fixture.database.limitSize(pages: Int(pages))
        let fillers: [@Sendable (String) -> SQL] = [
            { "INSERT INTO attempts (counter, window_start, count) VALUES (\($0), 0, 0)" },
            { "INSERT INTO audit (id, at, event, outcome, detail) VALUES (\($0), 0, 'filler', 'failed', '')" },
        ]
        for filler in fillers {
            for byteCount in [300, 32] {
                while (try? await fixture.database.run(
                    SQLStatement(filler(SystemRandom().token(byteCount: byteCount))))) != nil
                {}
            }
        }
    }

    private func state(_ fixture: ProviderFixture) async throws -> [Int64] {
        var counts: [Int64] = []
        for (table, condition) in [
            ("grants", "1 = 1"), ("grants", "revoked_at IS NULL"), ("oauth_codes", "used_at IS NULL"),
            ("refresh_tokens", "1 = 1"), ("refresh_tokens", "used_at IS NULL"), ("audit", "event LIKE 'oauth.%'"),
        ] { counts.append(try await fixture.count(table, where: condition)) }
        return counts
    }

    @Test(
        "A full database refuses every step as unavailable, changes nothing, and all goes on when there is room again",
        .enabled(if: !TestDatabase.isPostgreSQL, "it fills a SQLite file"))
    func full() async throws {
        let fixture = try await ProviderFixture()
        let code = try await fixture.code()
        let first = try await fixture.tokens()
        try await fill(fixture)
        let before = try await state(fixture)
        let steps: [@Sendable () async throws -> Void] = [
            { _ = try await fixture.code() }, { _ = try await fixture.exchange(code) },
            { _ = try await fixture.refresh(first.refreshToken, attempt: RefreshTests.attempt) },
            {
                try await fixture.grants.revoke(
                    try ProviderFixture.parameters([
                        "client_id": "bank-app", "token": try #require(first.refreshToken).reveal(),
                    ]))
            },
        ]
        for step in steps {
            let error = await #expect(throws: StoreError(.unavailable, "")) { try await step() }
            #expect(error.map { OAuthError(answering: $0) } == .unavailable)
        }
        #expect(try await state(fixture) == before)
        #expect(try await fixture.isLive(first))
        try await fixture.database.limitSize(pages: 1_000_000)
        _ = try await fixture.exchange(code)
        _ = try await fixture.refresh(first.refreshToken, attempt: RefreshTests.attempt)
    }

    @Test(
        "Reuse that cannot be noted is not answered as if all were well, and is noted when it comes again",
        .enabled(if: !TestDatabase.isPostgreSQL, "it fills a SQLite file"))
    func reuseWhileFull() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        let second = try await fixture.refresh(first.refreshToken)
        try await fill(fixture)
        await #expect(throws: StoreError(.unavailable, "")) { try await fixture.refresh(first.refreshToken) }
        try await fixture.database.limitSize(pages: 1_000_000)
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(first.refreshToken) }
        #expect(try await !fixture.isLive(second))
    }

    @Test("Without a database no token counts")
    func closed() async throws {
        let fixture = try await ProviderFixture()
        let reply = try await fixture.tokens()
        try await fixture.database.close()
        await #expect(throws: (any Error).self) { try await fixture.grants.access(token: reply.accessToken) }
    }

    @Test("A master key that changed fails a repeated refresh and hands out nothing")
    func otherMasterKey() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        _ = try await fixture.refresh(first.refreshToken, attempt: RefreshTests.attempt)
        let context = EngineContext(
            database: fixture.database, clock: fixture.clock, random: SystemRandom(),
            masterKey: try MasterKey(Secret(bytes: SystemRandom().bytes(32))), logger: fixture.context.logger)
        let other = try OAuthProvider(context, keys: fixture.grants.keys, configuration: fixture.grants.configuration)
        await #expect(throws: EngineError.self) {
            try await fixture.refresh(first.refreshToken, attempt: RefreshTests.attempt, on: other)
        }
    }
}
