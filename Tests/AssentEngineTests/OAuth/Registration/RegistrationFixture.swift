import AssentCore
import AssentJOSE
import AssentTesting
import Testing

@testable import AssentEngine

extension ProviderFixture {
    /// An app whose instances may do what the client `bank-app` may, and have tokens of their own.
    static var pay: OAuthApp { pay() }

    static func pay(_ change: (inout OAuthApp) -> Void = { _ in }) -> OAuthApp {
        var client = OAuthClient(
            id: "pay", kind: .public,
            redirectURIs: ["https://pay.example/cb", "http://127.0.0.1/cb", "https://pay.example/cb?K"],
            scopes: ["openid", "profile", "accounts", "offline_access"])
        client.grantTypes = Set(OAuthClient.GrantType.allCases)
        client.defaultScopes = ["accounts"]
        client.idTokenAlgorithm = .es256
        var app = OAuthApp(client)
        change(&app)
        return app
    }

    /// A session of somebody with the role `admin`.
    func administrator() async throws -> LiveSession {
        let users = Users(context)
        let known = try await users.find(username: "root", realm: "/alpha")
        var user = known
        if user == nil {
            user = try await users.create(username: "root", realm: "/alpha", passwordHash: nil, roles: [.admin])
        }
        let token = try await Sessions(context).begin(
            userID: try #require(user).id, realm: "/alpha", limits: Self.longSession
        ).token
        return try #require(await Sessions(context).live(token: token))
    }

    var registrations: RegistrationAdministration { RegistrationAdministration(Administration(context)) }

    func initialToken(_ app: String = "pay", count: Int64 = 1, days: Int64 = 7) async throws -> Secret {
        try await registrations.makeToken(
            for: app, count: count, days: days, grants.configuration, by: try await administrator())
    }

    /// What a key asks for, after a change.
    static func request(_ key: AssertionKey, _ changes: [String: JSONValue?] = [:]) -> JSONObject {
        var body: JSONObject = ["software_id": "pay", "jwks": ["keys": [key.jwk.json]]]
        for (name, value) in changes { body[name] = value }
        return body
    }

    /// Registers a key as an instance of the app that the request names.
    func register(
        _ key: AssertionKey, token: Secret?, _ changes: [String: JSONValue?] = [:], on node: OAuthProvider? = nil
    ) async throws -> ClientRegistration.Registered {
        let node = node ?? grants
        let body = Self.request(key, changes)
        let app = try InstanceMetadata.app(of: body, in: node.configuration)
        let metadata = try InstanceMetadata(body, of: app, clock: clock)
        return try await node.registration.register(metadata, of: app, token: token) {}
    }

    /// A registered instance, with its key.
    func instance(_ changes: [String: JSONValue?] = [:]) async throws -> (ClientRegistration.Registered, AssertionKey) {
        let key = try AssertionKey()
        return (try await register(key, token: try await initialToken(), changes), key)
    }

    /// A token of an instance's own, by an assertion of a key.
    func ownToken(
        of id: String, _ key: AssertionKey, on node: OAuthProvider? = nil, _ changes: [String: String?] = [:]
    ) async throws -> IssuedTokens {
        try await (node ?? grants).tokens(
            try Self.ownToken(try await key.assertion(of: id, now: clock), changes))
    }

    /// Tokens of the user for an instance.
    func userTokens(
        of id: String, _ key: AssertionKey, scope: String = "openid accounts offline_access",
        on node: OAuthProvider? = nil
    ) async throws -> IssuedTokens {
        let code = try await code(["client_id": id, "redirect_uri": "https://pay.example/cb", "scope": scope])
        return try await exchange(
            code,
            AssertionKey.form(
                try await key.assertion(of: id, now: clock), ["redirect_uri": "https://pay.example/cb"]), on: node)
    }

    /// The error's code; `nil` when there is none.
    func refusalCode(_ body: () async throws -> Void) async throws -> String? {
        do {
            try await body()
            return nil
        } catch let error as OAuthError {
            return error.code.rawValue
        }
    }
}
