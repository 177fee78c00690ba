import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Crypto
import Foundation
import Logging
import StoreTesting
import Testing

@testable import AssentEngine

/// A provider with one user who has signed in, and three clients, on a database of its own.
final class ProviderFixture: Sendable {
    static let issuer = "https://am.example/am/oauth2/realms/root/realms/alpha"
    static let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    static let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    static let secret = "s0m3+secret with/odd=chars&more-0123456789"

    static var bank: OAuthClient {
        var client = OAuthClient(
            id: "bank-app", kind: .public,
            redirectURIs: ["https://bank.example/cb", "http://127.0.0.1/cb", "com.example.bank:/cb"],
            scopes: ["openid", "profile", "email", "accounts", "offline_access"])
        client.defaultScopes = ["openid"]
        client.idTokenAlgorithm = .es256
        client.postLogoutRedirectURIs = ["https://bank.example/bye"]
        client.audience = ["https://api.bank.example"]
        return client
    }

    static var other: OAuthClient {
        var client = OAuthClient(
            id: "other-app", kind: .public, redirectURIs: ["https://other.example/cb"], scopes: ["openid"])
        client.idTokenAlgorithm = .es256
        return client
    }

    static var backend: OAuthClient {
        var client = OAuthClient(
            id: "back end", kind: .confidential(secretHash: OAuthClient.hash(ofSecret: Secret(secret))),
            redirectURIs: ["https://backend.example/cb?tenant=1"], scopes: ["openid", "accounts"])
        client.idTokenAlgorithm = .es256
        client.grantTypes = [.authorizationCode, .refreshToken, .clientCredentials]
        client.defaultScopes = ["openid", "accounts"]
        client.requiresPKCE = false
        client.consentImplied = false
        return client
    }

    let url: URL
    let database: any SQLDatabase
    let clock: ManualClock
    let context: EngineContext
    let grants: OAuthProvider
    let user: User
    let sessionToken: Secret
    let session: LiveSession

    /// A session that outlives what tests do with tokens.
    static let longSession = SessionLimits(maxSession: 400 * 86400, maxIdle: 400 * 86400)

    init(
        clients: [OAuthClient] = [bank, other, backend], random: any RandomSource = SystemRandom(),
        limits: SessionLimits = longSession, contexts: AuthenticationContexts = AuthenticationContexts(),
        apps: [OAuthApp] = [], operated: OperatedDatabase? = nil
    ) async throws {
        url = FileManager.default.temporaryDirectory.appending(path: "assent-grants-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        clock = operated?.clock ?? ManualClock()
        database =
            if let operated {
                try await RestorableDatabase(operated)
            } else {
                try await TestDatabase.location(url.appending(path: "test.sqlite").path).open(clock: clock)
            }
        context = EngineContext(
            database: database, clock: clock, random: random,
            masterKey: try MasterKey(operated?.key ?? Secret(bytes: SystemRandom().bytes(MasterKey.byteCount))),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        var configuration = OAuthProviderConfiguration(
            realm: "/alpha", issuer: Self.issuer, clients: clients, contexts: contexts)
        configuration.apps = Dictionary(uniqueKeysWithValues: apps.map { ($0.id, $0) })
        grants = try OAuthProvider(context, keys: ServerKeys(context), configuration: configuration)
        user = try #require(
            await Users(context).create(
                username: "ana", realm: "/alpha", passwordHash: nil,
                attributes: JSONObject([
                    .init(name: "cn", value: "Ana Example"), .init(name: "sn", value: "Example"),
                    .init(name: "mail", value: "ana@example.org"),
                ])))
        sessionToken = try await Sessions(context).begin(userID: user.id, realm: "/alpha", limits: limits)
            .token
        session = try #require(await Sessions(context).live(token: sessionToken))
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// A second node on the same file, with caches of its own; with other clients, if it has read a newer
    /// configuration.
    func secondNode(clients: [OAuthClient]? = nil, apps: [OAuthApp]? = nil) async throws -> OAuthProvider {
        let database = try await TestDatabase.location(url.appending(path: "test.sqlite").path).open(
            clock: clock)
        let context = context.anotherNode(on: database)
        var configuration =
            clients.map { OAuthProviderConfiguration(realm: "/alpha", issuer: Self.issuer, clients: $0) }
            ?? grants.configuration
        if let apps { configuration.apps = Dictionary(uniqueKeysWithValues: apps.map { ($0.id, $0) }) }
        return try OAuthProvider(context, keys: ServerKeys(context), configuration: configuration)
    }

    // MARK: Requests

    static func parameters(
        _ base: KeyValuePairs<String, String>, _ changes: [String: String?] = [:]
    ) throws -> OAuthParameters {
        var form = FormItems()
        for item in base where changes[item.key] == nil { form.append(item.key, item.value) }
        for (name, value) in changes.sorted(by: { $0.key < $1.key }) {
            if let value { form.append(name, value) }
        }
        return try OAuthParameters(form)
    }

    static func authorization(_ changes: [String: String?] = [:]) throws -> OAuthParameters {
        try parameters(
            [
                "client_id": "bank-app", "redirect_uri": "https://bank.example/cb", "response_type": "code",
                "scope": "openid accounts", "state": "xyz=&1", "nonce": "n-0S6_WzA2Mj", "code_challenge": challenge,
                "code_challenge_method": "S256",
            ], changes)
    }

    func redirect(_ changes: [String: String?] = [:]) async throws -> AuthorizationRedirect {
        let outcome = try await AuthorizationEndpoint(grants).answer(try Self.authorization(changes), session: session)
        guard case .redirect(let redirect) = outcome else { throw UnexpectedOutcome() }
        return redirect
    }

    func code(_ changes: [String: String?] = [:]) async throws -> String {
        try #require(await redirect(changes)["code"])
    }

    func exchange(_ code: String, _ changes: [String: String?] = [:], on node: OAuthProvider? = nil) async throws
        -> IssuedTokens
    {
        try await (node ?? grants).tokens(
            try Self.parameters(
                [
                    "grant_type": "authorization_code", "client_id": "bank-app", "code": code,
                    "redirect_uri": "https://bank.example/cb", "code_verifier": Self.verifier,
                ], changes))
    }

    func tokens(_ changes: [String: String?] = [:]) async throws -> IssuedTokens {
        try await exchange(try await code(changes))
    }

    func refresh(
        _ token: Secret?, attempt: String? = nil, _ changes: [String: String?] = [:], keyThumbprint: String? = nil,
        on node: OAuthProvider? = nil
    ) async throws -> IssuedTokens {
        var all = changes
        if let attempt { all["attempt_id"] = attempt }
        return try await (node ?? grants).tokens(
            try Self.parameters(
                [
                    "grant_type": "refresh_token", "client_id": "bank-app", "refresh_token": token?.reveal() ?? "",
                    "response_type": "token",
                ], all), keyThumbprint: keyThumbprint)
    }

    func isLive(_ reply: IssuedTokens) async throws -> Bool {
        try await grants.access(token: reply.accessToken) != nil
    }

    // MARK: What is in the store

    func audit(_ event: AuditEvent) async throws -> [AuditRecord] {
        try await AuditLog(context).newest(2000).filter { $0.event == event }
    }

    func count(_ table: String, where condition: String = "1 = 1") async throws -> Int64 {
        try await database.run(
            .read("SELECT count(*) AS n FROM \(SQL(verbatim: table)) WHERE \(SQL(verbatim: condition))")
        ).first?.integer("n") ?? -1
    }
}

struct UnexpectedOutcome: Error {}

/// The claims of a JWT, unverified.
func jwtClaims(_ token: Secret?) throws -> JWTClaims {
    try JWTClaims(payload: UnverifiedJWS.parse(try #require(token).reveal()).payload)
}

extension OAuthProvider {
    /// What the userinfo endpoint answers to a bearer of `token`.
    func userInfo(accessToken token: Secret) async throws -> JSONValue {
        guard let grant = try await access(token: token) else { throw OAuthError.invalidToken }
        return try userInfo(of: grant)
    }
}

extension OAuthError {
    /// An error to compare with: only the code counts.
    static func expected(_ code: String) -> OAuthError { OAuthError(OAuthError.Code(rawValue: code), "") }
}

extension OAuthProvider {
    /// The token endpoint, for a client that has yet to authenticate.
    func tokens(
        _ parameters: OAuthParameters, authorization: String? = nil, keyThumbprint: String? = nil
    ) async throws -> IssuedTokens {
        try await tokens(
            parameters, of: try await clients.client(of: parameters, authorization: authorization, at: .token),
            proof: keyThumbprint.map { TokenRequestProof(keyThumbprint: $0) }, claimingProof: {})
    }
}
