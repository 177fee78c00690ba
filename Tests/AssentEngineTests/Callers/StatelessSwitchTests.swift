import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Sign-ins that leave nothing behind, in an app that allowed them once")
struct StatelessSwitchTests {
    private static let app = ProviderFixture.pay { $0.allowsStateless = true }

    /// An app of the same realm that goes on allowing them.
    private static let shop = ProviderFixture.pay { app in
        app.allowsStateless = true
        app.client.id = "shop"
    }

    /// An installation with a session of the kind, and an access token of it.
    private struct World {
        let fixture: ProviderFixture
        let instance: String
        let key: AssertionKey
        let session: Secret
        let access: Secret

        init() async throws {
            fixture = try await ProviderFixture(apps: [StatelessSwitchTests.app, StatelessSwitchTests.shop])
            let (registered, key) = try await fixture.instance()
            (instance, self.key) = (registered.id, key)
            let sessions = Sessions(fixture.context)
            let begun = try await sessions.begin(
                userID: fixture.user.id, realm: "/alpha", limits: ProviderFixture.longSession,
                sender: SenderBinding(keyThumbprint: key.jwk.thumbprint))
            session = begun.token
            _ = try await fixture.database.run(
                SQLStatement(
                    """
                    UPDATE sessions SET kind = \(SessionKind.stateless.rawValue) WHERE audit_id = \(begun.auditID)
                    """, expecting: .exactly(1)))
            let redirect = "https://pay.example/cb"
            let asked = try ProviderFixture.authorization([
                "client_id": instance, "redirect_uri": redirect, "scope": "openid accounts",
            ])
            let outcome = try await AuthorizationEndpoint(fixture.grants).answer(
                asked, session: try await sessions.live(token: session))
            guard case .redirect(let answer) = outcome else { throw UnexpectedOutcome() }
            let form = try ProviderFixture.parameters(
                [
                    "grant_type": "authorization_code", "code": try #require(answer["code"]),
                    "redirect_uri": redirect, "code_verifier": ProviderFixture.verifier,
                ], AssertionKey.form(try await key.assertion(of: instance, now: fixture.clock)))
            let tokens = try await fixture.grants.tokens(form, keyThumbprint: key.jwk.thumbprint)
            #expect(tokens.refreshToken == nil)
            access = tokens.accessToken
        }

        /// How many rows a look-up finds by which a proof may be spent.
        func spending(_ lookUp: ProofLookUp) async throws -> Int64? {
            try await fixture.database.run(
                .read("SELECT count(*) AS n FROM \(lookUp.source) AND \(lookUp.isValid())")
            ).first?.integer("n")
        }
    }

    /// The file's apps, and whether sessions that were begun in the first of them count.
    private static let files: [(apps: [OAuthApp], counts: Bool)] = [
        ([app, shop], true), ([ProviderFixture.pay, shop], false), ([ProviderFixture.pay], false), ([app], true),
    ]

    @Test("Where a file was changed to allow none, the tokens of such sign-ins count no more, and spend no proof")
    func tokens() async throws {
        let world = try await World()
        let typed = try await world.fixture.userTokens(of: world.instance, world.key, scope: "openid accounts")
        for file in Self.files {
            let node = try await world.fixture.secondNode(apps: file.apps)
            for (token, counts) in [(world.access, file.counts), (typed.accessToken, true)] {
                let check = try await node.check(accessToken: token, keyThumbprint: world.key.jwk.thumbprint)
                let isGranted = if case .granted = check { true } else { false }
                #expect(isGranted == counts)
                if !counts {
                    guard case .refused(.kindDisabled) = check else { throw UnexpectedOutcome() }
                }
                let claims = try #require(try await node.accessClaims(token))
                let composed = claims.composed(for: node)
                #expect(try await world.spending(composed) == (counts ? 1 : 0))
                // One look-up, whether a proof stands beside the token or not.
                let reading = claims.reading(realm: node.configuration.realm, at: node.now)
                #expect(reading == composed.reading)
                let lookUp = node.lookUps.lookUp(claims, at: node.now)
                #expect(reading == lookUp.reading)
                let insertion = ProofInsertion(name: "name", earliest: 1, expiresAt: 2)
                #expect(lookUp.spending(insertion) == composed.spending(insertion))
            }
        }
    }

    @Test("… and the sessions themselves are found no more, also where another app of the realm allows them")
    func sessions() async throws {
        let world = try await World()
        let (fixture, thumbprint) = (world.fixture, world.key.jwk.thumbprint)
        for file in Self.files {
            let sessions = Sessions(fixture.context, apps: ["/alpha": file.apps, "/other": [Self.app]])
            #expect(try await (sessions.live(token: world.session) != nil) == file.counts)
            let lookUp = sessions.lookUp(token: world.session, realm: "/alpha", keyThumbprint: thumbprint)
            #expect(try await world.spending(lookUp.composed()) == (file.counts ? 1 : 0))
            // A user's own session is none of them.
            #expect(try await sessions.live(token: fixture.sessionToken) != nil)
        }
    }
}
