import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Grants of a session that is replaced in a step-up")
struct StepUpGrantTests {
    private let fixture: JourneyFixture
    private var provider: OAuthProvider

    init() async throws {
        fixture = try await JourneyFixture()
        provider = try OAuthProvider(
            fixture.context, keys: ServerKeys(fixture.context),
            configuration: OAuthProviderConfiguration(
                realm: "/alpha", issuer: ProviderFixture.issuer, clients: [ProviderFixture.bank]))
    }

    private func tokens(_ session: Secret) async throws -> IssuedTokens {
        let live = try await fixture.sessions.live(token: session)
        guard
            case .redirect(let redirect) = try await AuthorizationEndpoint(provider).answer(
                try ProviderFixture.authorization(), session: live)
        else { throw UnexpectedOutcome() }
        return try await provider.tokens(
            try ProviderFixture.parameters([
                "grant_type": "authorization_code", "client_id": "bank-app", "code": try #require(redirect["code"]),
                "redirect_uri": "https://bank.example/cb", "code_verifier": ProviderFixture.verifier,
            ]))
    }

    private func refresh(_ tokens: IssuedTokens) async throws -> IssuedTokens {
        try await provider.tokens(
            try ProviderFixture.parameters([
                "grant_type": "refresh_token", "client_id": "bank-app",
                "refresh_token": try #require(tokens.refreshToken).reveal(),
            ]))
    }

    /// Signs Ana in by password, and lets her prove more. The old session's tokens, and the new session.
    private func steppedUp() async throws -> (tokens: IssuedTokens, session: LiveSession) {
        let old = try await fixture.signIn()
        return (try await tokens(old), try await steppedUp(old))
    }

    /// Lets Ana prove more than she has in a session. The new session.
    private func steppedUp(_ old: Secret) async throws -> LiveSession {
        let first = try await fixture.start("Login", session: old)
        let second = try Page(
            await fixture.answer(first, [.string("ana"), .string(JourneyFixture.password)], session: old))
        let new = try await fixture.answer(second, [.string(fixture.code())], session: old).token()
        return try #require(await fixture.sessions.live(token: new))
    }

    @Test("Its tokens follow the new session with its level, and can be refreshed")
    func follows() async throws {
        let (tokens, session) = try await steppedUp()
        let access = try #require(await provider.access(token: tokens.accessToken))
        #expect(access.owner?.session == session)
        #expect(access.owner?.authLevel == 5)
        let next = try await refresh(tokens)
        #expect(try await provider.access(token: next.accessToken)?.owner?.session == session)
        _ = try await fixture.sessions.end(id: session.id)
        #expect(try await provider.access(token: next.accessToken) == nil)
    }

    @Test("An ID token from before the step-up still ends the session")
    func endSession() async throws {
        let (tokens, session) = try await steppedUp()
        let idToken = try #require(tokens.idToken)
        #expect(try jwtClaims(idToken)["sid"]?.string != session.auditID)
        _ = try await EndSessionEndpoint(provider).answer(
            try ProviderFixture.parameters(["id_token_hint": idToken.reveal()]))
        #expect(try await fixture.sessions.live(id: session.id) == nil)
    }

    @Test(
        "It still does when nothing of its grant is left, whether that was so before the step-up or only after it",
        arguments: [true, false])
    func endSessionLater(wasBefore: Bool) async throws {
        var client = ProviderFixture.bank
        client.grantTypes = [.authorizationCode]
        client.accessTokenLifetime = 60
        var world = self
        world.provider = try OAuthProvider(
            fixture.context, keys: ServerKeys(fixture.context),
            configuration: OAuthProviderConfiguration(
                realm: "/alpha", issuer: ProviderFixture.issuer, clients: [client]))
        let old = try await fixture.signIn()
        let tokens = try await world.tokens(old)
        if wasBefore {
            fixture.clock.advance(by: 60)
            #expect(try await world.provider.purge() == 1)
        }
        let session = try await steppedUp(old)
        if !wasBefore {
            fixture.clock.advance(by: 60)
            #expect(try await world.provider.purge() == 1)
        }
        let idToken = try #require(tokens.idToken)
        _ = try await EndSessionEndpoint(world.provider).answer(
            try ProviderFixture.parameters(["id_token_hint": idToken.reveal()]))
        #expect(try await fixture.sessions.live(id: session.id) == nil)
    }

    @Test("Of very many step-ups in a row the first session's ID token ends the last, and what is kept is bounded")
    func many() async throws {
        let fixture = try await ProviderFixture()
        let sessions = Sessions(fixture.context)
        let idToken = try #require(await fixture.tokens().idToken)
        let other = try await sessions.begin(
            userID: fixture.user.id, realm: "/alpha", limits: ProviderFixture.longSession)
        var session = fixture.session
        for _ in 0..<150 {
            let new = sessions.prepare(
                userID: session.user.id, epoch: session.user.epoch, realm: session.realm, authLevel: 0,
                limits: ProviderFixture.longSession, properties: JSONObject())
            _ = try await fixture.database.run(
                sessions.inheriting(from: session, to: new) + [sessions.ending(id: session.id, mustExist: true)])
            session = try #require(await sessions.live(id: new.id))
        }
        #expect(try await fixture.count("sessions", where: "length(earlier) BETWEEN 3900 AND 4100") == 1)
        _ = try await EndSessionEndpoint(fixture.grants).answer(
            try ProviderFixture.parameters(["id_token_hint": idToken.reveal()]))
        #expect(try await sessions.live(id: session.id) == nil)
        #expect(try await sessions.live(token: other.token) != nil, "the user's other sessions go on")
    }

    @Test("Grants of the user's other sessions stay where they are")
    func others() async throws {
        let elsewhere = try await fixture.signIn()
        let other = try await tokens(elsewhere)
        let before = try await provider.access(token: other.accessToken)?.owner
        _ = try await steppedUp()
        let after = try await provider.access(token: other.accessToken)?.owner
        #expect(before?.session != nil && after?.session == before?.session && after?.authLevel == before?.authLevel)
    }

    @Test("A revoked grant stays revoked")
    func revoked() async throws {
        let old = try await fixture.signIn()
        let tokens = try await tokens(old)
        try await provider.revoke(
            try ProviderFixture.parameters([
                "client_id": "bank-app", "token": try #require(tokens.refreshToken).reveal(),
            ]))
        let session = try await steppedUp(old)
        #expect(try await provider.access(token: tokens.accessToken) == nil)
        // The app tells so when its user signs out, and signs out then.
        let idToken = try #require(tokens.idToken)
        _ = try await EndSessionEndpoint(provider).answer(
            try ProviderFixture.parameters(["id_token_hint": idToken.reveal()]))
        #expect(try await fixture.sessions.live(id: session.id) == nil)
    }
}
