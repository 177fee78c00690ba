import Assent
import AssentCore
import AssentServer
import Foundation
import HTTPTypes
import Testing

@testable import AssentCLI
@testable import AssentDemo

/// An app whose session belongs to its key, by the façade alone.
@Suite("The façade with a session that belongs to a key")
struct BoundFacadeTests {
    /// An app whose resource gets `access`.
    private func app(_ story: Story, _ access: ResourceAccess, keys: SoftwareKeyProvider) throws -> Assent {
        let file = try #require(ClientFile(endpoints: story.world.endpoints, configuration: story.world.configuration))
        var configuration = file.configuration(vault: .memory)
        configuration.transport = story.transport
        configuration.clock = story.clock
        configuration.dpop = .on(keys: keys)
        configuration.resources = configuration.resources.mapValues { _ in access }
        return try Assent(configuration)
    }

    @Test("Sign-in, payment with approval, step-up and sign-out are proved; what a thief has of the session is refused")
    func story() async throws {
        try await World.run(logger: CollectingLog().logger) { story in
            let directory = URL(fileURLWithPath: story.world.directory)
            for access in [ResourceAccess.session, .accessToken, .both] {
                let keys = SoftwareKeyProvider(
                    unprotectedFile: directory.appending(path: "\(SystemRandom().uuid()).keys"))
                let assent = try app(story, access, keys: keys)
                try await story.signIn(assent, forcing: false)
                let session = try #require(try await assent.tokens.session())
                let key = try #require(session.keyThumbprint)
                #expect(try await assent.tokens.tokens().keyThumbprint == key)
                let stolen = HTTPFields([
                    .init(
                        name: try #require(HTTPField.Name(story.world.endpoints.cookieName)),
                        value: session.token.reveal())
                ])
                #expect(try await story.plain(stolen) == 401)
                #expect(try await story.balance(assent) != nil)
                let paid = try await assent.send(.post(story.transfers, json: Story.transfer)) {
                    try story.answer(&$0)
                }
                #expect(paid.status == 201)
                #expect(try await assent.tokens.session() == session)

                try await story.signIn(assent, forcing: true)
                let raised = try #require(try await assent.tokens.session())
                #expect(raised.token != session.token && raised.keyThumbprint == key)
                #expect(try await story.plain(stolen) == 401)
                #expect(try await story.balance(assent) != nil)

                let result = await assent.signOut()
                #expect(result.isComplete, "\(result)")
                #expect(try await keys.keyNames().isEmpty)
                await assent.shutdown()
            }
        }
    }

    @Test("A stored session without a key stays so while it lives, and gives way to one with a key when it has ended")
    func unboundBefore() async throws {
        try await World.run(logger: CollectingLog().logger) { story in
            let file = URL(fileURLWithPath: story.world.directory).appending(path: "\(SystemRandom().uuid()).keys")
            let before = try story.makeAssent()
            try await story.signIn(before, forcing: false)
            let assent = try app(story, .session, keys: SoftwareKeyProvider(unprotectedFile: file))
            try await assent.tokens.install(try #require(try await before.tokens.session()))
            for forcing in [false, true] {
                try await story.signIn(assent, forcing: forcing)
                #expect(try #require(try await assent.tokens.session()).keyThumbprint == nil)
                #expect(try await story.balance(assent) != nil)
            }
            let old = try #require(try await assent.tokens.session())
            try await before.tokens.install(old)
            #expect(await before.signOut().isComplete)
            // The app has not heard that the session has ended, and sends it along.
            try await story.signIn(assent, forcing: false)
            let session = try #require(try await assent.tokens.session())
            #expect(session.token != old.token)
            let key = try #require(session.keyThumbprint)
            #expect(try await assent.tokens.tokens().keyThumbprint == key)
            #expect(try await story.balance(assent) != nil)
            for app in [before, assent] { await app.shutdown() }
        }
    }
}
