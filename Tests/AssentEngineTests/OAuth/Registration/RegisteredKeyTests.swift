import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("The key of an installation is that of one app")
struct RegisteredKeyTests {
    private static let pay = ProviderFixture.pay { $0.allowsStateless = true }

    private static let shop = ProviderFixture.pay { app in
        app.allowsStateless = true
        app.client.id = "shop"
    }

    private let fixture: ProviderFixture

    init() async throws { fixture = try await ProviderFixture(apps: [Self.pay, Self.shop]) }

    /// Another installation of `pay`, and one of `shop`, each with a key of its own.
    private func two() async throws -> (pay: AssertionKey, shop: (ClientRegistration.Registered, AssertionKey)) {
        let key = try AssertionKey()
        let registered = try await fixture.register(
            key, token: try await fixture.initialToken("shop"), ["software_id": "shop"])
        return (try await fixture.instance().1, (registered, key))
    }

    @Test("One that is registered at another app is refused, and uses nothing up; at its own it registers again")
    func registers() async throws {
        let (_, key) = try await fixture.instance()
        let token = try await fixture.initialToken("shop")
        let foreign = try await fixture.refusalCode {
            _ = try await fixture.register(key, token: token, ["software_id": "shop"])
        }
        #expect(foreign == "invalid_client_metadata")
        #expect(try await fixture.count("client_instances") == 1)
        #expect(try await fixture.count("registered_apps", where: "app = 'shop'") == 0)
        // The answer to the first may have been lost.
        _ = try await fixture.register(key, token: try await fixture.initialToken())
        #expect(try await fixture.count("client_instances", where: "app = 'pay'") == 2)
        _ = try await fixture.register(try AssertionKey(), token: token, ["software_id": "shop"])
        #expect(try await fixture.count("client_instances", where: "app = 'shop'") == 1)
    }

    @Test("A change to one that another app's installation has is refused, and to a free one is not")
    func changes() async throws {
        let (taken, (registered, key)) = try await two()
        let registration = fixture.grants.registration
        let cases: [(key: AssertionKey, code: String?)] = try [
            (taken, "invalid_client_metadata"), (key, nil), (AssertionKey(), nil),
        ]
        for (new, code) in cases {
            let (instance, app) = try await registration.instance(registered.id, token: registered.token)
            let metadata = try InstanceMetadata(
                ProviderFixture.request(new, ["software_id": "shop", "client_id": .string(registered.id)]),
                of: app, as: registered.id, clock: fixture.clock)
            let refusal = try await fixture.refusalCode {
                _ = try await registration.change(instance, of: app, to: metadata, token: registered.token)
            }
            #expect(refusal == code)
        }
    }

    @Test("Where two nodes have registered one at two apps at once, nothing hangs on it that asks by the key alone")
    func raced() async throws {
        let (key, (other, otherKey)) = try await two()
        let sessions = Sessions(fixture.context, apps: ["/alpha": [Self.pay, Self.shop]])
        let begun = try await sessions.begin(
            userID: fixture.user.id, realm: "/alpha", limits: ProviderFixture.longSession,
            sender: SenderBinding(keyThumbprint: key.jwk.thumbprint))
        _ = try await fixture.database.run(
            SQLStatement(
                "UPDATE sessions SET kind = \(SessionKind.stateless.rawValue) WHERE audit_id = \(begun.auditID)",
                expecting: .exactly(1)))
        for isShared in [false, true] {
            let thumbprint = isShared ? key.jwk.thumbprint : otherKey.jwk.thumbprint
            _ = try await fixture.database.run(
                SQLStatement(
                    "UPDATE client_instances SET key_thumbprint = \(thumbprint) WHERE id = \(other.id)",
                    expecting: .exactly(1)))
            #expect(try await (sessions.live(token: begun.token) == nil) == isShared)
            #expect(try await (Sessions(fixture.context).live(token: begun.token) == nil) == isShared)
            #expect(try await (installation(invitedBy: key) == nil) == isShared)
        }
    }

    /// A session of the kind `stateless` of a key.
    private func stateless(_ key: AssertionKey) async throws -> Secret {
        let begun = try await Sessions(fixture.context).begin(
            userID: fixture.user.id, realm: "/alpha", limits: ProviderFixture.longSession,
            sender: SenderBinding(keyThumbprint: key.jwk.thumbprint))
        _ = try await fixture.database.run(
            SQLStatement(
                "UPDATE sessions SET kind = \(SessionKind.stateless.rawValue) WHERE audit_id = \(begun.auditID)",
                expecting: .exactly(1)))
        return begun.token
    }

    @Test("A session of the kind stateless lives while an installation has its key, and not again when one gets it")
    func registeredAgain() async throws {
        let (first, key) = try await fixture.instance()
        let (sessions, registration) = (Sessions(fixture.context), fixture.grants.registration)
        let token = try await stateless(key)
        #expect(try await sessions.live(token: token) != nil)
        // The answer to the first may have been lost: nothing has ended.
        let second = try await fixture.register(key, token: try await fixture.initialToken())
        #expect(try await sessions.live(token: token) != nil)
        let admin = try await fixture.administrator()
        for registered in [first, second] { try await fixture.registrations.end(registered.id, by: admin) }
        #expect(try await sessions.live(token: token) == nil)
        let third = try await fixture.register(key, token: try await fixture.initialToken())
        #expect(try await sessions.live(token: token) == nil)

        // The same where one installation changes its key, and takes the old one back.
        let later = try await stateless(key)
        #expect(try await sessions.live(token: later) != nil)
        for new in [try AssertionKey(), key] {
            let (instance, app) = try await registration.instance(third.id, token: third.token)
            let metadata = try InstanceMetadata(
                ProviderFixture.request(new, ["client_id": .string(third.id)]), of: app, as: third.id,
                clock: fixture.clock)
            _ = try await registration.change(instance, of: app, to: metadata, token: third.token)
            #expect(try await sessions.live(token: later) == nil)
        }
    }

    /// The installation that a container becomes whose invite a session of the key makes.
    private func installation(invitedBy key: AssertionKey) async throws -> String? {
        let invite = SigningInviteRecord(
            pid: SigningID(random: fixture.context.random), userID: fixture.user.id, username: fixture.user.username,
            maker: .user, createdAt: fixture.clock.epochSeconds)
        let making = EnrolmentSQL.createInvite(
            invite, issuer: SigningIssuer(name: "https://am.example/signing", realm: "/alpha"),
            codeHash: "code of \(invite.pid.text)", key: key.jwk.thumbprint)
        _ = try await fixture.database.run(SQLStatement(making, expecting: .exactly(1)))
        let row = try await fixture.database.run(
            .read("SELECT instance_id FROM signing_invites WHERE pid = \(invite.pid.text)")
        ).first
        return try #require(row).optionalText("instance_id")
    }
}
