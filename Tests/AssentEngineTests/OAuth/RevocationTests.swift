import AssentCore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine

@Suite("Revoking tokens")
struct RevocationTests {
    private func revoke(
        _ token: Secret?, _ fixture: ProviderFixture, _ changes: [String: String?] = [:]
    ) async throws {
        try await fixture.grants.revoke(
            try ProviderFixture.parameters(["client_id": "bank-app", "token": token?.reveal() ?? ""], changes))
    }

    @Test("A refresh token takes its grant's access tokens with it, and nobody else's")
    func refreshToken() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        let second = try await fixture.refresh(first.refreshToken, attempt: RefreshTests.attempt)
        let unrelated = try await fixture.tokens()
        try await revoke(second.refreshToken, fixture)
        #expect(try await !fixture.isLive(first))
        #expect(try await !fixture.isLive(second))
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(second.refreshToken) }
        await #expect(throws: OAuthError.invalidGrant) {
            try await fixture.refresh(first.refreshToken, attempt: RefreshTests.attempt)
        }
        #expect(try await fixture.isLive(unrelated))
        #expect(try await fixture.audit(.oauthRevoke).map(\.reason) == ["refresh_token"])
    }

    @Test("An access token takes only itself")
    func accessToken() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        try await revoke(first.accessToken, fixture)
        try await revoke(first.accessToken, fixture)
        guard case .refused(.revoked) = try await fixture.grants.check(accessToken: first.accessToken) else {
            throw UnexpectedOutcome()
        }
        let second = try await fixture.refresh(first.refreshToken)
        #expect(try await fixture.isLive(second))
    }

    @Test("Unknown, malformed and expired tokens are as good as revoked; without one there is nothing to revoke")
    func unknown() async throws {
        let fixture = try await ProviderFixture()
        let expired = try await fixture.tokens().accessToken
        fixture.clock.advance(by: 4000)
        for token in [Secret("unknown"), Secret("a.b.c"), expired] { try await revoke(token, fixture) }
        await #expect(throws: OAuthError.expected("invalid_request")) { try await revoke(nil, fixture) }
        #expect(try await fixture.count("revoked_access_tokens") == 0)
    }

    @Test("Another client's token stays as it is")
    func otherClient() async throws {
        let fixture = try await ProviderFixture()
        let reply = try await fixture.tokens()
        for token in [reply.accessToken, reply.refreshToken] {
            await #expect(throws: OAuthError.invalidGrant) {
                try await revoke(token, fixture, ["client_id": "other-app"])
            }
        }
        await #expect(throws: OAuthError.invalidClient) {
            try await revoke(reply.accessToken, fixture, ["client_id": "nobody"])
        }
        #expect(try await fixture.isLive(reply))
        _ = try await fixture.refresh(reply.refreshToken)
    }

    @Test("All grants of a user end at once")
    func allOfUser() async throws {
        let fixture = try await ProviderFixture()
        let replies = [try await fixture.tokens(), try await fixture.tokens()]
        #expect(try await fixture.grants.revokeAll(userID: fixture.user.id, because: "password_changed") == 2)
        for reply in replies { #expect(try await !fixture.isLive(reply)) }
        #expect(try await fixture.grants.revokeAll(userID: fixture.user.id, because: "again") == 0)
    }

    @Test("A token that was revoked stays so at a node whose clock is behind that of the node that purges")
    func clockBehind() async throws {
        let fixture = try await ProviderFixture()
        let token = try await fixture.tokens().accessToken
        try await revoke(token, fixture)
        fixture.clock.advance(by: 3630)
        _ = try await fixture.grants.purge()
        fixture.clock.advance(by: -31)
        guard case .refused(.revoked) = try await fixture.grants.check(accessToken: token) else {
            throw UnexpectedOutcome()
        }
    }

    @Test("A token that has expired by the clock of a node that is ahead is revoked: by another's it is valid")
    func clockAhead() async throws {
        let fixture = try await ProviderFixture()
        let token = try await fixture.tokens().accessToken
        fixture.clock.advance(by: 3630)
        try await revoke(token, fixture)
        fixture.clock.advance(by: -31)
        guard case .refused(.revoked) = try await fixture.grants.check(accessToken: token) else {
            throw UnexpectedOutcome()
        }
    }

    @Test("What nobody can use any more is purged, and nothing else")
    func purge() async throws {
        let fixture = try await ProviderFixture()
        let unused = try await fixture.code()
        let first = try await fixture.tokens()
        let second = try await fixture.refresh(first.refreshToken, attempt: RefreshTests.attempt)
        try await revoke(second.accessToken, fixture)
        #expect(try await fixture.grants.purge() == 0)
        #expect(try await fixture.count("refresh_tokens", where: "sealed_successor IS NOT NULL") == 1)
        fixture.clock.advance(by: 60)
        #expect(try await fixture.grants.purge() == 1)
        #expect(try await fixture.count("oauth_codes") == 1)
        #expect(try await fixture.count("refresh_tokens", where: "sealed_successor IS NOT NULL") == 0)
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.exchange(unused) }
        fixture.clock.advance(by: 3600)
        #expect(try await fixture.grants.purge() == 0)
        #expect(try await fixture.count("revoked_access_tokens") == 0)
        let third = try await fixture.refresh(second.refreshToken)
        fixture.clock.advance(by: 7 * 24 * 3600)
        #expect(try await fixture.grants.purge() == 1)
        for table in ["grants", "oauth_codes", "refresh_tokens"] { #expect(try await fixture.count(table) == 0) }
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(third.refreshToken) }
    }
}
