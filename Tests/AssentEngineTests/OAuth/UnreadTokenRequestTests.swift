import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

/// On both databases: here each says that nodes share it. `RoundTripTests` counts round trips on PostgreSQL.
@Suite("Codes and refresh tokens that are spent without a look before")
struct UnreadTokenRequestTests {
    /// A database that says whether nodes share it, and counts what is run on it.
    private final class Shared: SQLDatabase {
        let isShared: Bool
        private let base: any SQLDatabase
        private let count = Locked(0)

        var runs: Int { count.withLock { $0 } }

        init(_ base: any SQLDatabase, _ isShared: Bool = true) {
            self.base = base
            self.isShared = isShared
        }

        func run(_ statement: SQLStatement) async throws -> [SQLRow] {
            count.withLock { $0 += 1 }
            return try await base.run(statement)
        }

        func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
            count.withLock { $0 += 1 }
            return try await base.run(statements)
        }

        func checkHealth() async throws { try await base.checkHealth() }
        func close() async throws { try await base.close() }
    }

    private static let redirect = "https://office.example/cb"
    private let key: AssertionKey

    init() throws { key = try AssertionKey() }

    private func fixture(
        grantTypes: Set<OAuthClient.GrantType> = Set(OAuthClient.GrantType.allCases), scopes: [String] = []
    ) async throws -> ProviderFixture {
        var client = AssertionKey.client([key])
        client.grantTypes = grantTypes
        client.scopes += scopes
        return try await ProviderFixture(clients: [client, ProviderFixture.bank])
    }

    // MARK: - Requests

    private func code(_ fixture: ProviderFixture) async throws -> String {
        try await fixture.code(["client_id": "office", "redirect_uri": Self.redirect])
    }

    private func exchange(
        _ code: String, _ changes: [String: String?] = [:], in fixture: ProviderFixture, on node: OAuthProvider
    ) async throws -> IssuedTokens {
        let assertion = try await key.assertion(now: fixture.clock)
        return try await node.tokens(
            try ProviderFixture.parameters(
                [
                    "grant_type": "authorization_code", "code": code, "redirect_uri": Self.redirect,
                    "code_verifier": ProviderFixture.verifier,
                ], AssertionKey.form(assertion, changes)))
    }

    private func refresh(
        _ token: Secret?, _ changes: [String: String?] = [:], attempt: String? = RefreshTests.attempt,
        in fixture: ProviderFixture, on node: OAuthProvider
    ) async throws -> IssuedTokens {
        let assertion = try await key.assertion(now: fixture.clock)
        return try await fixture.refresh(token, attempt: attempt, AssertionKey.form(assertion, changes), on: node)
    }

    // MARK: - What is left

    /// What a request leaves and is told, without what is random in it.
    private struct Outcome: Hashable {
        var refusal: String?
        var hasRefreshToken = false
        var scopes: [String] = []
        var nonce: String?
        var audit: [String] = []
        var counts: [Int64] = []
    }

    private func outcome(
        of fixture: ProviderFixture, _ request: () async throws -> IssuedTokens
    ) async throws -> Outcome {
        var outcome = Outcome()
        do {
            let tokens = try await request()
            outcome.hasRefreshToken = tokens.refreshToken != nil
            outcome.scopes = tokens.scopes
            if let idToken = tokens.idToken { outcome.nonce = try jwtClaims(idToken)["nonce"]?.string }
        } catch let error as OAuthError {
            outcome.refusal = error.code.rawValue
        }
        let grants = try await fixture.database.run(.read("SELECT id FROM grants"))
        let grant = try #require(grants.first).text("id")
        for record in try await fixture.audit(.oauthCode) + fixture.audit(.oauthRefresh) {
            let isRight =
                record.userID == fixture.user.id && record.sessionAuditID == fixture.session.auditID
                && record.realm == "/alpha" && record.detail["grant"]?.string == grant
            let (reason, client) = (record.reason ?? "-", record.detail["client"]?.string ?? "-")
            let count = record.detail.members.count
            outcome.audit.append("\(record.event.rawValue) \(record.outcome) \(reason) \(client) \(isRight) \(count)")
        }
        for (table, condition) in [
            ("oauth_codes", "used_at IS NULL"), ("refresh_tokens", "1 = 1"), ("refresh_tokens", "used_at IS NULL"),
            ("refresh_tokens", "sealed_successor IS NOT NULL"), ("grants", "revoked_at IS NOT NULL"),
            ("grants", "sender IS NOT NULL"), ("client_assertions", "1 = 1"),
            ("sessions", "latest_access >= \(fixture.clock.epochSeconds)"),
            ("grants", "expires_at > \(fixture.clock.epochSeconds + 3600)"),
        ] { outcome.counts.append(try await fixture.count(table, where: condition)) }
        return outcome
    }

    /// The outcome of a request after `changes`, at a node that looks before it spends, and at one that does not.
    private func outcomes(
        after changes: [String], isRefresh: Bool, form: [String: String?] = [:],
        grantTypes: Set<OAuthClient.GrantType> = Set(OAuthClient.GrantType.allCases), scopes: [String] = []
    ) async throws -> (read: Outcome, unread: Outcome) {
        var outcomes: [Outcome] = []
        for isShared in [false, true] {
            let fixture = try await fixture(grantTypes: grantTypes, scopes: scopes)
            let node = try fixture.node(Shared(fixture.database, isShared))
            let code = try await code(fixture)
            let first = try await (isRefresh ? exchange(code, in: fixture, on: fixture.grants) : nil)
            fixture.clock.advance(by: isRefresh ? 3600 : 10)
            for change in changes { _ = try await fixture.database.run(SQLStatement(SQL(verbatim: change))) }
            outcomes.append(
                try await outcome(of: fixture) {
                    if isRefresh {
                        try await refresh(first?.refreshToken, form, in: fixture, on: node)
                    } else {
                        try await exchange(code, form, in: fixture, on: node)
                    }
                })
        }
        return (try #require(outcomes.first), try #require(outcomes.last))
    }

    // MARK: - Tests

    @Test("One transaction changes a code, or a refresh token, and gives and leaves what it does after a look")
    func same() async throws {
        for isRefresh in [false, true] {
            let (read, unread) = try await outcomes(after: [], isRefresh: isRefresh)
            #expect(unread == read)
            #expect(unread.refusal == nil && unread.hasRefreshToken && unread.scopes == ["openid", "accounts"])
            #expect(unread.nonce == (isRefresh ? nil : "n-0S6_WzA2Mj"))
            let event = isRefresh ? "oauth.refresh" : "oauth.code"
            #expect(unread.audit.contains("\(event) success - office true 2"))
        }
        let fixture = try await fixture()
        let database = Shared(fixture.database)
        let node = try fixture.node(database)
        let code = try await code(fixture)
        let first = try await exchange(code, in: fixture, on: node)
        #expect(database.runs == 1)
        let second = try await refresh(first.refreshToken, in: fixture, on: node)
        #expect(database.runs == 2)
        #expect(try await fixture.isLive(second))
        // What a client asks for is compared with the grant before anything is spent.
        let third = try await refresh(second.refreshToken, ["scope": "accounts"], in: fixture, on: node)
        #expect(database.runs == 4 && third.scopes == ["accounts"])
    }

    @Test("A client that may not refresh gets no refresh token")
    func withoutRefresh() async throws {
        let (read, unread) = try await outcomes(after: [], isRefresh: false, grantTypes: [.authorizationCode])
        #expect(unread == read)
        #expect(unread.refusal == nil && !unread.hasRefreshToken && unread.scopes == ["openid", "accounts"])
    }

    @Test("Tokens have no scope that the client has lost since its user agreed")
    func lostScope() async throws {
        for isRefresh in [false, true] {
            let (read, unread) = try await outcomes(
                after: ["UPDATE grants SET scope = 'openid accounts payments'"], isRefresh: isRefresh)
            #expect(unread == read)
            #expect(unread.refusal == nil && unread.scopes == ["openid", "accounts"])
        }
    }

    @Test("A grant goes on without its session only where the client may have offline_access")
    func offline() async throws {
        for (scopes, refusal) in [(["offline_access"], nil), ([], "invalid_grant")] as [([String], String?)] {
            let (read, unread) = try await outcomes(
                after: ["UPDATE grants SET is_offline = 1", "DELETE FROM sessions"], isRefresh: true, scopes: scopes)
            #expect(unread == read)
            #expect(unread.refusal == refusal, "\(scopes)")
            let isNoted = unread.audit.contains { $0.hasPrefix("oauth.refresh refused sessionEnded office") }
            #expect(isNoted == (refusal != nil))
        }
    }

    @Test(
        "What stands against it is told, written down and left as after a look",
        arguments: [
            ["DELETE FROM sessions"], ["UPDATE sessions SET expires_at = 0"], ["UPDATE sessions SET kind = 'implicit'"],
            ["UPDATE users SET active = 0"], ["UPDATE users SET epoch = epoch + 1"],
            ["UPDATE grants SET epoch = epoch + 1"],
            ["UPDATE grants SET revoked_at = 1, revoked_because = 'test'"], ["UPDATE grants SET realm = '/beta'"],
            ["UPDATE grants SET client_id = 'other'"], ["UPDATE grants SET sender = 'x5t#S256:another'"],
            ["UPDATE grants SET is_offline = 1", "DELETE FROM sessions"],
            ["UPDATE oauth_codes SET client_id = 'other'"],
            ["UPDATE oauth_codes SET redirect_uri = 'https://a.example/'"],
            ["UPDATE oauth_codes SET code_challenge = 'another'"], ["UPDATE oauth_codes SET code_challenge = ''"],
            ["UPDATE oauth_codes SET sender = 'jkt:another'"], ["UPDATE oauth_codes SET expires_at = 0"],
            ["UPDATE oauth_codes SET used_at = 1"], ["DELETE FROM oauth_codes"],
            ["UPDATE refresh_tokens SET client_id = 'other'"], ["UPDATE refresh_tokens SET expires_at = 0"],
            ["UPDATE refresh_tokens SET used_at = 1"], ["DELETE FROM refresh_tokens"],
        ])
    func refusals(changes: [String]) async throws {
        for isRefresh in [false, true] {
            let (read, unread) = try await outcomes(after: changes, isRefresh: isRefresh)
            #expect(unread == read, "refresh \(isRefresh)")
        }
    }

    @Test(
        "A request that is wrong itself is refused as after a look, and the code stays whole",
        arguments: [
            ["code_verifier": nil], ["code_verifier": "short"],
            ["code_verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXK"], ["redirect_uri": "https://a.example/"],
            ["code": "unknown"],
        ] as [[String: String?]])
    func wrongRequest(form: [String: String?]) async throws {
        let (read, unread) = try await outcomes(after: [], isRefresh: false, form: form)
        #expect(unread == read)
        #expect(unread.refusal == "invalid_grant" && unread.counts.first == 1)
    }

    @Test("A malformed verifier is not the same as none, for a code without a challenge")
    func malformedVerifier() async throws {
        for (verifier, refusal) in [("short", "invalid_grant"), (nil, nil)] {
            let (read, unread) = try await outcomes(
                after: ["UPDATE oauth_codes SET code_challenge = ''"], isRefresh: false,
                form: ["code_verifier": verifier])
            #expect(unread == read && unread.refusal == refusal, "\(verifier ?? "none")")
        }
    }

    @Test("A code in 40 requests at once gives one set of tokens, which then is ended, with one record")
    func race() async throws {
        let fixture = try await fixture()
        let node = try fixture.node(Shared(fixture.database))
        let code = try await code(fixture)
        let replies = await withTaskGroup(of: TokenReply.self) { group in
            for _ in 0..<40 {
                group.addTask { await TokenReply { try await exchange(code, in: fixture, on: node) } }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        let won = replies.compactMap(\.tokens)
        #expect(won.count == 1)
        #expect(replies.compactMap(\.refusal) == Array(repeating: .invalidGrant, count: 39))
        #expect(try await !fixture.isLive(try #require(won.first)))
        #expect(try await fixture.audit(.oauthCode).filter { $0.reason == "code_reuse" }.count == 1)
    }

    @Test("A refresh in 40 requests of one attempt gives one successor; another attempt then ends the grant")
    func refreshRace() async throws {
        let fixture = try await fixture()
        let node = try fixture.node(Shared(fixture.database))
        let first = try await exchange(try await code(fixture), in: fixture, on: node)
        let replies = await withTaskGroup(of: TokenReply.self) { group in
            for _ in 0..<40 {
                group.addTask { await TokenReply { try await refresh(first.refreshToken, in: fixture, on: node) } }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        let won = replies.compactMap(\.tokens)
        #expect(won.count == 40 && Set(won.compactMap { $0.refreshToken?.reveal() }).count == 1)
        await #expect(throws: OAuthError.invalidGrant) {
            try await refresh(first.refreshToken, attempt: RefreshTests.otherAttempt, in: fixture, on: node)
        }
        #expect(try await !fixture.isLive(try #require(won.first)))
        #expect(try await fixture.audit(.oauthRefresh).filter { $0.reason == "refresh_reuse" }.count == 1)
    }

    @Test("Where the keys that sign cannot be read, nothing is spent")
    func noKeys() async throws {
        let fixture = try await fixture()
        let code = try await code(fixture)
        let silent = InterruptedDatabase(fixture.database) { statement in
            guard statement.sql.text().contains("server_keys") else { return false }
            throw StoreError(.unavailable, "The keys are gone.")
        }
        let context = fixture.context.anotherNode(on: Shared(silent))
        let node = try OAuthProvider(context, keys: ServerKeys(context), configuration: fixture.grants.configuration)
        await #expect(throws: StoreError(.unavailable, "")) { try await exchange(code, in: fixture, on: node) }
        #expect(try await fixture.count("oauth_codes", where: "used_at IS NULL") == 1)
        #expect(try await fixture.count("client_assertions") == 0)
        _ = try await exchange(code, in: fixture, on: fixture.grants)
    }

    @Test(
        "Whether the transaction took place may be unknown, and nothing is tried again; a broken constraint takes it back",
        arguments: [(StoreError.Code.unavailable, false), (.outcomeUnknown, false), (.constraint, true)])
    func failures(code: StoreError.Code, goesOn: Bool) async throws {
        for isRefresh in [false, true] {
            let fixture = try await fixture()
            let authorizationCode = try await self.code(fixture)
            let first = try await (isRefresh ? exchange(authorizationCode, in: fixture, on: fixture.grants) : nil)
            let attempts = Locked(0)
            let failing = InterruptedDatabase(fixture.database) { statement in
                guard statement.sql.text().contains("SET used_at") else { return false }
                let attempt = attempts.withLock { count in
                    count += 1
                    return count
                }
                guard attempt > 1 else { throw StoreError(code, "It has failed once.") }
                return true
            }
            let node = try fixture.node(Shared(failing))
            func request() async throws -> IssuedTokens {
                if let first { return try await refresh(first.refreshToken, in: fixture, on: node) }
                return try await exchange(authorizationCode, in: fixture, on: node)
            }
            if goesOn {
                _ = try await request()
            } else {
                await #expect(throws: StoreError(code, "")) { try await request() }
            }
        }
    }

    @Test("A public client's code is looked at first, so that nobody has the database write for one that they invent")
    func publicClient() async throws {
        let fixture = try await fixture()
        let database = Shared(fixture.database)
        let node = try fixture.node(database)
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.exchange("invented", on: node) }
        #expect(database.runs == 1)
        _ = try await fixture.exchange(try await fixture.code(), on: node)
        #expect(database.runs == 3)
    }
}
