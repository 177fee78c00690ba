package import AssentCore
package import AssentTokens
import Crypto
import Foundation
import HTTPTypes

/// glewlwyd, an OpenID provider in C, on a port and with a database and a signing key of its own.
///
/// It has one user, a public and a confidential client, and three issuers: ``issuer`` gives a new refresh token with
/// every refresh and refuses the old one, ``keepingIssuer`` gives none. Both insist on PKCE. ``provedIssuer`` is as the
/// first, and takes no proof (RFC 9449) without a nonce. It speaks plain HTTP on loopback, and bears one request at a
/// time: use ``PeerClient/transport()``.
package final class Glewlwyd: Sendable {
    /// The one instance of this process; it ends with the process.
    package static var shared: Glewlwyd { get async throws { try await starting.value } }

    private static let starting = Task { try await Glewlwyd() }

    /// Where codes are sent. Nobody listens there.
    package static let redirectURI = "http://127.0.0.1:9999/cb"

    /// The client without a secret.
    package static let publicClient = "app"

    /// The client with a secret, which glewlwyd stretches at every request.
    package static let confidentialClient = (id: "sdk", secret: Secret("sdk-secret-123"))

    /// The user.
    package static let user = (name: "alice", password: Secret("correct-horse"))

    /// `http://127.0.0.1:PORT`
    package let base: String

    /// The issuer that rotates refresh tokens.
    package var issuer: String { base + "/api/oidc" }

    /// The issuer whose refresh tokens stay as they are.
    package var keepingIssuer: String { base + "/api/keeping" }

    /// The issuer that rotates, and wants a nonce in every proof.
    package var provedIssuer: String { base + "/api/proved" }

    /// After how many proofs with the same nonce ``provedIssuer`` gives the next one, with the reply to the last.
    package static let nonceUses = 3

    private let process: Locked<ChildProcess>

    /// Starts an instance.
    ///
    /// - Parameter doublesSlash: whether the endpoints that it names begin with two slashes, as in
    ///   `http://127.0.0.1:1//api`.
    /// - Throws: ``PeerFailure`` when glewlwyd is not installed or does not start.
    package init(doublesSlash: Bool = false) async throws {
        let (process, port) = try await Peer.start("glewlwyd.sh", doublesSlash ? ["/"] : [])
        self.process = process
        base = "http://127.0.0.1:\(port)"
        do {
            try await setUp()
        } catch {
            stop()
            throw error
        }
    }

    /// Ends it, and removes its files.
    package func stop() {
        process.withLock { $0.stop() }
    }

    /// The seconds that a processor has worked for it so far.
    package var processorTime: Double { get throws { try process.withLock { try $0.processorTime } } }

    /// A browser in which the user has signed in.
    package func signIn() async throws -> PeerClient {
        let browser = try PeerClient()
        let answer = try await browser.send(
            .post, base + "/api/auth/",
            json: [
                "username": .string(Self.user.name), "password": .string(Self.user.password.reveal()),
            ])
        guard answer.status == 200 else { throw PeerFailure("glewlwyd: sign-in answers \(answer.status)") }
        return browser
    }

    /// Sends the browser to an authorization request and returns the URL that it is sent back to.
    package func authorize(_ url: String, in browser: PeerClient) async throws -> String {
        let answer = try await browser.send(.get, URLText.appending("g_continue", "", to: url))
        guard let location = answer.fields[.location] else {
            throw PeerFailure("glewlwyd: authorization answers \(answer.status)")
        }
        return location
    }

    /// The session of a sign-in, in the form in which ``configuration(issuer:)`` sends it.
    package func session() async throws -> Session {
        Session(token: Secret(try await signIn().cookieField))
    }

    /// Adds an issuer that rotates and calls itself `url`, for a relay that stands there. Its own paths begin with
    /// `/api/NAME`.
    ///
    /// - Throws: ``PeerFailure`` when glewlwyd refuses.
    package func addIssuer(_ name: String, at url: String) async throws {
        let administrator = try PeerClient()
        let plugin = plugin(name, at: url, key: Self.signingKey(), rotates: true)
        for (path, json) in [("/auth/", ["username": "admin", "password": "password"]), ("/mod/plugin/", plugin)] {
            let answer = try await administrator.send(.post, base + "/api" + path, json: json)
            guard answer.status == 200 else { throw PeerFailure("glewlwyd: \(path) answers \(answer.status)") }
        }
    }

    /// Adds a client without a secret, with one redirect URI, that the user has agreed to.
    ///
    /// - Throws: ``PeerFailure`` when glewlwyd refuses.
    package func addClient(_ id: String, redirectURI: String) async throws {
        let administrator = try PeerClient()
        let client: JSONValue = [
            "client_id": .string(id), "name": .string(id), "confidential": false,
            "redirect_uri": [.string(redirectURI)], "authorization_type": ["code", "refresh_token"],
            "token_endpoint_auth_method": ["none"], "scope": ["openid"], "enabled": true,
        ]
        for (path, json) in [("/auth/", ["username": "admin", "password": "password"]), ("/client/", client)] {
            let answer = try await administrator.send(.post, base + "/api" + path, json: json)
            guard answer.status == 200 else { throw PeerFailure("glewlwyd: \(path) answers \(answer.status)") }
        }
        let answer = try await signIn().send(.put, base + "/api/auth/grant/\(id)", json: ["scope": "openid"])
        guard answer.status == 200 else { throw PeerFailure("glewlwyd: the grant answers \(answer.status)") }
    }

    /// What the SDK needs to get tokens with ``session()``: the session is a cookie, and `g_continue` says that no page
    /// is to be shown.
    ///
    /// - Parameter issuer: ``issuer`` or ``keepingIssuer``; `nil` stands for the first.
    /// - Returns: a configuration of the public client.
    /// - Throws: `TokenError`.
    package func configuration(issuer: String? = nil) throws -> TokenConfiguration {
        var configuration = try TokenConfiguration(
            issuer: issuer ?? self.issuer, clientID: Self.publicClient, redirectURI: Self.redirectURI,
            sessionCookieName: "Cookie")
        configuration.authorizationParameters = [.init("g_continue", "")]
        // The tests' clock stands still while the provider's goes on.
        configuration.leeway = 300
        return configuration
    }
}

extension Glewlwyd {
    private func setUp() async throws {
        let administrator = try PeerClient()
        func say(_ method: HTTPRequest.Method, _ path: String, _ json: JSONValue) async throws {
            let answer = try await administrator.send(method, base + "/api" + path, json: json)
            guard answer.status == 200 else {
                throw PeerFailure("glewlwyd: \(path) answers \(answer.status) \(answer.text.prefix(300))")
            }
        }
        try await say(.post, "/auth/", ["username": "admin", "password": "password"])
        let key = Self.signingKey()
        for (name, rotates, proves) in [("oidc", true, false), ("keeping", false, false), ("proved", true, true)] {
            let plugin = plugin(name, at: "\(base)/api/\(name)", key: key, rotates: rotates, proves: proves)
            try await say(.post, "/mod/plugin/", plugin)
        }
        try await say(
            .post, "/user/",
            [
                "username": .string(Self.user.name), "name": "Alice", "email": "alice@example.org",
                "password": .string(Self.user.password.reveal()), "scope": ["g_profile", "openid"], "enabled": true,
            ])
        try await say(
            .post, "/client/",
            [
                "client_id": .string(Self.confidentialClient.id), "name": "SDK", "confidential": true,
                "password": .string(Self.confidentialClient.secret.reveal()),
                "redirect_uri": [.string(Self.redirectURI)], "authorization_type": ["code", "refresh_token"],
                "token_endpoint_auth_method": ["client_secret_basic", "client_secret_post"], "scope": ["openid"],
                "enabled": true,
            ])
        try await say(
            .post, "/client/",
            [
                "client_id": .string(Self.publicClient), "name": "App", "confidential": false,
                "redirect_uri": [.string(Self.redirectURI)], "authorization_type": ["code", "refresh_token"],
                "token_endpoint_auth_method": ["none"], "scope": ["openid"], "enabled": true,
            ])
        let browser = try await signIn()
        for client in [Self.publicClient, Self.confidentialClient.id] {
            let answer = try await browser.send(
                .put, base + "/api/auth/grant/\(client)", json: ["scope": "openid"])
            guard answer.status == 200 else { throw PeerFailure("glewlwyd: the grant answers \(answer.status)") }
        }
    }

    /// A key whose coordinates do not begin with a zero: glewlwyd leaves that out of its key set, against RFC 7518
    /// §6.2.1.2, and nobody who keeps to it can use such a key.
    private static func signingKey() -> P256.Signing.PrivateKey {
        while true {
            let key = P256.Signing.PrivateKey()
            let point = key.publicKey.rawRepresentation
            if point.first != 0, point.dropFirst(32).first != 0 { return key }
        }
    }

    private func plugin(
        _ name: String, at url: String, key: P256.Signing.PrivateKey, rotates: Bool, proves: Bool = false
    ) -> JSONValue {
        [
            "module": "oidc", "name": .string(name), "display_name": .string(name),
            "parameters": [
                "iss": .string(url), "jwt-type": "ecdsa", "jwt-key-size": "256",
                "key": .string(key.pemRepresentation), "cert": .string(key.publicKey.pemRepresentation),
                "jwks-show": true, "access-token-duration": 600, "refresh-token-duration": 86400,
                // Between a code and its use there may be minutes on a busy machine, where each request waits its turn.
                "code-duration": 3600,
                "refresh-token-rolling": true, "refresh-token-one-use": .string(rotates ? "always" : "never"),
                "allow-non-oidc": true, "auth-type-code-enabled": true, "auth-type-code-revoke-replayed": true,
                "auth-type-token-enabled": false, "auth-type-id-token-enabled": true, "auth-type-none-enabled": false,
                "auth-type-password-enabled": false, "auth-type-client-enabled": false,
                "auth-type-device-enabled": false, "auth-type-refresh-enabled": true,
                "pkce-allowed": true, "pkce-required": true, "pkce-method-plain-allowed": false,
                "introspection-revocation-allowed": true, "introspection-revocation-allow-target-client": true,
                "session-management-allowed": true, "session-cookie-name": "GLEWLWYD2_OIDC_SID",
                "session-cookie-expiration": 2_419_200, "subject-type": "public", "secret-type": "pairwise",
                "allowed-scope": ["openid"], "oauth-as-iss-id": true, "restrict-scope-client-property": "",
                // The tests' clock stands still, or goes ahead, while this one goes on: an hour either way.
                "oauth-dpop-allowed": .bool(proves), "oauth-dpop-iat-duration": 3600,
                "oauth-dpop-iat-gap-duration": 3600, "oauth-dpop-nonce-mandatory": .bool(proves),
                "oauth-dpop-nonce-counter": .integer(Int64(Self.nonceUses)),
                "scope": [["name": "openid", "refresh-token-rolling": true]],
            ],
        ]
    }
}
