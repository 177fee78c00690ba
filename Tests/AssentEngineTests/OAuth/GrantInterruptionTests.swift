import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

/// What another node does between the moment in which a code or a token was read and the one in which it is spent. The
/// statement that spends has to look again.
@Suite("What changes between the look at a code or a refresh token and its use")
struct GrantInterruptionTests {
    /// A provider of a node before whose spending statement the others do something.
    private static func node(
        _ fixture: ProviderFixture, before mark: String, _ change: String
    ) throws -> (OAuthProvider, InterruptedDatabase) {
        let database = InterruptedDatabase(fixture.database) { statement in
            let text = statement.sql.text()
            guard text.contains(mark), text.contains("SET used_at") else { return false }
            _ = try await fixture.database.run(SQLStatement(SQL(verbatim: change)))
            return true
        }
        let context = fixture.context.anotherNode(on: database)
        let provider = try OAuthProvider(
            context, keys: ServerKeys(context), configuration: fixture.grants.configuration)
        return (provider, database)
    }

    private static let ends = [
        "DELETE FROM sessions", "UPDATE sessions SET expires_at = 0", "UPDATE sessions SET latest_access = 0",
        "UPDATE users SET active = 0", "UPDATE users SET epoch = epoch + 1",
        "UPDATE grants SET revoked_at = 1, revoked_because = 'test'", "UPDATE grants SET sender = 'jkt:another'",
        "DELETE FROM grants",
    ]

    @Test(
        "A code whose session, user, grant or binding has changed is not spent, and gives nothing",
        arguments: ends + [
            "UPDATE oauth_codes SET client_id = 'other-app'",
            "UPDATE oauth_codes SET redirect_uri = 'https://a.example/'",
            "UPDATE oauth_codes SET code_challenge = 'another'", "UPDATE oauth_codes SET expires_at = 0",
            "UPDATE oauth_codes SET sender = 'jkt:another'",
            "UPDATE sessions SET user_id = (SELECT id FROM users WHERE username = 'bob')",
        ])
    func code(change: String) async throws {
        let fixture = try await ProviderFixture()
        _ = try #require(await Users(fixture.context).create(username: "bob", realm: "/alpha", passwordHash: nil))
        let code = try await fixture.code()
        let (node, database) = try Self.node(fixture, before: "oauth_codes", change)
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.exchange(code, on: node) }
        #expect(database.wasInterrupted)
        #expect(try await fixture.count("refresh_tokens") == 0)
        #expect(try await fixture.count("oauth_codes", where: "used_at IS NOT NULL") == 0)
        #expect(try await fixture.audit(.oauthCode).isEmpty, "nothing was spent, so nothing was spent twice")
    }

    @Test(
        "A refresh token whose session, user, grant or client has changed is not spent, and gives nothing",
        arguments: ends + [
            "UPDATE refresh_tokens SET client_id = 'other-app'", "UPDATE refresh_tokens SET expires_at = 0",
            "UPDATE sessions SET user_id = (SELECT id FROM users WHERE username = 'bob')",
        ])
    func refresh(change: String) async throws {
        let fixture = try await ProviderFixture()
        _ = try #require(await Users(fixture.context).create(username: "bob", realm: "/alpha", passwordHash: nil))
        let first = try await fixture.tokens()
        let (node, database) = try Self.node(fixture, before: "refresh_tokens", change)
        await #expect(throws: OAuthError.invalidGrant) {
            try await fixture.refresh(first.refreshToken, attempt: RefreshTests.attempt, on: node)
        }
        #expect(database.wasInterrupted)
        #expect(try await fixture.count("refresh_tokens", where: "used_at IS NOT NULL") == 0)
        #expect(try await fixture.count("refresh_tokens") <= 1)
        #expect(try await fixture.audit(.oauthRefresh).isEmpty)
    }

    @Test(
        "A grant with offline_access is refreshed although its session ends meanwhile, and not once its user is locked")
    func offline() async throws {
        for (change, isGood) in [("DELETE FROM sessions", true), ("UPDATE users SET active = 0", false)] {
            let fixture = try await ProviderFixture()
            let first = try await fixture.tokens(["scope": "openid offline_access"])
            let (node, _) = try Self.node(fixture, before: "refresh_tokens", change)
            let reply = try? await fixture.refresh(first.refreshToken, on: node)
            #expect((reply != nil) == isGood)
            #expect(try await fixture.count("refresh_tokens") == (isGood ? 2 : 1))
        }
    }

    @Test("A code that another node spends meanwhile was used twice, and its grant ends")
    func spentMeanwhile() async throws {
        let fixture = try await ProviderFixture()
        let code = try await fixture.code()
        let (node, _) = try Self.node(fixture, before: "oauth_codes", "UPDATE oauth_codes SET used_at = 1")
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.exchange(code, on: node) }
        #expect(try await fixture.count("grants", where: "revoked_because = 'code_reuse'") == 1)
        #expect(try await fixture.audit(.oauthCode).map(\.reason) == ["code_reuse"])
    }
}
