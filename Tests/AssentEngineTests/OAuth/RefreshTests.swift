import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Foundation
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("Refreshing tokens")
struct RefreshTests {
    static let attempt = "attempt-0123456789abcdef"
    static let otherAttempt = "attempt-fedcba9876543210"

    @Test("Each refresh gives a new refresh token and retires the old one")
    func rotation() async throws {
        let fixture = try await ProviderFixture()
        var reply = try await fixture.tokens()
        var seen: Set<String> = []
        for _ in 0..<5 {
            seen.insert(try #require(reply.refreshToken).reveal())
            reply = try await fixture.refresh(reply.refreshToken)
            #expect(try await fixture.isLive(reply))
        }
        #expect(seen.count == 5)
        #expect(!seen.contains(try #require(reply.refreshToken).reveal()))
        #expect(try await fixture.count("refresh_tokens", where: "used_at IS NULL") == 1)
    }

    @Test("A new ID token tells the same user and sign-in, without the nonce")
    func idToken() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        fixture.clock.advance(by: 100)
        let claims = try jwtClaims(try await fixture.refresh(first.refreshToken).idToken)
        #expect(claims.sub == fixture.user.id)
        #expect(claims["auth_time"] == .integer(fixture.session.createdAt))
        #expect(claims["iat"] == .integer(fixture.clock.epochSeconds))
        #expect(claims["nonce"] == nil)
    }

    @Test("A lost reply: the same attempt gets the same successor within the grace")
    func lostReply() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        let lost = try await fixture.refresh(first.refreshToken, attempt: Self.attempt)
        fixture.clock.advance(by: 59)
        let again = try await fixture.refresh(
            first.refreshToken, attempt: Self.attempt, on: try await fixture.secondNode())
        #expect(again.refreshToken == lost.refreshToken)
        #expect(try await fixture.isLive(again))
        let next = try await fixture.refresh(again.refreshToken, attempt: Self.otherAttempt)
        #expect(try await fixture.isLive(next))
        // Who uses the first successor has received it: only the copy of the second is left.
        #expect(try await fixture.count("refresh_tokens", where: "sealed_successor IS NOT NULL") == 1)
        #expect(try await fixture.audit(.oauthRefresh).allSatisfy { $0.outcome == .success })
    }

    @Test(
        "Whoever else comes with a used token ends the family, with one audit record",
        arguments: [
            ("another attempt", otherAttempt, [:], 1), ("no attempt", nil, [:], 1), ("too late", attempt, [:], 60),
            ("long after", attempt, [:], 5000), ("another client", attempt, ["client_id": "other-app"], 1),
        ] as [(String, String?, [String: String?], Int)])
    func reuse(name: String, attempt: String?, changes: [String: String?], delay: Int) async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        let second = try await fixture.refresh(first.refreshToken, attempt: Self.attempt)
        fixture.clock.advance(by: Double(delay))
        for _ in 0..<3 {
            await #expect(throws: OAuthError.invalidGrant) {
                try await fixture.refresh(first.refreshToken, attempt: attempt, changes)
            }
        }
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(second.refreshToken) }
        #expect(try await !fixture.isLive(second))
        #expect(try await !fixture.isLive(first))
        let refusals = try await fixture.audit(.oauthRefresh).filter { $0.outcome == .refused }
        #expect(refusals.map(\.reason) == ["refresh_reuse"])
        #expect(refusals.first?.userID == fixture.user.id)
        #expect(try await fixture.count("refresh_tokens", where: "sealed_successor IS NOT NULL") == 0)
    }

    @Test("Once the successor was used, even the same attempt within the grace ends the family")
    func successorUsed() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        let second = try await fixture.refresh(first.refreshToken, attempt: Self.attempt)
        let third = try await fixture.refresh(second.refreshToken, attempt: Self.otherAttempt)
        #expect(try await fixture.isLive(third))
        await #expect(throws: OAuthError.invalidGrant) {
            try await fixture.refresh(first.refreshToken, attempt: Self.attempt)
        }
        #expect(try await !fixture.isLive(third))
    }

    @Test("A refresh without an attempt id that is repeated is reuse")
    func repeatedWithoutAttempt() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        let second = try await fixture.refresh(first.refreshToken)
        #expect(try await fixture.count("refresh_tokens", where: "sealed_successor IS NOT NULL") == 0)
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(first.refreshToken) }
        #expect(try await !fixture.isLive(second))
    }

    @Test("A thief who was first is found out when the owner comes")
    func thiefFirst() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        let stolen = try await fixture.refresh(first.refreshToken, attempt: "thief-0123456789abcdef")
        await #expect(throws: OAuthError.invalidGrant) {
            try await fixture.refresh(first.refreshToken, attempt: Self.attempt)
        }
        #expect(try await !fixture.isLive(stolen))
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(stolen.refreshToken) }
    }

    @Test("A clock that steps back far does not lengthen the grace")
    func clockStepsBack() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        _ = try await fixture.refresh(first.refreshToken, attempt: Self.attempt)
        fixture.clock.advance(by: -3600)
        await #expect(throws: OAuthError.invalidGrant) {
            try await fixture.refresh(first.refreshToken, attempt: Self.attempt)
        }
    }

    @Test(
        "Nodes whose clocks differ repeat a lost reply for as long as the clock of the database's server says",
        .enabled(if: TestDatabase.isPostgreSQL))
    func clocksApart() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        let (slow, fast) = (try Self.node(of: fixture, ahead: -29), try Self.node(of: fixture, ahead: 29))
        func pass(_ seconds: Int64) async throws {
            _ = try await fixture.database.run(
                SQLStatement("UPDATE refresh_tokens SET used_at = used_at - \(seconds) WHERE used_at IS NOT NULL"))
        }
        let lost = try await fixture.refresh(first.refreshToken, attempt: Self.attempt, on: slow)
        // By their own clocks a minute has passed.
        try await pass(2)
        _ = try await fast.purge()
        for node in [fast, slow] {
            let again = try await fixture.refresh(first.refreshToken, attempt: Self.attempt, on: node)
            #expect(again.refreshToken == lost.refreshToken)
        }
        try await pass(58)
        _ = try await slow.purge()
        #expect(try await fixture.count("refresh_tokens", where: "sealed_successor IS NOT NULL") == 0)
        await #expect(throws: OAuthError.invalidGrant) {
            try await fixture.refresh(first.refreshToken, attempt: Self.attempt, on: slow)
        }
    }

    /// A node on the fixture's database whose clock differs from the others', with whom it goes by the clock of the
    /// database's server.
    private static func node(of fixture: ProviderFixture, ahead seconds: TimeInterval) throws -> OAuthProvider {
        let context = EngineContext(
            database: fixture.database, clock: ManualClock(fixture.clock.now.addingTimeInterval(seconds)),
            random: SystemRandom(), masterKey: fixture.context.masterKey, isDatabaseTimed: true,
            logger: fixture.context.logger)
        return try OAuthProvider(context, keys: ServerKeys(context), configuration: fixture.grants.configuration)
    }

    @Test(
        "An attempt id that could be guessed, or is none, is refused and nothing is spent",
        arguments: ["short", String(repeating: "a", count: 129), "attempt 0123456789 abcdef", "attempt-0123456789-ä"])
    func attemptForm(attempt: String) async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        await #expect(throws: OAuthError.expected("invalid_request")) {
            try await fixture.refresh(first.refreshToken, attempt: attempt)
        }
        _ = try await fixture.refresh(first.refreshToken)
    }

    @Test("Scopes may be narrowed for one access token, never widened; what is more is left out")
    func scopes() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        await #expect(throws: OAuthError.expected("invalid_scope")) {
            try await fixture.refresh(first.refreshToken, ["scope": "email offline_access"])
        }
        let wider = try await fixture.refresh(first.refreshToken, ["scope": "openid accounts profile"])
        #expect(wider.scopes == ["openid", "accounts"])
        #expect(try await fixture.grants.access(token: wider.accessToken)?.scopes == ["openid", "accounts"])
        let narrow = try await fixture.refresh(wider.refreshToken, ["scope": "accounts"])
        #expect(narrow.scopes == ["accounts"])
        #expect(narrow.idToken == nil)
        #expect(try await fixture.grants.access(token: narrow.accessToken)?.scopes == ["accounts"])
        #expect(try await fixture.refresh(narrow.refreshToken).scopes == ["openid", "accounts"])
    }

    @Test("What the client may no longer have is no longer given")
    func withdrawnScope() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        var client = ProviderFixture.bank
        client.scopes = ["openid"]
        let stricter = try OAuthProvider(
            fixture.context, keys: fixture.grants.keys,
            configuration: OAuthProviderConfiguration(
                realm: "/alpha", issuer: ProviderFixture.issuer, clients: [client]))
        #expect(try await fixture.refresh(first.refreshToken, on: stricter).scopes == ["openid"])
    }

    @Test("A refresh token is good for its time and for its client; a stranger with it spends nothing")
    func expiryAndClient() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        await #expect(throws: OAuthError.invalidGrant) {
            try await fixture.refresh(first.refreshToken, ["client_id": "other-app"])
        }
        fixture.clock.advance(by: 7 * 24 * 3600 - 1)
        let second = try await fixture.refresh(first.refreshToken)
        fixture.clock.advance(by: 7 * 24 * 3600)
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(second.refreshToken) }
    }

    @Test("A refresh token ends with its session and says so in the audit log; a lost reply is not repeated then")
    func endedSession() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        let second = try await fixture.refresh(first.refreshToken, attempt: Self.attempt)
        _ = try await Sessions(fixture.context).end(id: fixture.session.id)
        for token in [second.refreshToken, first.refreshToken] {
            await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(token, attempt: Self.attempt) }
        }
        #expect(try await fixture.audit(.oauthRefresh).first { $0.outcome == .refused }?.reason == "sessionEnded")
        #expect(try await !fixture.isLive(second))
    }

    @Test("With offline_access a grant outlives its session, not its user")
    func sessionAndUser() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens(["scope": "openid offline_access"])
        _ = try await Sessions(fixture.context).end(id: fixture.session.id)
        let second = try await fixture.refresh(first.refreshToken, attempt: Self.attempt)
        let narrowed = try await fixture.refresh(second.refreshToken, ["scope": "openid"])
        #expect(try await fixture.isLive(narrowed))
        try await Users(fixture.context).setActive(false, userID: fixture.user.id)
        for token in [first.refreshToken, second.refreshToken, narrowed.refreshToken] {
            await #expect(throws: OAuthError.invalidGrant) {
                try await fixture.refresh(token, attempt: Self.attempt)
            }
        }
        #expect(try await !fixture.isLive(second))
    }

    @Test("Where a client may not have offline_access any more, its grants end with their sessions as all others do")
    func withdrawnOffline() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens(["scope": "openid offline_access"])
        var client = ProviderFixture.bank
        client.scopes.removeAll { $0 == "offline_access" }
        let stricter = try await fixture.secondNode(clients: [client])
        // Nothing else has changed while the session lives.
        let second = try await fixture.refresh(first.refreshToken, attempt: Self.attempt, on: stricter)
        #expect(try await stricter.access(token: second.accessToken) != nil)
        _ = try await Sessions(fixture.context).end(id: fixture.session.id)
        // The first is a lost reply that is asked for again.
        for token in [first.refreshToken, second.refreshToken] {
            await #expect(throws: OAuthError.invalidGrant) {
                try await fixture.refresh(token, attempt: Self.attempt, on: stricter)
            }
        }
        guard case .refused(.sessionEnded) = try await stricter.check(accessToken: second.accessToken) else {
            throw UnexpectedOutcome()
        }
        let refused = try await fixture.audit(.oauthRefresh).filter { $0.outcome == .refused }
        #expect(refused.map(\.reason) == ["sessionEnded"])
        // The control: where the file lists it, the same tokens are valid.
        #expect(try await fixture.isLive(second))
        let third = try await fixture.refresh(second.refreshToken, attempt: Self.otherAttempt)
        #expect(try await fixture.isLive(third))
    }

    @Test("A token that is bound to a key is refreshed with that key only")
    func keyBinding() async throws {
        let fixture = try await ProviderFixture()
        let request = try ProviderFixture.parameters([
            "grant_type": "authorization_code", "client_id": "bank-app", "code": try await fixture.code(),
            "redirect_uri": "https://bank.example/cb", "code_verifier": ProviderFixture.verifier,
        ])
        let first = try await fixture.grants.tokens(request, keyThumbprint: "key-one")
        #expect(first.tokenType == "DPoP")
        #expect(try jwtClaims(first.accessToken)["cnf"]?["jkt"] == "key-one")
        #expect(try await !fixture.isLive(first))
        #expect(try await fixture.grants.access(token: first.accessToken, keyThumbprint: "key-two") == nil)
        #expect(try await fixture.grants.access(token: first.accessToken, keyThumbprint: "key-one") != nil)
        for thumbprint in ["key-two", nil] {
            await #expect(throws: OAuthError.invalidGrant) {
                try await fixture.refresh(first.refreshToken, keyThumbprint: thumbprint)
            }
        }
        let second = try await fixture.refresh(first.refreshToken, attempt: Self.attempt, keyThumbprint: "key-one")
        #expect(second.tokenType == "DPoP")
        await #expect(throws: OAuthError.invalidGrant) {
            try await fixture.refresh(first.refreshToken, attempt: Self.attempt, keyThumbprint: "key-two")
        }
        await #expect(throws: OAuthError.invalidGrant) {
            try await fixture.refresh(second.refreshToken, keyThumbprint: "key-one")
        }
    }
}
