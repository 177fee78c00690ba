import AssentCore
import AssentEngine
import AssentJOSE
import AssentSigningProtocol
import AssentStore
import AssentTesting
import Foundation
import Logging
import SigningTesting

/// A provider with an installation of an app, and a user's containers in it, which call without HTTP. Its clock goes on
/// by itself with each call, since a container may make 120 in a minute.
final class PINLoginWorld: TestIssuer {
    /// A container whose key for logins has the PIN 2580.
    struct Enrolled: Sendable {
        let device: TestDevice
        let container: TestDevice.Enrolled
        let pin: TestPIN
    }

    /// The client id of the installation.
    let instance: String

    private let database: any SQLDatabase
    private let clock = ManualClock()
    private let signing: SigningProvider
    private let provider: OAuthProvider
    private let proofs: SenderProofs
    private let caller: SigningCaller
    private let key: SoftwareSigningKey
    private let thumbprint: String
    private let spent = Locked(Duration.zero)

    private static let pin = "2580"
    private static let realm = "/alpha"
    private static let issuer = "https://bench.example/am/oauth2/realms/root/realms/alpha"

    init(_ location: DatabaseLocation) async throws {
        let random = SystemRandom()
        database = try await location.open(clock: clock)
        let context = EngineContext(
            database: database, clock: clock, random: random,
            masterKey: try MasterKey(Secret(bytes: random.bytes(MasterKey.byteCount))),
            logger: Logger(label: "bench", factory: { _ in SwiftLogNoOpLogHandler() }))
        signing = SigningProvider(context, settings: try Self.settings())
        provider = try Self.provider(context, signing)
        try await SenderProofs.begin(context)
        proofs = SenderProofs(context)
        key = try SoftwareSigningKey.generate(.es256)
        let jwk = try JWK(publicKeyInfo: key.publicKeyInfo)
        thumbprint = jwk.thumbprint
        instance = try await Self.register(jwk, provider, clock)
        guard let user = try await Users(context).create(username: "ana", realm: Self.realm, passwordHash: nil) else {
            throw BenchFailure("the user is there already")
        }
        let sessions = Sessions(context)
        // Of the installation's key: the containers that it makes are that one's.
        let begun = try await sessions.begin(
            userID: user.id, realm: Self.realm, limits: SessionLimits(), sender: .key(thumbprint: thumbprint))
        guard let session = try await sessions.live(token: begun.token) else { throw BenchFailure("no session") }
        caller = SigningCaller(session)
    }

    private static func settings() throws -> SigningSettings {
        var settings = SigningSettings(
            issuer: SigningIssuer(name: SigningWorld.name, realm: realm), name: "Bank of Example")
        settings.policies = [try SigningWorld.policy()]
        settings.keys = [
            OfferedKey(usage: .sign, label: "payments", policy: SigningSettings.policyID),
            SigningSettings.offered(.auth, "sign-in", policy: "pin", of: settings.policies),
        ]
        settings.levels = ["sign-in": 3]
        return settings
    }

    private static func provider(_ context: EngineContext, _ signing: SigningProvider) throws -> OAuthProvider {
        var client = OAuthClient(id: "pay", kind: .public, redirectURIs: [], scopes: ["accounts"])
        client.grantTypes = [.jwtBearer]
        client.defaultScopes = ["accounts"]
        var app = OAuthApp(client)
        app.admission = .open
        var configuration = OAuthProviderConfiguration(realm: realm, issuer: issuer, clients: [])
        configuration.apps = ["pay": app]
        configuration.signing = signing
        return try OAuthProvider(context, keys: ServerKeys(context), configuration: configuration)
    }

    private static func register(_ jwk: JWK, _ provider: OAuthProvider, _ clock: ManualClock) async throws -> String {
        let body: JSONObject = ["software_id": "pay", "jwks": ["keys": [jwk.json]]]
        let app = try InstanceMetadata.app(of: body, in: provider.configuration)
        let metadata = try InstanceMetadata(body, of: app, clock: clock)
        return try await provider.registration.register(metadata, of: app, token: nil, claimingProof: {}).id
    }

    var name: String { signing.settings.issuer.name }

    func configuration() async throws -> (bytes: [UInt8], nonce: String) {
        (try await signing.door.configuration(), signing.door.nonce())
    }

    func send(_ path: String, proof: String?, body: String) async throws -> String {
        guard let call = DeviceCall(rawValue: path) else { throw BenchFailure("there is no \(path)") }
        clock.advance(by: 0.6)
        return try await timed {
            do {
                return try await signing.door.answer(call, proof: proof, body: Array(body.utf8), address: "192.0.2.1")
            } catch {
                throw BenchFailure("\(call) is refused: \(error)")
            }
        }
    }

    private func timed<Answer>(_ body: () async throws -> Answer) async throws -> Answer {
        let clock = ContinuousClock()
        let start = clock.now
        let answer = try await body()
        let time = clock.now - start
        spent.withLock { $0 += time }
        return answer
    }

    /// How long the server took for calls since it was asked last.
    func takeTime() -> Duration {
        spent.withLock { spent in
            defer { spent = .zero }
            return spent
        }
    }

    /// A new container of the installation.
    func enrolled() async throws -> Enrolled {
        let invite = try await signing.invites.make(caller, user: nil)
        guard let code = InviteCode(typed: invite.code.reveal()) else { throw BenchFailure("no code") }
        let device = try TestDevice(self, modes: [.device, .assisted])
        let (container, pin) = try await device.enrol(code, pin: Self.pin, for: "sign-in")
        _ = try await signing.invites.enter(digits: container.digits, caller, pid: invite.pid)
        return Enrolled(device: device, container: container, pin: pin)
    }

    /// Evaluates the PIN and confirms it, and signs in with the key that it has opened.
    func logIn(_ user: Enrolled) async throws {
        guard let opened = try await user.pin.open(Self.pin), let jkt = KeyThumbprint(text: thumbprint) else {
            throw BenchFailure("the PIN does not open the key")
        }
        let (nonce, url) = (proofs.nonce(of: .authorizationServer), Self.issuer + "/access_token")
        let login = try await SignedMessage.sign(
            LoginAssertion(
                did: user.container.did, sub: user.container.sub, audience: Self.issuer, jkt: jkt, nonce: nonce,
                unl: try opened.unl, jti: SigningID(random: SystemRandom()), issuedAt: Int(clock.epochSeconds)),
            with: opened.key
        ).compact
        let proof = try await DPoPProof.make(method: "POST", uri: url, nonce: nonce, key: key, clock: clock)
        let form = try OAuthParameters(
            FormItems([
                "grant_type": OAuthClient.GrantType.jwtBearer.rawValue, "assertion": login,
                "client_assertion": try await clientAssertion(),
                "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            ]))
        let presented = PresentedProof(fields: [proof], method: "POST", url: url, server: .authorizationServer)
        let tokens = try await timed { try await answer(form, presented) }
        guard tokens.session != nil else { throw BenchFailure("no session of a login with a PIN") }
    }

    /// Answers a token request as its route does.
    private func answer(_ form: OAuthParameters, _ presented: PresentedProof) async throws -> IssuedTokens {
        let caller = try await provider.clients.client(of: form, authorization: nil, at: .token)
        guard let proof = try proofs.check(presented, accessToken: nil, policy: .required) else {
            throw BenchFailure("no proof")
        }
        let shown = TokenRequestProof(keyThumbprint: proof.thumbprint, nonce: proof.nonce)
        return try await provider.tokens(form, of: caller, proof: shown) {
            try await caller.spend(proof, by: proofs)
        }
    }

    private func clientAssertion() async throws -> String {
        var claims = JWTClaims()
        claims.iss = instance
        claims.sub = instance
        claims.aud = [Self.issuer]
        claims.jti = SystemRandom().token()
        claims["iat"] = .integer(clock.epochSeconds)
        claims["exp"] = .integer(clock.epochSeconds + 60)
        return try await JWS.sign(claims.payload, with: key)
    }

    func close() async throws { try await database.close() }
}
