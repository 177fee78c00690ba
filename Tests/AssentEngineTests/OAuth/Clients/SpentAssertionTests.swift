import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("Assertions of clients: each is accepted once")
struct SpentAssertionTests {
    private let key: AssertionKey
    private let fixture: ProviderFixture

    init() async throws {
        key = try AssertionKey()
        fixture = try await ProviderFixture(
            clients: [AssertionKey.client([key]), AssertionKey.client([key], id: "agency"), ProviderFixture.bank])
    }

    private func assertion(of client: String = "office", lifetime: Int64 = 60) async throws -> String {
        let end = fixture.clock.epochSeconds + lifetime
        return try await key.assertion(of: client, now: fixture.clock, claims: { $0["exp"] = .integer(end) })
    }

    private func code() async throws -> String {
        try await fixture.code(["client_id": "office", "redirect_uri": "https://office.example/cb"])
    }

    private func exchange(
        _ code: String, _ assertion: String, key: String? = nil, on node: OAuthProvider? = nil
    ) async throws -> IssuedTokens {
        try await (node ?? fixture.grants).tokens(
            try ProviderFixture.parameters(
                [
                    "grant_type": "authorization_code", "code": code, "redirect_uri": "https://office.example/cb",
                    "code_verifier": ProviderFixture.verifier,
                ], AssertionKey.form(assertion)), keyThumbprint: key)
    }

    private func refresh(
        _ token: Secret?, _ assertion: String, attempt: String? = nil, key: String? = nil
    ) async throws -> IssuedTokens {
        try await fixture.refresh(
            token, attempt: attempt, AssertionKey.form(assertion, ["client_id": nil]), keyThumbprint: key)
    }

    private func revoke(_ token: Secret?, _ assertion: String) async throws {
        try await fixture.grants.revoke(
            try ProviderFixture.parameters(
                ["token": try #require(token).reveal()], AssertionKey.form(assertion)))
    }

    private func introspect(_ token: Secret?, _ assertion: String) async throws -> JSONValue {
        try await TokenIntrospection(fixture.grants).answer(
            try ProviderFixture.parameters(
                ["token": try #require(token).reveal()], AssertionKey.form(assertion)))
    }

    private func isInvalidClient(_ body: () async throws -> Void) async -> Bool {
        do {
            try await body()
            return false
        } catch {
            return error as? OAuthError == .invalidClient
        }
    }

    @Test("Whatever it was used for first, it is refused everywhere afterwards, and nothing is done by it")
    func replay() async throws {
        let tokens = try await exchange(try await code(), try await assertion())
        let uses: [@Sendable (String) async throws -> Void] = [
            { _ = try await fixture.grants.tokens(try ProviderFixture.ownToken($0)) },
            { _ = try await exchange(try await code(), $0) },
            { _ = try await introspect(tokens.accessToken, $0) },
            { try await revoke(Secret("unknown"), $0) },
            { try await revoke(tokens.accessToken, $0) },
        ]
        for use in uses {
            let assertion = try await assertion()
            try await use(assertion)
            let grants = try await fixture.count("grants")
            let code = try await code()
            let fresh = try await exchange(try await self.code(), try await self.assertion())
            #expect(await isInvalidClient { _ = try await exchange(code, assertion) })
            #expect(await isInvalidClient { _ = try await refresh(fresh.refreshToken, assertion) })
            #expect(await isInvalidClient { _ = try await introspect(fresh.accessToken, assertion) })
            #expect(await isInvalidClient { try await revoke(fresh.refreshToken, assertion) })
            #expect(await isInvalidClient { try await revoke(fresh.accessToken, assertion) })
            #expect(try await fixture.refusal(assertion) == "invalid_client")
            // Two grants for the two codes, and none by the assertion.
            #expect(try await fixture.count("grants") == grants + 2)
            #expect(try await fixture.isLive(fresh))
            _ = try await exchange(code, try await self.assertion())
            _ = try await refresh(fresh.refreshToken, try await self.assertion())
        }
        #expect(try await fixture.count("grants", where: "revoked_at IS NOT NULL") == 0)
    }

    @Test("A request that is refused spends it as well, and so does a repetition that changes nothing")
    func refused() async throws {
        let first = try await assertion()
        await #expect(throws: OAuthError.invalidGrant) { try await exchange("unknown", first) }
        #expect(try await fixture.refusal(first) == "invalid_client")
        let second = try await assertion()
        #expect(try await fixture.refusal(second, ["scope": "unknown"]) == "invalid_scope")
        #expect(try await fixture.refusal(second) == "invalid_client")
        let third = try await assertion()
        #expect(try await fixture.refusal(third, ["grant_type": "password"]) == "unsupported_grant_type")
        #expect(try await fixture.refusal(third) == "invalid_client")

        let tokens = try await exchange(try await code(), try await assertion())
        let lost = try await refresh(tokens.refreshToken, try await assertion(), attempt: RefreshTests.attempt)
        let fourth = try await assertion()
        let again = try await refresh(tokens.refreshToken, fourth, attempt: RefreshTests.attempt)
        #expect(again.refreshToken == lost.refreshToken)
        #expect(await isInvalidClient { _ = try await refresh(again.refreshToken, fourth) })
    }

    @Test("Who has a whole old request cannot end the grant by it; its client, by a new assertion, does")
    func replayedRequest() async throws {
        let (code, assertion) = (try await code(), try await assertion())
        let tokens = try await exchange(code, assertion)
        for _ in 0..<3 { #expect(await isInvalidClient { _ = try await exchange(code, assertion) }) }
        #expect(try await fixture.isLive(tokens))
        let second = try await self.assertion()
        let renewed = try await refresh(tokens.refreshToken, second)
        for _ in 0..<3 { #expect(await isInvalidClient { _ = try await refresh(tokens.refreshToken, second) }) }
        #expect(try await fixture.isLive(renewed))
        let third = try await self.assertion()
        await #expect(throws: OAuthError.invalidGrant) { try await exchange(code, third) }
        #expect(try await !fixture.isLive(renewed))
    }

    @Test("ensure-authorization-code-is-bound-to-client, refresh-token: another client's key does not help a thief")
    func theft() async throws {
        let code = try await code()
        let stolen = try await assertion(of: "agency")
        await #expect(throws: OAuthError.invalidGrant) { try await exchange(code, stolen) }
        let tokens = try await exchange(code, try await assertion())
        let another = try await assertion(of: "agency")
        await #expect(throws: OAuthError.invalidGrant) { try await refresh(tokens.refreshToken, another) }
        await #expect(throws: OAuthError.invalidClient) {
            try await fixture.refresh(tokens.refreshToken, ["client_id": "office"])
        }
        let foreign = try await assertion(of: "agency")
        await #expect(throws: OAuthError.invalidGrant) { try await revoke(tokens.refreshToken, foreign) }
        #expect(try await introspect(tokens.accessToken, try await assertion(of: "agency"))["active"] == false)
        _ = try await refresh(tokens.refreshToken, try await assertion())
    }

    @Test("A name that one client has used is free for another, and for the same one when it has expired")
    func names() async throws {
        func named(_ client: String) async throws -> String {
            try await key.assertion(of: client, now: fixture.clock, claims: { $0["jti"] = "1" })
        }
        #expect(try await fixture.refusal(try await named("office")) == nil)
        #expect(try await fixture.refusal(try await named("agency")) == nil)
        fixture.clock.advance(by: 1)
        #expect(try await fixture.refusal(try await named("office")) == "invalid_client")
        fixture.clock.advance(by: 200)
        _ = try await fixture.grants.purge()
        #expect(try await fixture.refusal(try await named("office")) == nil)
    }

    @Test("It is remembered for as long as any node accepts it, and housekeeping forgets it then")
    func housekeeping() async throws {
        let long = try await assertion(lifetime: 3600)
        let short = try await assertion()
        for assertion in [long, short] { #expect(try await fixture.refusal(assertion) == nil) }
        for (seconds, left) in [(0.0, 2), (149, 2), (1, 1), (3539, 1), (1, 0)] as [(Double, Int64)] {
            fixture.clock.advance(by: seconds)
            _ = try await fixture.grants.purge()
            #expect(try await fixture.count("client_assertions") == left, "\(seconds)")
            for assertion in [long, short] {
                #expect(try await fixture.refusal(assertion) == "invalid_client")
            }
        }
    }

    @Test("After a restore those are refused that may have been used since the backup; new ones are accepted")
    func restore() async throws {
        let used = try await assertion(lifetime: 3600)
        let bare = try await key.assertion(now: fixture.clock, claims: { $0["iat"] = nil })
        #expect(try await fixture.refusal(used) == nil)
        // The backup is older.
        _ = try await fixture.database.run(SQLStatement("DELETE FROM client_assertions"))
        fixture.clock.advance(by: 10)
        _ = try await RestoredDatabase(fixture.context).fence(keepingSessions: true)
        for assertion in [used, bare] { #expect(try await fixture.refusal(assertion) == "invalid_client") }
        // A clock may be ahead: what is from the moment of the restore may have been used before it.
        #expect(try await fixture.refusal(try await assertion()) == "invalid_client")
        fixture.clock.advance(by: 91)
        _ = try await fixture.grants.purge()
        #expect(try await fixture.refusal(try await assertion()) == nil)
        #expect(try await fixture.refusal(used) == "invalid_client")
        fixture.clock.advance(by: 3630)
        _ = try await fixture.grants.purge()
        #expect(try await fixture.refusal(used) == "invalid_client")
        let later = try await key.assertion(now: fixture.clock, claims: { $0["iat"] = nil })
        #expect(try await fixture.refusal(later) == nil)
    }

    @Test("The time of a restore is remembered for as long as any node accepts what is from before it")
    func restoreMemory() async throws {
        // By a node whose clock is ahead almost as far as clocks may differ.
        fixture.clock.advance(by: 59)
        let used = try await assertion(lifetime: 3630)
        #expect(try await fixture.refusal(used) == nil)
        fixture.clock.advance(by: -59)
        _ = try await fixture.database.run(SQLStatement("DELETE FROM client_assertions"))
        _ = try await RestoredDatabase(fixture.context).fence(keepingSessions: true)
        // A node whose clock is ahead deletes what is over; then one whose clock is behind gets it.
        fixture.clock.advance(by: 3778)
        _ = try await fixture.grants.purge()
        fixture.clock.advance(by: -60)
        #expect(try await fixture.refusal(used) == "invalid_client")
        // Nothing but the restore refuses it then.
        _ = try await fixture.database.run(SQLStatement("DELETE FROM client_assertions"))
        #expect(try await fixture.refusal(used) == nil)
    }

    @Test("Raced over two nodes it is accepted once, whatever it is used for")
    func race() async throws {
        let nodes = [fixture.grants, try await fixture.secondNode()]
        for _ in 0..<10 {
            let assertion = try await assertion()
            var codes: [String] = []
            for _ in 0..<6 { codes.append(try await code()) }
            let outcomes = await withTaskGroup(of: String?.self) { group in
                for (index, code) in codes.enumerated() {
                    group.addTask {
                        do {
                            _ = try await exchange(code, assertion, on: nodes[index % 2])
                            return nil
                        } catch {
                            return OAuthError(answering: error).code.rawValue
                        }
                    }
                }
                return await group.reduce(into: [String?]()) { $0.append($1) }
            }
            #expect(outcomes.count { $0 == nil } == 1)
            #expect(outcomes.allSatisfy { $0 == nil || $0 == "invalid_client" }, "\(outcomes)")
        }
        #expect(try await fixture.count("oauth_codes", where: "used_at IS NOT NULL") == 10)
        #expect(try await fixture.count("client_assertions") == 10)
    }

    @Test("What the database has not done has not spent it either")
    func failure() async throws {
        let code = try await code()
        let assertion = try await assertion()
        let database = NodeDatabase(fixture.database, [.undone])
        let node = try fixture.node(database)
        await #expect(throws: StoreError(.unavailable, "")) { try await exchange(code, assertion, on: node) }
        #expect(try await fixture.count("client_assertions") == 0)
        _ = try await exchange(code, assertion)
    }

    @Test("What nobody knows whether it was done is not done again by the same assertion, and goes on by a new one")
    func lostOutcome() async throws {
        let tokens = try await exchange(try await code(), try await assertion())
        let lost = try await assertion()
        let database = NodeDatabase(fixture.database, [.doneUnknown])
        let node = try fixture.node(database)
        let error = await #expect(throws: StoreError(.outcomeUnknown, "")) {
            try await fixture.refresh(
                tokens.refreshToken, attempt: RefreshTests.attempt, AssertionKey.form(lost, ["client_id": nil]),
                on: node)
        }
        #expect(error.map { OAuthError(answering: $0).code } == .temporarilyUnavailable)
        #expect(
            await isInvalidClient {
                _ = try await refresh(tokens.refreshToken, lost, attempt: RefreshTests.attempt)
            })
        let again = try await refresh(tokens.refreshToken, try await assertion(), attempt: RefreshTests.attempt)
        #expect(try await fixture.isLive(again))
        #expect(try await fixture.count("refresh_tokens") == 2)
    }

    @Test(
        "A client with a key and a proof: its access token belongs to the proof's key, its refresh token to the client")
    func withProof() async throws {
        let tokens = try await exchange(try await code(), try await assertion(), key: "first")
        #expect(tokens.tokenType == "DPoP")
        #expect(try jwtClaims(tokens.accessToken)["cnf"]?["jkt"] == "first")
        let renewed = try await refresh(tokens.refreshToken, try await assertion(), key: "second")
        #expect(try jwtClaims(renewed.accessToken)["cnf"]?["jkt"] == "second")
        #expect(try await fixture.count("grants", where: "sender IS NOT NULL") == 0)
    }
}
