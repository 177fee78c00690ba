import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("What belongs to a key at the token endpoint")
struct KeyBindingTests {
    private static let key = Base64URL.encode([UInt8](repeating: 1, count: 32))
    private static let otherKey = Base64URL.encode([UInt8](repeating: 2, count: 32))

    /// A confidential client that takes the same requests as the public one, but for its secret.
    private static var office: OAuthClient {
        var client = OAuthClient(
            id: "office", kind: .confidential(secretHash: OAuthClient.hash(ofSecret: Secret(ProviderFixture.secret))),
            redirectURIs: ["https://bank.example/cb"], scopes: ["openid", "accounts", "offline_access"])
        client.grantTypes = [.authorizationCode, .refreshToken, .clientCredentials]
        client.defaultScopes = ["accounts"]
        client.idTokenAlgorithm = .es256
        return client
    }

    private static let credentials: [String: String?] = [
        "client_id": "office", "client_secret": ProviderFixture.secret,
    ]

    private static func exchange(
        _ fixture: ProviderFixture, _ code: String, _ changes: [String: String?] = [:], key: String?,
        on node: OAuthProvider? = nil
    ) async throws -> IssuedTokens {
        try await (node ?? fixture.grants).tokens(
            try ProviderFixture.parameters(
                [
                    "grant_type": "authorization_code", "client_id": "bank-app", "code": code,
                    "redirect_uri": "https://bank.example/cb", "code_verifier": ProviderFixture.verifier,
                ], changes), keyThumbprint: key)
    }

    private static func boundKeys(_ fixture: ProviderFixture) async throws -> [String?] {
        try await fixture.database.run(.read("SELECT sender FROM grants")).map { try $0.optionalText("sender") }
    }

    // MARK: - Public clients

    @Test("A stolen refresh token of a public client is refused without its key, and its owner goes on with it")
    func stolenRefreshToken() async throws {
        let fixture = try await ProviderFixture()
        let first = try await Self.exchange(fixture, try await fixture.code(), key: Self.key)
        let node = try await fixture.secondNode()
        for thief in [Self.otherKey, nil] {
            for place in [fixture.grants, node] {
                await #expect(throws: OAuthError.invalidGrant) {
                    try await fixture.refresh(first.refreshToken, keyThumbprint: thief, on: place)
                }
            }
            await #expect(throws: OAuthError.invalidGrant) {
                try await fixture.refresh(first.refreshToken, ["client_id": "other-app"], keyThumbprint: Self.key)
            }
        }
        let refusals = try await fixture.audit(.oauthRefresh).filter { $0.outcome == .refused }
        #expect(refusals.count == 6 && refusals.allSatisfy { $0.reason == "binding" })
        let second = try await fixture.refresh(first.refreshToken, keyThumbprint: Self.key, on: node)
        #expect(second.tokenType == "DPoP")
        #expect(try jwtClaims(second.accessToken)["cnf"]?["jkt"] == .string(Self.key))
    }

    @Test("A grant without a key takes the first key that comes at a refresh, and never goes back")
    func firstKey() async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        let second = try await fixture.refresh(first.refreshToken)
        #expect(second.tokenType == "Bearer")
        #expect(try await Self.boundKeys(fixture) == [nil])
        let third = try await fixture.refresh(second.refreshToken, keyThumbprint: Self.key)
        #expect(third.tokenType == "DPoP")
        #expect(try await Self.boundKeys(fixture) == ["jkt:\(Self.key)"])
        for other in [nil, Self.otherKey] {
            await #expect(throws: OAuthError.invalidGrant) {
                try await fixture.refresh(third.refreshToken, keyThumbprint: other)
            }
        }
        #expect(try await fixture.refresh(third.refreshToken, keyThumbprint: Self.key).tokenType == "DPoP")
        #expect(try await Self.boundKeys(fixture) == ["jkt:\(Self.key)"])
    }

    @Test("The statement that gives a grant its key gives it no other one, whatever was looked at before")
    func keyStatement() async throws {
        let fixture = try await ProviderFixture()
        _ = try await Self.exchange(fixture, try await fixture.code(), key: Self.key)
        let grants = GrantRecord.joined(at: fixture.clock.epochSeconds)
        let rows = try await fixture.database.run(.read("SELECT \(GrantRecord.columns) FROM \(grants)"))
        let grant = try GrantRecord(try #require(rows.first))
        func issue(_ key: String?) async throws {
            _ = try await fixture.database.run(
                fixture.grants.issuing(nil, grant: grant, client: ProviderFixture.bank, keyThumbprint: key))
        }
        for other in [Self.otherKey, nil] {
            await #expect(throws: StoreError(.unexpectedCount, "")) { try await issue(other) }
        }
        try await issue(Self.key)
        #expect(try await Self.boundKeys(fixture) == ["jkt:\(Self.key)"])
    }

    @Test(
        "A refresh without a key whose reply was lost may be repeated with one; the grant gets a key by the next token")
    func firstKeyAtRepetition() async throws {
        let fixture = try await ProviderFixture()
        for isStolen in [false, true] {
            let first = try await fixture.tokens()
            let lost = try await fixture.refresh(first.refreshToken, attempt: RefreshTests.attempt)
            let again = try await fixture.refresh(
                first.refreshToken, attempt: RefreshTests.attempt, keyThumbprint: Self.key)
            #expect(again.refreshToken == lost.refreshToken && again.tokenType == "DPoP")
            #expect(try jwtClaims(again.accessToken)["cnf"]?["jkt"] == .string(Self.key))
            #expect(try await fixture.count("grants", where: "sender IS NOT NULL AND revoked_at IS NULL") == 0)
            let next = try await fixture.refresh(again.refreshToken, keyThumbprint: Self.key)
            if isStolen {
                // The owner has got the first reply after all: the second use shows it, and ends the grant.
                await #expect(throws: OAuthError.invalidGrant) { try await fixture.refresh(lost.refreshToken) }
                await #expect(throws: OAuthError.invalidGrant) {
                    try await fixture.refresh(next.refreshToken, keyThumbprint: Self.key)
                }
            } else {
                for other in [nil, Self.otherKey] {
                    await #expect(throws: OAuthError.invalidGrant) {
                        try await fixture.refresh(next.refreshToken, keyThumbprint: other)
                    }
                }
                let last = try await fixture.refresh(next.refreshToken, keyThumbprint: Self.key)
                try await fixture.grants.revoke(
                    try ProviderFixture.parameters([
                        "client_id": "bank-app", "token": try #require(last.refreshToken).reveal(),
                    ]))
            }
        }
    }

    @Test(
        "A refresh with a key that is repeated without it, or with another, ends the grant", arguments: [nil, otherKey])
    func otherKeyAtRepetition(other: String?) async throws {
        let fixture = try await ProviderFixture()
        let first = try await fixture.tokens()
        let reply = try await fixture.refresh(
            first.refreshToken, attempt: RefreshTests.attempt, keyThumbprint: Self.key)
        await #expect(throws: OAuthError.invalidGrant) {
            try await fixture.refresh(first.refreshToken, attempt: RefreshTests.attempt, keyThumbprint: other)
        }
        await #expect(throws: OAuthError.invalidGrant) {
            try await fixture.refresh(reply.refreshToken, keyThumbprint: Self.key)
        }
    }

    @Test("Of many keys that come for one grant at once, one gets it, and its token names that key")
    func keyRace() async throws {
        let fixture = try await ProviderFixture()
        let nodes = [fixture.grants, try await fixture.secondNode()]
        for _ in 0..<5 {
            let first = try await fixture.tokens()
            let replies = await withTaskGroup(of: IssuedTokens?.self) { group in
                for index in 0..<12 {
                    group.addTask {
                        try? await fixture.refresh(
                            first.refreshToken, keyThumbprint: index % 3 == 0 ? nil : "key-\(index)",
                            on: nodes[index % 2])
                    }
                }
                return await group.reduce(into: [IssuedTokens?]()) { $0.append($1) }
            }
            let winners = replies.compactMap(\.self)
            #expect(winners.count == 1)
            let claims = try jwtClaims(winners.first?.accessToken)
            let grant = try #require(claims[OAuthProvider.grantClaim]?.string)
            let row = try await fixture.database.run(.read("SELECT sender FROM grants WHERE id = \(grant)"))
            #expect(try row.first?.sender()?.keyThumbprint == claims["cnf"]?["jkt"]?.string)
        }
    }

    // MARK: - Confidential clients

    @Test("A confidential client's access token belongs to the key of its proof, its refresh token to the client")
    func confidential() async throws {
        let fixture = try await ProviderFixture(clients: [ProviderFixture.bank, ProviderFixture.other, Self.office])
        let code = try await fixture.code(["client_id": "office"])
        let first = try await Self.exchange(fixture, code, Self.credentials, key: Self.key)
        #expect(first.tokenType == "DPoP")
        #expect(try jwtClaims(first.accessToken)["cnf"]?["jkt"] == .string(Self.key))
        #expect(try await Self.boundKeys(fixture) == [nil])
        var reply = first
        for key in [Self.otherKey, nil, Self.key] {
            reply = try await fixture.refresh(reply.refreshToken, Self.credentials, keyThumbprint: key)
            #expect(reply.tokenType == (key == nil ? "Bearer" : "DPoP"))
            #expect(try jwtClaims(reply.accessToken)["cnf"]?["jkt"] == key.map(JSONValue.string))
            #expect(try await Self.boundKeys(fixture) == [nil])
        }
        await #expect(throws: OAuthError.invalidClient) {
            try await fixture.refresh(
                reply.refreshToken, ["client_id": "office", "client_secret": "wrong"], keyThumbprint: Self.key)
        }
    }

    @Test("A repeated refresh of a confidential client gets the same successor, also with another key")
    func confidentialRepetition() async throws {
        let fixture = try await ProviderFixture(clients: [Self.office])
        let code = try await fixture.code(["client_id": "office"])
        let first = try await Self.exchange(fixture, code, Self.credentials, key: Self.key)
        let lost = try await fixture.refresh(
            first.refreshToken, attempt: RefreshTests.attempt, Self.credentials, keyThumbprint: Self.key)
        let again = try await fixture.refresh(
            first.refreshToken, attempt: RefreshTests.attempt, Self.credentials, keyThumbprint: Self.otherKey)
        #expect(again.refreshToken == lost.refreshToken)
        #expect(try jwtClaims(again.accessToken)["cnf"]?["jkt"] == .string(Self.otherKey))
    }

    @Test("A client's own token belongs to its key, and its grant to none")
    func clientCredentials() async throws {
        let fixture = try await ProviderFixture(clients: [Self.office])
        let form = try ProviderFixture.parameters(["grant_type": "client_credentials"], Self.credentials)
        let tokens = try await fixture.grants.tokens(form, keyThumbprint: Self.key)
        #expect(tokens.tokenType == "DPoP")
        #expect(try await Self.boundKeys(fixture) == [nil])
        #expect(try await fixture.grants.access(token: tokens.accessToken, keyThumbprint: Self.otherKey) == nil)
        #expect(try await fixture.grants.access(token: tokens.accessToken, keyThumbprint: Self.key) != nil)
    }

    // MARK: - Codes

    @Test("ensure-dpop-auth-code-binding-success: a code with dpop_jkt is changed for tokens by that key")
    func boundCode() async throws {
        let fixture = try await ProviderFixture()
        let code = try await fixture.code(["dpop_jkt": Self.key])
        let tokens = try await Self.exchange(fixture, code, key: Self.key)
        #expect(tokens.tokenType == "DPoP")
        #expect(try await Self.boundKeys(fixture) == ["jkt:\(Self.key)"])
    }

    @Test(
        "ensure-mismatched-dpop-jkt-fails: a stolen code is refused without its key, and its owner's exchange goes on")
    func stolenCode() async throws {
        let fixture = try await ProviderFixture()
        let node = try await fixture.secondNode()
        let code = try await fixture.code(["dpop_jkt": Self.key])
        for thief in [Self.otherKey, nil] {
            for place in [fixture.grants, node] {
                await #expect(throws: OAuthError.invalidGrant) {
                    try await Self.exchange(fixture, code, key: thief, on: place)
                }
            }
        }
        #expect(try await fixture.count("oauth_codes", where: "used_at IS NULL") == 1)
        let refusals = try await fixture.audit(.oauthCode)
        #expect(refusals.count == 4 && refusals.allSatisfy { $0.outcome == .refused && $0.reason == "binding" })
        let tokens = try await Self.exchange(fixture, code, key: Self.key, on: node)
        #expect(tokens.tokenType == "DPoP")
    }

    @Test("ensure-token-endpoint-fails-with-mismatched-dpop-jkt: the same for a confidential client")
    func confidentialCode() async throws {
        let fixture = try await ProviderFixture(clients: [Self.office])
        let code = try await fixture.code(["client_id": "office", "dpop_jkt": Self.key])
        for other in [Self.otherKey, nil] {
            await #expect(throws: OAuthError.invalidGrant) {
                try await Self.exchange(fixture, code, Self.credentials, key: other)
            }
        }
        #expect(try await Self.exchange(fixture, code, Self.credentials, key: Self.key).tokenType == "DPoP")
        #expect(try await Self.boundKeys(fixture) == [nil])
    }

    @Test("Of a code's owner and a thief at the same moment, only the owner gets tokens")
    func codeRace() async throws {
        let fixture = try await ProviderFixture()
        for _ in 0..<5 {
            let code = try await fixture.code(["dpop_jkt": Self.key])
            let winners = await withTaskGroup(of: String?.self) { group in
                for key in [Self.otherKey, Self.key, Self.otherKey] {
                    group.addTask { (try? await Self.exchange(fixture, code, key: key)).map { _ in key } }
                }
                return await group.reduce(into: [String]()) { keys, key in if let key { keys.append(key) } }
            }
            #expect(winners == [Self.key])
        }
    }

    @Test(
        "A dpop_jkt that is not a thumbprint is refused, and no code is made",
        arguments: ["short", String(repeating: "A", count: 44), String(repeating: "=", count: 43), "ä"])
    func malformedThumbprint(text: String) async throws {
        let fixture = try await ProviderFixture()
        #expect(try await fixture.redirect(["dpop_jkt": text])["error"] == "invalid_request")
        #expect(try await fixture.count("oauth_codes") == 0)
    }

    // MARK: - Clients that must prove

    @Test("A client whose tokens all belong to a key gets none without a proof, and nothing is spent")
    func proofDemanded() async throws {
        var client = ProviderFixture.bank
        client.requiresProof = true
        let fixture = try await ProviderFixture(clients: [client])
        let code = try await fixture.code()
        await #expect(throws: OAuthError.expected("invalid_dpop_proof")) {
            try await Self.exchange(fixture, code, key: nil)
        }
        let tokens = try await Self.exchange(fixture, code, key: Self.key)
        await #expect(throws: OAuthError.expected("invalid_dpop_proof")) {
            try await fixture.refresh(tokens.refreshToken)
        }
        #expect(try await fixture.refresh(tokens.refreshToken, keyThumbprint: Self.key).tokenType == "DPoP")
    }

    @Test("A nonce is required of all clients of a realm, or of one")
    func noncePolicy() async throws {
        var strict = ProviderFixture.bank
        strict.requiresNonce = true
        let fixture = try await ProviderFixture(clients: [strict, ProviderFixture.other])
        #expect(fixture.grants.configuration.noncePolicy(of: strict) == .required)
        #expect(fixture.grants.configuration.noncePolicy(of: ProviderFixture.other) == .offered)
        var configuration = fixture.grants.configuration
        configuration.requiresNonce = true
        #expect(configuration.noncePolicy(of: ProviderFixture.other) == .required)
    }
}
