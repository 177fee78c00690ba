import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("What belongs to something that this version does not know")
struct SenderBindingTests {
    private static let key = Base64URL.encode([UInt8](repeating: 1, count: 32))

    /// What a later version, or a defect, may have left in a column. The key's own thumbprint is part of each.
    static let unknown = [
        "x5t#S256:\(key)", key, "JKT:\(key)", " jkt:\(key)", "jkt\(key)", "jkt", "", "x5t#S256:a jkt:\(key)",
    ]

    /// A public client and one that authenticates, whose grants belong to the client.
    private static let clients = [ProviderFixture.bank, office]

    private static var office: OAuthClient {
        var client = ProviderFixture.bank
        client = OAuthClient(
            id: "office", kind: .confidential(secretHash: OAuthClient.hash(ofSecret: Secret(ProviderFixture.secret))),
            redirectURIs: client.redirectURIs, scopes: client.scopes)
        client.idTokenAlgorithm = .es256
        client.introspectsAll = true
        return client
    }

    private static func write(_ text: String?, to table: String, of fixture: ProviderFixture) async throws {
        _ = try await fixture.database.run(
            SQLStatement("UPDATE \(SQL(verbatim: table)) SET sender = \(text)", expecting: .exactly(1)))
    }

    private static func credentials(_ client: OAuthClient) -> [String: String?] {
        ["client_id": client.id, "client_secret": client.kind == .public ? nil : ProviderFixture.secret]
    }

    @Test("A column is read as it was written, and only a key can be proved", arguments: unknown)
    func reading(text: String) {
        let known = SenderBinding(stored: "jkt:\(Self.key)")
        #expect(known == .key(thumbprint: Self.key) && known.stored == "jkt:\(Self.key)")
        #expect(known.isProved(byKey: Self.key) && !known.isProved(byKey: nil) && !known.isProved(byKey: "a"))
        let other = SenderBinding(stored: text)
        #expect(other == .unknown(text) && other.stored == text && other.keyThumbprint == nil)
        for proved in [nil, "", Self.key, text] {
            #expect(!other.isProved(byKey: proved) && !SenderBinding.allows(proved, where: other))
        }
        #expect(SenderBinding.allows(nil, where: nil) && SenderBinding.allows(Self.key, where: nil))
    }

    @Test("The database says of each text the same as the engine", arguments: unknown + ["jkt:\(key)"])
    func sameRule(text: String) async throws {
        let fixture = try await ProviderFixture()
        try await Self.write(text, to: "sessions", of: fixture)
        let rows = try await fixture.database.run(
            .read("SELECT sender FROM sessions WHERE \(SenderBinding.isProvable("sender"))"))
        #expect(rows.isEmpty == (SenderBinding(stored: text).keyThumbprint == nil))
    }

    @Test("A session is refused with each key's proof, and without one", arguments: unknown)
    func session(text: String) async throws {
        let fixture = try await ProviderFixture()
        try await SenderProofs.begin(fixture.context)
        let key = try SoftwareSigningKey.generate(.es256)
        let thumbprint = try JWK(publicKeyInfo: key.publicKeyInfo).thumbprint
        let proofs = SenderProofs(fixture.context)
        func verify(_ stored: String, with key: SoftwareSigningKey?) async throws -> CheckedProof? {
            try await Self.write(stored, to: "sessions", of: fixture)
            let session = try #require(await Sessions(fixture.context).live(token: fixture.sessionToken))
            let url = "https://am.example/door"
            var fields: [String] = []
            if let key {
                fields = [
                    try await DPoPProof.make(
                        method: "GET", uri: url, accessToken: fixture.sessionToken,
                        nonce: proofs.nonce(of: .authorizationServer), key: key, clock: fixture.clock)
                ]
            }
            let presented = PresentedProof(fields: fields, method: "GET", url: url, server: .authorizationServer)
            return try await proofs.session(
                of: fixture.sessionToken, among: Sessions(fixture.context), presented,
                policies: [session.realm: .offered])?.proof
        }
        let stored = text.replacing(Self.key, with: thumbprint)
        for key in [key, nil] {
            await #expect(throws: SenderProofRefusal.self) { try await verify(stored, with: key) }
        }
        #expect(try await verify("jkt:\(thumbprint)", with: key) != nil, "the control")
    }

    @Test("A grant gives nothing to a public and to a confidential client, and is as it was", arguments: unknown)
    func grant(text: String) async throws {
        for client in Self.clients {
            let fixture = try await ProviderFixture(clients: Self.clients)
            let credentials = Self.credentials(client)
            let code = try await fixture.code(["client_id": client.id])
            let tokens = try await fixture.exchange(code, credentials)
            let refreshToken = try #require(tokens.refreshToken)
            func introspected() async throws -> JSONValue? {
                let form = try ProviderFixture.parameters(
                    ["token": refreshToken.reveal()], Self.credentials(Self.office))
                return try await TokenIntrospection(fixture.grants).answer(form)["active"]
            }
            try await Self.write(text, to: "grants", of: fixture)
            for key in [nil, Self.key] {
                await #expect(throws: OAuthError.invalidGrant) {
                    try await fixture.refresh(refreshToken, credentials, keyThumbprint: key)
                }
                let check = try await fixture.grants.check(accessToken: tokens.accessToken, keyThumbprint: key)
                guard case .refused(.keyMismatch) = check else {
                    Issue.record("\(client.id): \(check)")
                    continue
                }
            }
            #expect(try await introspected() == false)
            let row = try #require(await fixture.database.run(.read("SELECT * FROM grants")).first)
            #expect(try row.sender() == .unknown(text) && row.optionalInteger("revoked_at") == nil)
            try await Self.write(nil, to: "grants", of: fixture)
            #expect(try await introspected() == true)
            _ = try await fixture.refresh(refreshToken, credentials, keyThumbprint: Self.key)
        }
    }

    @Test("A code is refused with each key and without one, and is not spent", arguments: unknown)
    func code(text: String) async throws {
        for client in Self.clients {
            let fixture = try await ProviderFixture(clients: Self.clients)
            let code = try await fixture.code(["client_id": client.id, "dpop_jkt": Self.key])
            let form = try ProviderFixture.parameters(
                [
                    "grant_type": "authorization_code", "code": code, "redirect_uri": "https://bank.example/cb",
                    "code_verifier": ProviderFixture.verifier,
                ], Self.credentials(client))
            try await Self.write(text, to: "oauth_codes", of: fixture)
            for key in [nil, Self.key] {
                await #expect(throws: OAuthError.invalidGrant) {
                    try await fixture.grants.tokens(form, keyThumbprint: key)
                }
            }
            try await Self.write("jkt:\(Self.key)", to: "oauth_codes", of: fixture)
            #expect(try await fixture.grants.tokens(form, keyThumbprint: Self.key).tokenType == "DPoP")
        }
    }

    @Test("A transaction is not taken, with each key and without one", arguments: unknown)
    func transaction(text: String) async throws {
        let fixture = try await TransactionFixture()
        let bound = try fixture.binding(sender: .key(thumbprint: Self.key))
        let id = try await fixture.approved(bound)
        func write(_ text: String) async throws {
            _ = try await fixture.database.run(
                SQLStatement("UPDATE transactions SET sender = \(text) WHERE id = \(id)", expecting: .exactly(1)))
        }
        try await write(text)
        for binding in [bound, try fixture.binding()] {
            #expect(try await fixture.transactions.take(id: id, binding: binding).refusal == .key)
        }
        try await write("jkt:\(Self.key)")
        #expect(try await fixture.transactions.take(id: id, binding: bound).isTaken)
    }

    @Test(
        "An access token of ours that names something else in cnf is no bearer token",
        arguments: [
            #"{"x5t#S256":"a"}"#, #"{"jkt":"\#(key)","x5t#S256":"a"}"#, #"{"jkt":1}"#, "{}", "null", #""jkt""#,
        ])
    func confirmation(text: String) async throws {
        let fixture = try await ProviderFixture()
        let token = try await fixture.tokens().accessToken
        func signed(_ confirmation: String) async throws -> Secret {
            var claims = try jwtClaims(token).object
            claims["cnf"] = try JSONValue.parse(confirmation)
            return try await fixture.grants.keys.sign(
                claims, type: OAuthProvider.accessTokenType, for: .accessToken,
                with: ProviderFixture.bank.accessTokenAlgorithm)
        }
        let other = try await signed(text)
        for key in [nil, Self.key] {
            #expect(try await fixture.grants.access(token: other, keyThumbprint: key) == nil)
        }
        let known = try await signed(#"{"jkt":"\#(Self.key)"}"#)
        #expect(try await fixture.grants.access(token: known, keyThumbprint: Self.key) != nil)
    }
}
