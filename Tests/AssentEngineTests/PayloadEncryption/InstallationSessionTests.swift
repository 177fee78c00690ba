import AssentCore
import AssentPayload
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("Sessions of payload encryption end with their installation, and with the key of it that has made them")
struct InstallationSessionTests {
    enum Way: CaseIterable { case itself, administrator, all, unused }

    private static let origin = "https://api.bank.example"

    private let fixture: ProviderFixture
    private let keys: PayloadKeys
    private let node: PayloadSessions
    private let kid: String

    init() async throws {
        fixture = try await ProviderFixture(apps: [ProviderFixture.pay()])
        keys = PayloadKeys(fixture.context)
        node = PayloadSessions(fixture.context, keys: keys)
        let now = fixture.clock.epochSeconds
        kid = try await keys.add(notBefore: now, notAfter: now + 86_400 * 365) { _ in .read("SELECT 1 AS one") }.kid
    }

    /// A session that was agreed on, by the key that an installation had when it was told so; with the role `app` when
    /// none is named.
    private func kept(_ installation: ClientRegistration.Registered?) async throws -> [UInt8] {
        let client = installation?.id
        let stored = Secret(bytes: SystemRandom().bytes(PayloadSecrets.storedLength))
        let secrets = try PayloadSecrets(session: node.makeName(), stored: stored)
        let peer = PayloadPeer(
            role: client == nil ? .app : .device, origin: Self.origin, client: client, app: "pay", version: "3.2.0",
            platform: "linux")
        try await node.keep(secrets, peer: peer, kid: kid, clientKey: installation?.metadata.keyThumbprint)
        return secrets.session
    }

    /// A node on the same database. What ends at the first one is not told to a context of its own.
    private func anotherNode() -> PayloadSessions {
        PayloadSessions(fixture.context.anotherNode(on: fixture.database), keys: keys)
    }

    private func opens(_ session: [UInt8], at node: PayloadSessions) async throws -> Bool {
        let head = FrameHead(.request, session: session, number: 9, random: SystemRandom())
        do {
            _ = try await node.opener(head, origin: Self.origin)
            return true
        } catch PayloadRefusal.unknownSession {
            return false
        }
    }

    private func end(_ registered: ClientRegistration.Registered, _ way: Way) async throws {
        switch way {
        case .itself:
            let (instance, app) = try await fixture.grants.registration.instance(
                registered.id, token: registered.token)
            try await fixture.grants.registration.end(instance, of: app)
        case .administrator:
            try await fixture.registrations.end(registered.id, by: try await fixture.administrator())
        case .all:
            #expect(try await fixture.registrations.endSome(of: "pay", by: try await fixture.administrator()) == 1)
        case .unused:
            fixture.clock.advance(by: 60)
            _ = try await fixture.database.run(
                SQLStatement(
                    "UPDATE client_instances SET expires_at = \(fixture.clock.epochSeconds) WHERE id = \(registered.id)"
                ))
            _ = try await fixture.grants.purge()
        }
    }

    /// What an installation has after it has replaced its registration, with this key.
    private func changed(
        _ registered: ClientRegistration.Registered, to key: AssertionKey
    ) async throws -> ClientRegistration.Registered {
        let registration = fixture.grants.registration
        let (instance, app) = try await registration.instance(registered.id, token: registered.token)
        let metadata = try InstanceMetadata(
            ProviderFixture.request(key, ["client_id": .string(registered.id)]), of: app, as: registered.id,
            clock: fixture.clock)
        return try await registration.change(instance, of: app, to: metadata, token: registered.token)
    }

    @Test("Whoever ends it: here and in the database at once; sessions of the app stay", arguments: Way.allCases)
    func ended(_ way: Way) async throws {
        let (registered, _) = try await fixture.instance()
        let (own, other) = (try await kept(registered), try await kept(nil))
        #expect(try await opens(own, at: node))
        try await end(registered, way)
        #expect(try await !opens(own, at: node))
        #expect(try await opens(other, at: node), "the control")
        // A handshake that was under way leaves none behind.
        await #expect(throws: PayloadRefusal.unknownKey) { _ = try await kept(registered) }
        #expect(node.count == 1)
        guard TestDatabase.isPostgreSQL else { return }
        #expect(try await fixture.count("payload_sessions") == 1)
    }

    @Test("A message that was claimed before the end, or another key, is nobody's after it", arguments: [true, false])
    func claimed(isEnd: Bool) async throws {
        let (registered, _) = try await fixture.instance()
        let head = FrameHead(.request, session: try await kept(registered), number: 9, random: SystemRandom())
        _ = try node.claim(head)
        #expect(node.peer(of: head)?.client == registered.id)
        if isEnd {
            try await end(registered, .administrator)
        } else {
            _ = try await changed(registered, to: try AssertionKey())
        }
        #expect(node.peer(of: head) == nil)
    }

    @Test("Another installation's sessions stay, and so do those of one whose end has failed")
    func others() async throws {
        let (registered, _) = try await fixture.instance()
        let (neighbour, _) = try await fixture.instance()
        let (own, others) = (try await kept(registered), try await kept(neighbour))
        let (instance, app) = try await fixture.grants.registration.instance(registered.id, token: registered.token)
        _ = try await fixture.database.run(
            SQLStatement("UPDATE client_instances SET key_thumbprint = 'another' WHERE id = \(registered.id)"))
        await #expect(throws: OAuthError.self) { try await fixture.grants.registration.end(instance, of: app) }
        #expect(try await opens(own, at: node))
        try await end(registered, .administrator)
        #expect(try await !opens(own, at: node))
        #expect(try await opens(others, at: node))
    }

    @Test("However many end between two looks, their names do not pile up, and their sessions stay ended")
    func many() async throws {
        let (registered, _) = try await fixture.instance()
        let (own, other) = (try await kept(registered), try await kept(nil))
        try await end(registered, .administrator)
        #expect(node.count == 2, "it is forgotten with others")
        for number in 1..<PayloadSessions.endedLimit { fixture.context.ended.tell("\(number)") }
        #expect(node.count == 1)
        #expect(try await !opens(own, at: node))
        #expect(try await opens(other, at: node), "the control")
    }

    @Test("At another node: at once where it has not seen the session, else with its next look")
    func nodes() async throws {
        guard TestDatabase.isPostgreSQL else { return }
        let (other, third) = (anotherNode(), anotherNode())
        let (registered, _) = try await fixture.instance()
        let (own, apps) = (try await kept(registered), try await kept(nil))
        for session in [own, apps] { #expect(try await opens(session, at: other)) }
        try await end(registered, .administrator)
        #expect(try await !opens(own, at: third))
        try await other.look()
        #expect(try await !opens(own, at: other))
        #expect(try await opens(apps, at: other), "the control")
    }

    @Test("Another key: what the old one has made ends here and in the database at once, and nothing else does")
    func anotherKey() async throws {
        let (registered, old) = try await fixture.instance()
        let (neighbour, _) = try await fixture.instance()
        let (own, others, apps) = (try await kept(registered), try await kept(neighbour), try await kept(nil))
        // The control: a change that keeps the key.
        _ = try await changed(registered, to: old)
        for session in [own, others, apps] { #expect(try await opens(session, at: node)) }
        let later = try await changed(registered, to: try AssertionKey())
        #expect(try await !opens(own, at: node))
        for session in [others, apps] { #expect(try await opens(session, at: node), "the control") }
        if TestDatabase.isPostgreSQL { #expect(try await fixture.count("payload_sessions") == 2) }
        // A handshake that was under way with the old key leaves none behind; the new key makes one at once.
        await #expect(throws: PayloadRefusal.unknownKey) { _ = try await kept(registered) }
        let new = try await kept(later)
        #expect(try await opens(new, at: node))
        try await node.look()
        for session in [new, others, apps] { #expect(try await opens(session, at: node)) }
        #expect(node.count == 3)
    }

    @Test("A key that comes back before the next look makes sessions at once; those from before that have ended")
    func keyThatComesBack() async throws {
        let (registered, old) = try await fixture.instance()
        // Of the key that comes back, from before: nobody uses it while the other key is there.
        let first = try await kept(registered)
        let other = try await changed(registered, to: try AssertionKey())
        let between = try await kept(other)
        #expect(try await opens(between, at: node))
        let back = try await changed(registered, to: old)
        let last = try await kept(back)
        for session in [first, between] { #expect(try await !opens(session, at: node)) }
        #expect(try await opens(last, at: node))
        // The end counts for each key, also when a change is told late.
        try await end(registered, .administrator)
        fixture.context.ended.tell(registered.id, newKey: back.metadata.keyThumbprint)
        #expect(try await !opens(last, at: node))
    }

    @Test("Another key, at another node: at once where it has not seen the session, else with its next look")
    func anotherKeyAtNodes() async throws {
        guard TestDatabase.isPostgreSQL else { return }
        let (other, third) = (anotherNode(), anotherNode())
        let (registered, _) = try await fixture.instance()
        let (own, apps) = (try await kept(registered), try await kept(nil))
        for session in [own, apps] { #expect(try await opens(session, at: other)) }
        let later = try await changed(registered, to: try AssertionKey())
        let new = try await kept(later)
        #expect(try await !opens(own, at: third))
        #expect(try await opens(new, at: third))
        try await other.look()
        #expect(try await !opens(own, at: other))
        for session in [apps, new] { #expect(try await opens(session, at: other), "the control") }
    }

    @Test("A row that an older key has made, and that nobody deleted, is read by no node and forgotten with a look")
    func rowOfAnOlderKey() async throws {
        guard TestDatabase.isPostgreSQL else { return }
        let (registered, _) = try await fixture.instance()
        let own = try await kept(registered)
        // As if the handshake's row had been written beside the change: neither has seen the other.
        _ = try await fixture.database.run(
            SQLStatement("UPDATE client_instances SET key_thumbprint = 'another' WHERE id = \(registered.id)"))
        let other = PayloadSessions(fixture.context, keys: keys)
        #expect(try await !opens(own, at: other))
        try await node.look()
        #expect(try await !opens(own, at: node))
    }
}
