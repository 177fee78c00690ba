import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("Logins of an installation that gets another key")
struct LoginKeyTests {
    /// Gives the installation another key.
    private static func change(
        _ world: LoginWorld, to key: AssertionKey, on node: OAuthProvider? = nil
    ) async throws {
        let provider = node ?? world.provider
        guard
            let (instance, app) = try await ClientInstance.find(
                world.instance, in: provider.configuration, provider.context)
        else { throw UnexpectedOutcome() }
        let metadata = try InstanceMetadata(
            ProviderFixture.request(key, ["client_id": .string(world.instance)]), of: app, as: world.instance,
            clock: world.clock)
        _ = try await provider.registration.change(instance, of: app, to: metadata, token: Secret("unused"))
    }

    @Test("Another key of the installation ends what belongs to the old one, and signs its user in by the same device")
    func anotherKey() async throws {
        let world = try await LoginWorld()
        let other = try await world.another()
        let sessions = Sessions(world.signing.base.context)
        let typed = try await world.logIn(try await world.typed())
        let implicit = try await world.logIn(try world.implicit())
        let others = try await other.logIn(try await other.typed())
        let (session, othersSession) = (try #require(typed.session), try #require(others.session))
        // The same key again changes nothing.
        try await Self.change(world, to: world.key)
        #expect(try await sessions.live(token: session) != nil)
        let key = try AssertionKey()
        try await Self.change(world, to: key)
        #expect(try await sessions.live(token: session) == nil)
        for tokens in [typed, implicit] { #expect(try await !world.isLive(tokens)) }
        #expect(try await sessions.live(token: othersSession) != nil)
        #expect(try await other.isLive(others))
        #expect(try await sessions.live(id: world.signing.base.ana.id) != nil, "it belongs to no key")

        #expect(try await world.refusal(try world.implicit()) == "invalid_client")
        var parts = try world.implicit()
        parts.jkt = try #require(KeyThumbprint(text: key.jwk.thumbprint))
        let tokens = try await world.send(
            try await parts.signed, proof: TokenRequestProof(keyThumbprint: key.jwk.thumbprint, nonce: "nonce"),
            by: key)
        #expect(tokens.scopes == ["accounts"])
    }

    @Test("A login whose key is replaced while it is done gives nothing", arguments: [true, false])
    func replacedMeanwhile(isTyped: Bool) async throws {
        let world = try await LoginWorld()
        let parts = isTyped ? try await world.typed() : try world.implicit()
        let sessions = try await world.count("sessions")
        let refusal = try await world.refusal {
            try await world.logIn(parts) { try await Self.change(world, to: AssertionKey()) }
        }
        #expect(refusal == "invalid_grant")
        #expect(try await world.count("sessions") == sessions)
        #expect(try await world.count("grants", "client_id = '\(world.instance)'") == 0)
    }

    @Test("A login, another key and the end of the installation take its row first, so that none waits for another")
    func order() async throws {
        let world = try await LoginWorld()
        let root = try await world.administrator()
        let written = WrittenStatements(world.database)
        let node = try LoginWorld.node(written, of: world.signing)
        _ = try await world.logIn(try world.implicit(), on: node)
        try await Self.change(world, to: try AssertionKey(), on: node)
        try await RegistrationAdministration(Administration(node.context)).end(world.instance, by: root)
        let row = "UPDATE client_instances"
        let acts = written.taken().filter { $0.contains(row) }
        #expect(acts.count == 3)
        let held = ["client_instances", "consents", "signing_containers", "sessions", "grants"]
        for act in acts {
            let locked = act.filter { statement in held.contains { statement.hasSuffix(" " + $0) } }
            #expect(locked.count > 1 && locked.first == row)
        }
    }

    @Test("Of another key and logins by the old one at once, nothing of the old one is left")
    func race() async throws {
        try await LoginWorld.race { try await Self.change($0, to: AssertionKey()) }
    }
}
