import Assent
import AssentCore
import AssentServer
import Foundation
import Testing

@testable import AssentCLI
@testable import AssentDemo

/// Users of whom nothing is to be left, by the façade alone, against the real server.
@Suite("The façade's sign-ins that leave nothing behind")
struct StatelessUserTests {
    /// The app allows them.
    private static func allowed(_ file: String) -> String {
        let types = "        grantTypes: [authorization_code, refresh_token, client_credentials]\n"
        return file.replacing(types, with: types + "        stateless: true\n")
    }

    /// An installation that is registered.
    private func installation(_ story: Story, _ vault: String) async throws -> Assent {
        let operating = try story.makeAssent(vault: "operator")
        try await story.signIn(operating, forcing: false)
        let token = try await InstallationScene(story).initialAccessToken(operating)
        await operating.shutdown()
        return try process(story, vault, token: token)
    }

    /// A process of the installation with this vault.
    private func process(_ story: Story, _ vault: String, token: Secret? = nil) throws -> Assent {
        try story.makeAssent(vault: vault) { configuration, keys in
            configuration.client.id = InstallationScene.app
            configuration.registration = RegistrationConfiguration(keys: keys, initialAccessToken: token)
            configuration.dpop = .installation
        }
    }

    private func signIn(_ story: Story, _ app: Assent, password: Secret? = nil) async throws {
        try await app.authenticateStateless("Login") { step in
            if password != nil, step.refusal != nil { return .decline }
            step[NameCallback.self]?.name = story.world.account.username
            step[PasswordCallback.self]?.password = (password ?? story.world.account.password).reveal()
            if step[TextInputCallback.self] != nil {
                let code = try story.freshCode()
                step[TextInputCallback.self]?.text = code
            }
            return .next
        }
    }

    /// What is stored of an installation.
    private func stored(_ story: Story, _ vault: String) throws -> [String: Data] {
        let directory = "\(story.world.directory)/\(vault)"
        var files: [String: Data] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: directory) {
            files[name] = FileManager.default.contents(atPath: "\(directory)/\(name)")
        }
        return files
    }

    @Test("32 Session and tokens are in this process alone, nothing is written, and another process sees nobody")
    func alone() async throws {
        try await World.run(logger: CollectingLog().logger, editing: Self.allowed) { story in
            let app = try await installation(story, "stateless")
            _ = try await app.registration?.register()
            let before = try stored(story, "stateless")
            try await signIn(story, app)

            let user = try #require(try await app.user())
            #expect(user.session?.keyThumbprint != nil)
            #expect(try await user.token().refreshToken == nil)
            let subject = try await user.token().idToken?.subject
            #expect(try await user.userInfo().sub == subject)
            let (kept, keptTokens) = (try await app.tokens.session(), try await app.tokens.storedTokens())
            #expect(kept == nil && keptTokens == nil)
            #expect(try stored(story, "stateless") == before)

            // The route takes users alone.
            let reply = try await app.userClient.sendAuthenticatedRequest(.get(story.transfers))
            #expect(reply.status == 403)

            let other = try process(story, "stateless")
            #expect(try await other.user() == nil)
            try await signIn(story, other)
            let (one, two) = (try await app.user()?.session, try await other.user()?.session)
            #expect(one != nil && two != nil && one?.token != two?.token)
            #expect(try await app.user()?.userInfo() != nil)

            story.clock.advance(by: 86_400)
            let expired = await #expect(throws: ResourceError.self) {
                try await app.userClient.sendAuthenticatedRequest(.get(story.transfers))
            }
            #expect(expired?.number == 9010)
            await app.shutdown()
            await other.shutdown()
        }
    }

    @Test("A second one takes the place of the first, one that fails does not, and a sign-out ends it")
    func second() async throws {
        try await World.run(logger: CollectingLog().logger, editing: Self.allowed) { story in
            let app = try await installation(story, "twice")
            _ = try await app.registration?.register()
            try await signIn(story, app)
            let first = try #require(try await app.user()?.session)

            await #expect(throws: (any Error).self) { try await signIn(story, app, password: Secret("wrong")) }
            #expect(try await app.user()?.session?.token == first.token)

            try await signIn(story, app)
            let second = try #require(try await app.user()?.session)
            #expect(second.token != first.token)
            #expect(try await app.user()?.userInfo() != nil)

            #expect(await app.signOut().isComplete)
            #expect(try await app.user() == nil)
            await app.shutdown()
        }
    }

    @Test("A stored user whom the app keeps revokes and signs out alone beside who is signed in in memory")
    func beside() async throws {
        try await World.run(logger: CollectingLog().logger, editing: Self.allowed) { story in
            let app = try await installation(story, "beside")
            _ = try await app.registration?.register()
            try await story.signIn(app, forcing: false)
            let stored = try #require(try await app.user())
            _ = try await stored.token()
            try await signIn(story, app)
            let memory = try #require(try await app.user())
            let access = try await memory.token().accessToken

            #expect(await stored.revoke().isComplete)
            #expect(try await memory.token().accessToken == access)
            let (left, leftTokens) = (try await app.tokens.session(), try await app.tokens.storedTokens())
            #expect(left != nil && leftTokens == nil)
            #expect(await stored.signOut().isComplete)
            let kept = try await app.tokens.session()
            #expect(kept == nil)
            #expect(try await app.user()?.session?.token == memory.session?.token)
            #expect(try await memory.token().accessToken == access)

            #expect(await memory.signOut().isComplete)
            #expect(try await app.user() == nil)
            await app.shutdown()
        }
    }

    @Test("An app that does not say so is told 9034, and an installation that is not registered 9002")
    func refused() async throws {
        try await World.run(logger: CollectingLog().logger) { story in
            let app = try await installation(story, "refused")
            let unknown = await #expect(throws: ResourceError.self) { try await signIn(story, app) }
            #expect(unknown?.number == 9002)
            _ = try await app.registration?.register()
            let refused = await #expect(throws: ResourceError.self) { try await signIn(story, app) }
            #expect(refused?.number == 9034)
            #expect(try await app.user() == nil)
            await app.shutdown()
        }
    }
}
