import AssentCore
import AssentJOSE
import AssentStore
import Testing

@testable import AssentEngine

@Suite("Look-ups of access tokens whose text is put together once")
struct AccessLookUpTests {
    private static let configuration: OAuthProviderConfiguration = {
        var configuration = OAuthProviderConfiguration(
            realm: "/alpha", issuer: ProviderFixture.issuer, clients: [ProviderFixture.bank])
        let apps = [
            ProviderFixture.pay(),
            ProviderFixture.pay { app in
                app.client.id = "shop"
                app.allowsStateless = true
                app.versions = AppVersions(
                    named: ["token": .disabled, "since": .enabled, "jkt:": .loginOnly],
                    sealing: ["since": .required])
            },
            ProviderFixture.pay { app in
                app.client.id = "old"
                app.versions = AppVersions(named: ["2": .enabled], others: .disabled, othersSealing: .required)
            },
        ]
        configuration.apps = Dictionary(uniqueKeysWithValues: apps.map { ($0.id, $0) })
        return configuration
    }()

    private static func claims(of clientID: String, subject: String = "user") throws -> AccessClaims {
        let claims = JWTClaims([
            "assent_grant": "grant", "jti": "token", "sub": .string(subject), "client_id": .string(clientID),
            "scope": "a b", "iat": 1, "exp": 2,
        ])
        return try #require(AccessClaims(claims))
    }

    private static func instance(of app: String) -> String {
        "\(app)\(OAuthApp.separator)\(Base64URL.encode([UInt8](repeating: 7, count: OAuthApp.randomBytes)))"
    }

    @Test("Each is the one that is put together from its parts, for each app, sealed or not, whatever its values are")
    func texts() throws {
        let (configuration, lookUps) = (Self.configuration, AccessLookUps(Self.configuration))
        let insertions = [
            ProofInsertion(name: "name", earliest: 5, expiresAt: 7),
            ProofInsertion(name: "\0token", earliest: .min, expiresAt: .max),
        ]
        for clientID in [ProviderFixture.bank.id, "gone"] + ["pay", "shop", "old", "gone"].map(Self.instance(of:)) {
            let claims = try Self.claims(of: clientID)
            for (isSealed, now) in [(true, 1_800_000_000), (false, 0)] as [(Bool, Int64)] {
                let lookUp = lookUps.lookUp(claims, at: now, isSealed: isSealed)
                let composed = AccessLookUps.composed(
                    tokenID: "token", grantID: "grant", realm: "/alpha", app: configuration.app(ofInstance: clientID),
                    at: now, isSealed: isSealed)
                #expect(lookUp.reading == composed.reading)
                for insertion in insertions {
                    let (made, whole) = (lookUp.spending(insertion), composed.spending(insertion))
                    #expect(made == whole, "\(clientID) \(isSealed)")
                    for sign in ["?", "$"] as [Unicode.Scalar] {
                        #expect(made.sql.text(parameter: sign) == whole.sql.text(parameter: sign))
                    }
                }
            }
        }
    }

    @Test("For a client's own token neither users nor sessions are looked through, and a user's grant is not found")
    func clientItself() throws {
        let id = ProviderFixture.bank.id
        let own = try Self.claims(of: id, subject: id)
        let reading = own.reading(realm: "/alpha", at: 1)
        let text = reading.sql.text()
        #expect(reading.isRead && !text.contains("users") && !text.contains("sessions"))
        #expect(text.contains("g.user_id IS NULL"))
        #expect(AccessLookUps(Self.configuration).lookUp(own, at: 1).reading == reading)
        #expect(reading.sql.arguments == ["token", "grant", "/alpha"])
        // The control: a user's token has both.
        let other = try Self.claims(of: id).reading(realm: "/alpha", at: 1).sql.text()
        #expect(other.contains("JOIN users") && other.contains("JOIN sessions"))
    }

    @Test("Where an app may not have offline_access any more, a token whose session has ended spends no proof")
    func offline() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        let (instance, key) = try await fixture.instance()
        let token = try await fixture.userTokens(of: instance.id, key).accessToken
        let narrowed = try await fixture.secondNode(
            apps: [ProviderFixture.pay { $0.client.scopes.removeAll { $0 == OAuthClient.offlineAccess } }])
        func spending(on node: OAuthProvider) async throws -> Int64? {
            let claims = try #require(try await node.accessClaims(token))
            let lookUp = claims.composed(for: node)
            return try await fixture.database.run(
                .read("SELECT count(*) AS n FROM \(lookUp.source) AND \(lookUp.isValid())")
            ).first?.integer("n")
        }
        #expect(try await spending(on: narrowed) == 1)
        _ = try await Sessions(fixture.context).end(id: fixture.session.id)
        #expect(try await spending(on: narrowed) == 0)
        #expect(try await spending(on: fixture.grants) == 1)
        guard case .refused(.sessionEnded) = try await narrowed.check(accessToken: token) else {
            throw UnexpectedOutcome()
        }
        #expect(try await fixture.grants.access(token: token) != nil)
    }

    @Test("Where some versions must seal their calls, a plain call has another condition than a sealed one")
    func sealing() throws {
        let lookUps = AccessLookUps(Self.configuration)
        let insertion = ProofInsertion(name: "name", earliest: 5, expiresAt: 7)
        for (clientID, differs) in [
            (ProviderFixture.bank.id, false), (Self.instance(of: "pay"), false), (Self.instance(of: "shop"), true),
            (Self.instance(of: "old"), true),
        ] {
            let claims = try Self.claims(of: clientID)
            let sealed = lookUps.lookUp(claims, at: 1, isSealed: true).spending(insertion)
            let plain = lookUps.lookUp(claims, at: 1, isSealed: false).spending(insertion)
            #expect((sealed != plain) == differs)
        }
    }
}

extension AccessClaims {
    /// How the token is found at a node now, put together from its parts.
    func composed(for node: OAuthProvider) -> ProofLookUp {
        AccessLookUps.composed(
            tokenID: tokenID, grantID: grantID, realm: node.configuration.realm,
            app: node.configuration.app(ofInstance: clientID), at: node.now)
    }
}
