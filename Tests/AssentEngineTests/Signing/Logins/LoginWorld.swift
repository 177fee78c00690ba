import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentStore
import SigningTesting
import StoreTesting
import Testing

@testable import AssentEngine

/// An installation of the app `pay` with a container of Ana's whose key `sign-in` has the PIN 2580, at a provider that
/// takes its logins.
struct LoginWorld: Sendable {
    let signing: SigningWorld
    let provider: OAuthProvider
    private(set) var key: AssertionKey
    private(set) var instance: String
    private(set) var device: TestDevice
    private(set) var container: TestDevice.Enrolled
    private(set) var pin: TestPIN?

    /// With its `auth` key behind the PIN or, without `hasPIN`, bound to the device only.
    init(
        hasPIN: Bool = true, implicit: [String]? = ["accounts"],
        settings change: (inout SigningSettings) -> Void = { _ in }
    ) async throws {
        signing = try await SigningWorld.withPIN(change: {
            $0.keys = [
                OfferedKey(usage: .sign, label: "payments", policy: SigningSettings.policyID),
                SigningSettings.offered(
                    .auth, "sign-in", policy: hasPIN ? "pin" : SigningSettings.policyID, of: $0.policies),
            ]
            $0.levels = ["sign-in": 3]
            change(&$0)
        })
        provider = try Self.node(signing.base.database, of: signing, implicit: implicit)
        key = try AssertionKey()
        instance = try await Self.register(key, provider)
        (device, container, pin) = try await Self.enrolled(signing, of: key, hasPIN: hasPIN)
    }

    /// What a world with a PIN has left.
    private struct Left: Sendable {
        let signing: SigningWorld.Left
        let key: AssertionKey
        let instance: String
        let device: TestDevice
        let container: TestDevice.Enrolled
        let pin: TestPIN?

        init() async throws {
            let world = try await LoginWorld(hasPIN: true)
            key = world.key
            instance = world.instance
            device = world.device
            container = world.container
            pin = world.pin
            signing = try await world.signing.left()
        }
    }

    private static let first = Task { try await Left() }

    /// With its `auth` key behind the PIN: on SQLite one has enrolled, and this one begins with what that has left.
    init() async throws {
        if TestDatabase.isPostgreSQL {
            try await self.init(hasPIN: true)
        } else {
            try await self.init(beginningWith: Self.first.value)
        }
    }

    private init(beginningWith left: Left) async throws {
        signing = try await SigningWorld(beginningWith: left.signing)
        provider = try Self.node(signing.base.database, of: signing)
        key = left.key
        instance = left.instance
        let device = TestDevice(signing, copying: left.device)
        self.device = device
        container = left.container
        pin = left.pin.map { TestPIN(copying: $0, device: device) }
    }

    /// Another installation at the same nodes, with a container of its own.
    func another() async throws -> LoginWorld {
        var other = self
        other.key = try AssertionKey()
        other.instance = try await Self.register(other.key, provider)
        (other.device, other.container, other.pin) = try await Self.enrolled(signing, of: other.key)
        return other
    }

    /// Another node on the same database, with keys and caches of its own.
    func secondNode() throws -> OAuthProvider { try Self.node(database, of: signing) }

    /// A node with a provider, on a database.
    static func node(
        _ database: any SQLDatabase, of signing: SigningWorld, implicit: [String]? = ["accounts"]
    ) throws -> OAuthProvider {
        let base = signing.base.context
        let context = EngineContext(
            database: database, clock: base.clock, random: base.random, masterKey: base.masterKey, logger: base.logger)
        var configuration = OAuthProviderConfiguration(realm: "/alpha", issuer: ProviderFixture.issuer, clients: [])
        configuration.apps = ["pay": ProviderFixture.pay { $0.implicitScopes = implicit }]
        configuration.signing = SigningProvider(context, settings: signing.provider.settings)
        return try OAuthProvider(context, keys: ServerKeys(context), configuration: configuration)
    }

    /// A new installation with this key.
    static func register(_ key: AssertionKey, _ provider: OAuthProvider) async throws -> String {
        let (token, now) = (Secret(SystemRandom().token()), provider.now)
        _ = try await provider.context.database.run(
            SQLStatement(
                """
                INSERT INTO registration_tokens (hash, realm, app, uses_left, created_at, expires_at)
                VALUES (\(TokenHash.of(token)), '/alpha', 'pay', 1, \(now), \(now + 60))
                """))
        let body = ProviderFixture.request(key)
        let app = try InstanceMetadata.app(of: body, in: provider.configuration)
        let metadata = try InstanceMetadata(body, of: app, clock: provider.context.clock)
        return try await provider.registration.register(metadata, of: app, token: token) {}.id
    }

    /// A container that a session of this key has made the invite of.
    static func enrolled(
        _ signing: SigningWorld, of key: AssertionKey?, hasPIN: Bool = true
    ) async throws -> (TestDevice, TestDevice.Enrolled, TestPIN?) {
        let sessions = Sessions(signing.base.context)
        let begun = try await sessions.begin(
            userID: signing.base.ana.user.id, realm: "/alpha", limits: SessionLimits(),
            sender: SenderBinding(keyThumbprint: key?.jwk.thumbprint))
        let caller = SigningCaller(try #require(try await sessions.live(token: begun.token)))
        let invite = try await signing.invite(caller)
        let device = try TestDevice(signing, modes: [.device, .assisted])
        let container: TestDevice.Enrolled
        var pin: TestPIN?
        if hasPIN {
            (container, pin) = try await device.enrol(invite.code, pin: "2580", for: "sign-in")
        } else {
            container = try await device.enrol(invite.code)
        }
        let status = try await signing.provider.invites.enter(digits: container.digits, caller, pid: invite.pid)
        try #require(status.state == "ACTIVE")
        return (device, container, pin)
    }

    var clock: any WallClock { signing.base.context.clock }
    var database: any SQLDatabase { signing.base.database }
    var did: SigningID { container.did }

    /// What a login says, and the key that signs it.
    struct Parts: Sendable {
        var did: SigningID
        var sub: String
        var audience = ProviderFixture.issuer
        var jkt: KeyThumbprint
        var nonce = "nonce"
        var unl: SigningID?
        var jti = SigningID(random: SystemRandom())
        var issuedAt: Int
        var key: SoftwareSigningKey

        var signed: String {
            get async throws {
                try await SignedMessage.sign(
                    LoginAssertion(
                        did: did, sub: sub, audience: audience, jkt: jkt, nonce: nonce, unl: unl, jti: jti,
                        issuedAt: issuedAt), with: key
                ).compact
            }
        }
    }

    /// A right login of a remembered user.
    func implicit() throws -> Parts {
        Parts(
            did: did, sub: container.sub, jkt: try #require(KeyThumbprint(text: key.jwk.thumbprint)),
            issuedAt: Int(clock.epochSeconds), key: device.deviceKey)
    }

    /// A right login with the PIN, which was typed for it.
    func typed() async throws -> Parts {
        let pin = try #require(pin)
        let opened = try #require(try await pin.open("2580"))
        var parts = try implicit()
        (parts.unl, parts.key) = (try opened.unl, opened.key)
        return parts
    }

    func send(
        _ assertion: String, scope: String? = nil, proof: TokenRequestProof?, by own: AssertionKey? = nil,
        as id: String? = nil, on node: OAuthProvider? = nil, meanwhile: @Sendable () async throws -> Void = {}
    ) async throws -> IssuedTokens {
        let node = node ?? provider
        let client = try await (own ?? key).assertion(of: id ?? instance, now: clock)
        let form = try ProviderFixture.parameters(
            ["grant_type": OAuthClient.GrantType.jwtBearer.rawValue, "assertion": assertion],
            AssertionKey.form(client, ["scope": scope]))
        let caller = try await node.clients.client(of: form, authorization: nil, at: .token)
        return try await node.tokens(form, of: caller, proof: proof, claimingProof: meanwhile)
    }

    /// Sends a login with the proof that it is about. What happens `meanwhile` comes after it was judged, and before it
    /// is done.
    func logIn(
        _ parts: Parts, scope: String? = nil, on node: OAuthProvider? = nil,
        meanwhile: @Sendable () async throws -> Void = {}
    ) async throws -> IssuedTokens {
        try await send(
            try await parts.signed, scope: scope,
            proof: TokenRequestProof(keyThumbprint: key.jwk.thumbprint, nonce: "nonce"), on: node,
            meanwhile: meanwhile)
    }

    /// What a request is refused with: the code, and `assent_error` behind it; `nil` when it is answered.
    func refusal(_ body: () async throws -> IssuedTokens) async throws -> String? {
        do {
            _ = try await body()
            return nil
        } catch let error as OAuthError {
            return ([error.code.rawValue] + [error.reason?.rawValue].compactMap(\.self)).joined(separator: " ")
        }
    }

    func refusal(_ parts: Parts) async throws -> String? { try await refusal { try await logIn(parts) } }

    func count(_ table: String, _ condition: String = "1 = 1") async throws -> Int64 {
        try await database.run(
            .read("SELECT count(*) AS n FROM \(SQL(verbatim: table)) WHERE \(SQL(verbatim: condition))")
        ).first?.integer("n") ?? -1
    }

    /// Whether an access token of a login is valid, at a node.
    func isLive(_ tokens: IssuedTokens, on node: OAuthProvider? = nil) async throws -> Bool {
        let check = try await (node ?? provider).check(
            accessToken: tokens.accessToken, keyThumbprint: key.jwk.thumbprint)
        return if case .granted = check { true } else { false }
    }

    /// Has something happen among six implicit logins at once, in five worlds. Afterwards no login is left, also none
    /// that came before it.
    static func race(_ act: @escaping @Sendable (LoginWorld) async throws -> Void) async throws {
        for _ in 0..<5 {
            let world = try await LoginWorld()
            let parts = try (0..<6).map { _ in try world.implicit() }
            let given = await withTaskGroup(of: IssuedTokens?.self) { group in
                for (index, part) in parts.enumerated() {
                    if index == 3 {
                        group.addTask {
                            try? await act(world)
                            return nil
                        }
                    }
                    group.addTask { try? await world.logIn(part) }
                }
                return await group.reduce(into: [IssuedTokens]()) { all, one in if let one { all.append(one) } }
            }
            for tokens in given { #expect(try await !world.isLive(tokens)) }
            #expect(try await world.count("sessions", "did IS NOT NULL") == 0)
        }
    }

    func administrator() async throws -> LiveSession {
        try await TransactionFixture.signIn("root", roles: [.admin], signing.base.context)
    }
}

/// What ends the logins of a container.
enum LoginEnd: String, CaseIterable, CustomTestStringConvertible {
    case block, revoke, wipe, removal, lock

    var testDescription: String { rawValue }

    func run(_ world: LoginWorld) async throws {
        try await run(world, on: world.provider, by: try await world.administrator())
    }

    /// The same at a node.
    func run(_ world: LoginWorld, on node: OAuthProvider, by root: LiveSession) async throws {
        let signing = try #require(node.configuration.signing)
        let (caller, did) = (SigningCaller(root), world.did.text)
        switch self {
        case .block: _ = try await signing.devices.change(caller, did: did, .block)
        case .revoke: _ = try await signing.devices.change(caller, did: did, .revoke)
        case .wipe: _ = try await signing.slots.act(caller, did: did, .wipe, on: "signing")
        case .removal:
            try await RegistrationAdministration(Administration(node.context)).end(world.instance, by: root)
        case .lock: try await Administration(node.context).setActive(false, of: "ana", by: root)
        }
    }

    /// What the next login is refused with.
    var refusal: String {
        switch self {
        case .block, .revoke: "invalid_grant container_ended"
        case .wipe: "invalid_grant shredded"
        case .removal: "invalid_client"
        case .lock: "invalid_grant"
        }
    }
}
