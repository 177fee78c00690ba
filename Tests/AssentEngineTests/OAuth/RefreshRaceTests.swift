import AssentCore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Refreshing in parallel")
struct RefreshRaceTests {
    private func race(
        _ fixture: ProviderFixture, _ token: Secret?, count: Int = 200, attempt: @Sendable @escaping (Int) -> String?
    ) async throws -> [Result<IssuedTokens, any Error>] {
        let second = try await fixture.secondNode()
        return await withTaskGroup(of: Result<IssuedTokens, any Error>.self) { group in
            for index in 0..<count {
                group.addTask {
                    do {
                        let node = index.isMultiple(of: 2) ? fixture.grants : second
                        return .success(try await fixture.refresh(token, attempt: attempt(index), on: node))
                    } catch {
                        return .failure(error)
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }

    @Test("200 requests of one attempt at two nodes get one and the same successor")
    func sameAttempt() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        let results = try await race(fixture, first.refreshToken) { _ in RefreshTests.attempt }
        let replies = results.compactMap { try? $0.get() }
        #expect(replies.count == 200)
        #expect(Set(replies.compactMap { $0.refreshToken?.reveal() }).count == 1)
        #expect(try await fixture.count("refresh_tokens") == 2)
        #expect(try await fixture.isLive(try #require(replies.last)))
        _ = try await fixture.refresh(replies.first?.refreshToken)
    }

    @Test("200 requests of different attempts: one successor was made, and the family is ended")
    func differentAttempts() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        let results = try await race(fixture, first.refreshToken) { "attempt-0123456789-\($0)" }
        let replies = results.compactMap { try? $0.get() }
        #expect(replies.count == 1)
        for case .failure(let error) in results { #expect(error as? OAuthError == .invalidGrant) }
        #expect(try await fixture.count("refresh_tokens") == 2)
        #expect(try await !fixture.isLive(try #require(replies.first)))
        await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(replies.first?.refreshToken) }
        #expect(try await fixture.audit(.oauthRefresh).filter { $0.reason == "refresh_reuse" }.count == 1)
    }

    @Test("200 requests without an attempt: one successor was made, and the family is ended")
    func noAttempt() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        let results = try await race(fixture, first.refreshToken) { _ in nil }
        let replies = results.compactMap { try? $0.get() }
        #expect(replies.count == 1)
        #expect(try await !fixture.isLive(try #require(replies.first)))
    }

    @Test("One attempt within the grace and a thief at the same moment: the family is ended, whoever is first")
    func thiefInTheCrowd() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        let results = try await race(fixture, first.refreshToken, count: 50) {
            $0 == 25 ? "thief-0123456789abcdef" : RefreshTests.attempt
        }
        let tokens = Set(results.compactMap { try? $0.get().refreshToken?.reveal() })
        #expect(tokens.count == 1)
        for reply in results.compactMap({ try? $0.get() }) { #expect(try await !fixture.isLive(reply)) }
        await #expect(throws: OAuthError.invalidGrant) {
            try await fixture.refresh(tokens.first.map { Secret($0) })
        }
    }

    @Test("Revocation and refresh at the same moment: what is left does not count")
    func revocationRace() async throws {
        let fixture = try await ProviderFixture()
        for _ in 0..<10 {
            let first = try await fixture.tokens()
            let revocation = try ProviderFixture.parameters([
                "client_id": "bank-app", "token": try #require(first.refreshToken).reveal(),
            ])
            async let revoked: Void = fixture.grants.revoke(revocation)
            async let refreshed = try? fixture.refresh(first.refreshToken, attempt: RefreshTests.attempt)
            try await revoked
            if let reply = await refreshed { #expect(try await !fixture.isLive(reply)) }
            #expect(try await !fixture.isLive(first))
        }
    }
}
