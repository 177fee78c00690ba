import AssentCore
import AssentJOSE
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

let issuer = "https://am.example.com/am/oauth2/realms/root/realms/alpha"
let redirectURI = "https://bank.example/app/callback"
let fixtures = ProcessInfo.processInfo.environment["ASSENT_FIXTURES"]

func fixture(_ path: String) throws -> JSONValue {
    let folder = try #require(fixtures)
    return try JSONValue.parse(Array(try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(path)"))))
}

/// An authorization server that behaves well until a test says otherwise.
final class FakeProvider: Sendable {
    struct Behaviour: Sendable {
        var discovery: JSONObject
        var keys: [JWK]
        var key: SoftwareSigningKey
        var header: JSONObject = JSONObject([.init(name: "kid", value: "k1")])
        var claims: @Sendable (inout JSONObject) -> Void = { _ in }
        var location: @Sendable (_ good: FormItems) -> String = { "\(redirectURI)?\(FormEncoding.encode($0))" }
        var authorizeReply: (@Sendable () throws -> HTTPReply)?
        var tokenReply: (@Sendable (FormItems) async throws -> HTTPReply?)?
        var other: (@Sendable (InMemoryTransport.Exchange) async throws -> HTTPReply)?
        var discoveryReply: (@Sendable () throws -> HTTPReply)?
        var keysReply: (@Sendable () throws -> HTTPReply)?
        var expiresIn: JSONValue = 600
        var rotates = true
        var tokenType: JSONValue? = "Bearer"
        var issued = 0
        var nonce = ""
    }

    let clock: ManualClock
    let store: MemorySecretStore
    let behaviour: Locked<Behaviour>
    private let seeds = Locked<UInt64>(0)
    let exchanges = Locked<[InMemoryTransport.Exchange]>([])

    init(clock: ManualClock = ManualClock()) throws {
        self.clock = clock
        store = MemorySecretStore(clock: clock)
        let key = try SoftwareSigningKey.generate(.es256)
        let discovery: JSONValue = [
            "issuer": .string(issuer), "authorization_endpoint": .string("\(issuer)/authorize"),
            "token_endpoint": .string("\(issuer)/access_token"), "jwks_uri": .string("\(issuer)/connect/jwk_uri"),
            "userinfo_endpoint": .string("\(issuer)/userinfo"),
            "revocation_endpoint": .string("\(issuer)/token/revoke"),
            "end_session_endpoint": .string("\(issuer)/connect/endSession"),
            "authorization_response_iss_parameter_supported": true, "code_challenge_methods_supported": ["S256"],
        ]
        behaviour = Locked(
            Behaviour(
                discovery: discovery.object ?? JSONObject(),
                keys: [try JWK(publicKeyInfo: key.publicKeyInfo, keyID: "k1")], key: key))
    }

    func change(_ body: (inout Behaviour) -> Void) { behaviour.withLock { body(&$0) } }

    func manager(
        scopes: [String] = ["openid", "accounts"], redirectURI: String = redirectURI, clientID: String = "bank-app",
        configure: (inout TokenConfiguration) -> Void = { _ in }
    ) throws -> TokenManager {
        var configuration = try TokenConfiguration(
            issuer: issuer, clientID: clientID, redirectURI: redirectURI, scopes: scopes)
        configure(&configuration)
        return TokenManager(
            configuration: configuration,
            transport: InMemoryTransport { [self] in try await answer($0) }, store: store, clock: clock,
            random: SeededRandom(
                seed: seeds.withLock {
                    $0 += 1; return $0
                }))
    }

    func signedIn(configure: (inout TokenConfiguration) -> Void = { _ in }) async throws -> TokenManager {
        let manager = try manager(configure: configure)
        try await manager.install(Session(token: Secret("SESS")))
        return manager
    }

    func sent(_ suffix: String) -> [InMemoryTransport.Exchange] {
        exchanges.withLock { $0 }.filter { URLText.withoutQuery($0.request.url ?? "").hasSuffix(suffix) }
    }

    func answer(_ exchange: InMemoryTransport.Exchange) async throws -> HTTPReply {
        exchanges.withLock { $0.append(exchange) }
        let now = behaviour.withLock { $0 }
        switch URLText.withoutQuery(exchange.request.url ?? "").dropFirst(issuer.count) {
        case "/.well-known/openid-configuration":
            return try now.discoveryReply?() ?? .json(200, .object(now.discovery))
        case "/connect/jwk_uri":
            if let reply = now.keysReply { return try reply() }
            return .json(200, JWKSet(now.keys).json)
        case "/authorize":
            if let reply = now.authorizeReply { return try reply() }
            let query = try FormEncoding.parse(URLText.query(of: exchange.request.url ?? "")?.text ?? "")
            let nonce = query["nonce"] ?? ""
            change { $0.nonce = nonce }
            var good = FormItems()
            good.append("code", "c0de+/=&")
            good.append("iss", issuer)
            good.append("state", query["state"] ?? "")
            return HTTPReply(HTTPResponse(status: .found, headerFields: [.location: now.location(good)]))
        case "/access_token":
            let form = try FormEncoding.parse(exchange.body)
            if let reply = try await now.tokenReply?(form) { return reply }
            return .json(200, try await grant(form))
        default:
            if let other = now.other { return try await other(exchange) }
            return .json(200, [:])
        }
    }

    func grant(_ form: FormItems) async throws -> JSONValue {
        change { $0.issued += 1 }
        let now = behaviour.withLock { $0 }
        let access = "access-\(now.issued)"
        var grant: JSONObject = JSONObject([
            .init(name: "access_token", value: .string(access)), .init(name: "expires_in", value: now.expiresIn),
        ])
        grant["token_type"] = now.tokenType
        if now.rotates { grant["refresh_token"] = .string("refresh+\(now.issued)&=%") }
        if form["grant_type"] == "authorization_code" {
            grant["id_token"] = .string(try await idToken(access: access))
        }
        return .object(grant)
    }

    func idToken(access: String) async throws -> String {
        let now = behaviour.withLock { $0 }
        var claims: JSONObject = JSONObject([
            .init(name: "iss", value: .string(issuer)), .init(name: "sub", value: "ana"),
            .init(name: "aud", value: "bank-app"), .init(name: "iat", value: .integer(clock.epochSeconds)),
            .init(name: "exp", value: .integer(clock.epochSeconds + 600)),
            .init(name: "nonce", value: .string(now.nonce)),
            .init(
                name: "at_hash", value: .string(Base64URL.encode(SHA2.sha256(access.utf8).prefix(16)))),
        ])
        now.claims(&claims)
        return try await JWS.sign(JSONValue.object(claims).serializedBytes(), header: now.header, with: now.key)
    }
}

extension InMemoryTransport.Exchange {
    var form: FormItems { (try? FormEncoding.parse(body)) ?? FormItems() }
    var query: FormItems { (try? FormEncoding.parse(URLText.query(of: request.url ?? "")?.text ?? "")) ?? FormItems() }
    func field(_ name: String) -> String? { HTTPField.Name(name).flatMap { request.headerFields[$0] } }
}

extension TokenError {
    /// An error to compare with.
    static func like(_ code: Code) -> TokenError { TokenError(code, "") }
}
