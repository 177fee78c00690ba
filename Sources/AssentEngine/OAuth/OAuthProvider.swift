package import AssentCore
import AssentStore

/// How a realm's OAuth 2 / OpenID Connect provider is set up.
package struct OAuthProviderConfiguration: Sendable {
    /// The realm whose users and sessions it serves, for example `/alpha`.
    package var realm: String

    /// The value of `iss`, for example `https://host/am/oauth2/realms/root/realms/alpha`.
    package var issuer: String

    /// What the endpoints' paths are added to; the issuer when AM's path is used for both.
    package var endpointBase: String

    /// The clients, by id.
    package let clients: [String: OAuthClient]

    /// The apps whose instances register, by id.
    package var apps: [String: OAuthApp] = [:]

    /// What clients may ask for and are told about how their users signed in.
    package let contexts: AuthenticationContexts

    /// What scopes mean to people.
    package var scopeTexts: [String: String] = [:]

    /// How many seconds a code may be used.
    package var codeLifetime: Int64 = 60

    /// For how many seconds a refresh that is repeated by the same attempt gets the same successor, by the clock that
    /// all nodes share.
    package var refreshGrace: Int64 = 60

    /// Whether a refresh or a question to the userinfo endpoint is a use of the session that its grant belongs to. A
    /// relying party that is not behind the gateway shows no other sign of its user.
    package var tokensKeepSessions = true

    /// How long the sessions live that grants without a redirect get (``GrantWithoutRedirect``).
    package var sessionLimits = SessionLimits()

    /// What installations of the apps are told; `nil` when they are told nothing.
    package var deviceConfigurations: DeviceConfigurations?

    /// Whether apps may say what their probes have found.
    package var takesIntegrityReports = false

    /// The realm's transaction signing, whose devices sign users in; `nil` for a realm without it.
    package var signing: SigningProvider?

    /// Whether proofs of keys must have a nonce (RFC 9449 §8).
    package var requiresNonce = false

    /// The least `max_age` after a sign-in that it has demanded, in seconds: below it the way back to this endpoint
    /// would already be too long, and the user would sign in for ever.
    package var leastMaxAge: Int64 = 10

    /// A configuration. Of clients with the same id the last is taken, so validate beforehand.
    package init(
        realm: String, issuer: String, endpointBase: String? = nil, clients: [OAuthClient],
        contexts: AuthenticationContexts = AuthenticationContexts(), scopeTexts: [String: String] = [:]
    ) {
        self.scopeTexts = scopeTexts
        self.contexts = contexts
        self.realm = realm
        self.issuer = issuer
        self.endpointBase = endpointBase ?? issuer
        self.clients = Dictionary(clients.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
    }

    /// Whether the proofs of a client must have a nonce. That of a login must: the device has signed the same one.
    package func noncePolicy(of client: OAuthClient?, for grantType: String? = nil) -> NoncePolicy {
        requiresNonce || client?.requiresNonce == true || grantType == OAuthClient.GrantType.jwtBearer.rawValue
            ? .required : .offered
    }

    /// The same by the client's id; `nil` where ``definition(of:)`` knows no such client. It is asked with each proof,
    /// and a client is too large to be copied for that.
    func noncePolicy(ofDefined id: String) -> NoncePolicy? {
        let isDemanded: Bool
        if let place = clients.index(forKey: id) {
            isDemanded = clients.values[place].requiresNonce
        } else if let app = OAuthApp.id(ofInstance: id), let place = apps.index(forKey: app) {
            isDemanded = apps.values[place].client.requiresNonce
        } else {
            return nil
        }
        return requiresNonce || isDemanded ? .required : .offered
    }

    /// The client of that id in the file. ``ClientAuthenticator/find(_:)`` knows instances of apps, too.
    package func client(_ id: String) -> OAuthClient? { clients[id] }

    /// The address of an endpoint at which clients authenticate.
    func url(of endpoint: ClientEndpoint) -> String { "\(endpointBase)/\(endpoint.rawValue)" }

    /// What the assertions of clients may be meant for: the issuer, the token endpoint, and the endpoint that they are
    /// sent to (RFC 7523 §3).
    func audiences(at endpoint: ClientEndpoint) -> Set<String> { [issuer, url(of: .token), url(of: endpoint)] }

    /// What the assertions of some client may be signed with, in the order in which the metadata lists them.
    var assertionAlgorithms: [SignatureAlgorithm] {
        let used = definitions.reduce(into: Set<SignatureAlgorithm>()) { used, client in
            if case .keyed(let keys) = client.kind { used.formUnion(keys.algorithms) }
        }
        return ClientKeys.knownAlgorithms.filter(used.contains)
    }

    /// The grant types that some client may use.
    var grantTypes: [OAuthClient.GrantType] {
        OAuthClient.GrantType.allCases.filter { type in definitions.contains { $0.grantTypes.contains(type) } }
    }

    /// What the ID tokens of the clients are signed with.
    var idTokenAlgorithms: Set<SignatureAlgorithm> {
        Set(
            definitions.filter { $0.grantTypes.contains(.authorizationCode) && $0.scopes.contains("openid") }
                .map(\.idTokenAlgorithm))
    }

    /// What the access tokens of the clients are signed with.
    var accessTokenAlgorithms: Set<SignatureAlgorithm> { Set(definitions.map(\.accessTokenAlgorithm)) }

    /// The longest that a signed token of any client is valid, in seconds.
    var longestSignedLifetime: Int64 {
        definitions.map { max($0.accessTokenLifetime, $0.idTokenLifetime) }.max() ?? 0
    }
}

/// A realm's OpenID provider: what users have granted to clients, and the codes and tokens that were issued for it (RFC
/// 6749, OpenID Connect Core).
///
/// A grant begins with a code and ends when it is revoked or none of its tokens can be used any more. Every single-use
/// step is one atomic statement; codes and refresh tokens are in the store as hashes only.
/// It is a class because it is large, and each request asks for it.
package final class OAuthProvider: Sendable {
    let context: EngineContext
    let sessions: Sessions
    let audit: AuditLog
    let verifiedTokens = VerifiedTokens()
    let lookUps: AccessLookUps

    /// Finds out which client a request comes from.
    package let clients: ClientAuthenticator

    /// Registers instances of apps.
    package let registration: ClientRegistration

    /// The keys that sign access and ID tokens.
    package let keys: ServerKeys

    /// How the provider is set up.
    package let configuration: OAuthProviderConfiguration

    /// The provider of a realm. Clients whose keys are at an address authenticate only if there are `keySets`.
    ///
    /// - Throws: ``EngineError`` when a client's definition is faulty or its tokens would outlive the published keys.
    package init(
        _ context: EngineContext, keys: ServerKeys, configuration: OAuthProviderConfiguration,
        keySets: (any ClientKeySets)? = nil
    ) throws {
        let clientFaults = configuration.clients.values.flatMap { $0.validate() }
        let faults = (clientFaults + configuration.apps.values.flatMap { $0.validate() }).sorted()
        guard faults.isEmpty else { throw EngineError.internalFailure(faults.joined(separator: "; ")) }
        guard configuration.longestSignedLifetime <= keys.retention else {
            throw EngineError.internalFailure(
                "a token may not be valid longer than \(keys.retention) seconds: its key would be gone")
        }
        self.context = context
        self.sessions = Sessions(context)
        self.audit = AuditLog(context)
        self.keys = keys
        clients = ClientAuthenticator(context, configuration, keySets: keySets)
        registration = ClientRegistration(context, configuration)
        lookUps = AccessLookUps(configuration)
        self.configuration = configuration
    }

    var now: Int64 { context.clock.epochSeconds }

    /// The token endpoint (RFC 6749 §3.2): `authorization_code`, `refresh_token`, `client_credentials`, and logins of
    /// devices (RFC 7523).
    ///
    /// - Parameters:
    ///   - parameters: the form.
    ///   - caller: who has sent it and authenticated, as ``ClientAuthenticator`` says. An assertion is spent with what
    ///     is done, and also by a request that is refused here, unless that is for its proof.
    ///   - proof: the DPoP proof that the route has checked (RFC 9449).
    ///   - claim: spends that proof. It is asked when everything else of the request is valid, and before anything is
    ///     spent. What it throws is thrown on. On a database that nodes share it may be asked a second time, and the
    ///     first time before that is known: there ``AuthenticatedClient/spend(_:by:)`` spends nothing itself.
    /// - Returns: the tokens.
    /// - Throws: ``OAuthError``, or ``StoreError`` (see ``OAuthError/init(answering:)``).
    package func tokens(
        _ parameters: OAuthParameters, of caller: AuthenticatedClient, proof: TokenRequestProof?,
        claimingProof claim: @Sendable () async throws -> Void
    ) async throws -> IssuedTokens {
        try await caller.answering { try await issued(parameters, by: caller, proof, claim) }
    }

    private func issued(
        _ parameters: OAuthParameters, by caller: AuthenticatedClient, _ proof: TokenRequestProof?,
        _ claim: @Sendable () async throws -> Void
    ) async throws -> IssuedTokens {
        let (client, keyThumbprint) = (caller.client, proof?.keyThumbprint)
        guard !client.isDisabled else { throw OAuthError.versionDisabled }
        let requested = try parameters.required("grant_type")
        guard let type = OAuthClient.GrantType(rawValue: requested) else {
            throw OAuthError(.unsupportedGrantType, "Grant type is not supported: \(requested.prefix(64))")
        }
        guard client.grantTypes.contains(type) else {
            throw OAuthError(.unauthorizedClient, "The client is not allowed to use the grant type \(type.rawValue).")
        }
        guard keyThumbprint != nil || !client.requiresProof else {
            throw OAuthError(.invalidDPoPProof, "This client gets tokens only with a proof of its key (DPoP).")
        }
        return switch type {
        case .authorizationCode:
            try await CodeExchange(self).tokens(parameters, by: caller, keyThumbprint: keyThumbprint, claim)
        case .refreshToken:
            try await TokenRefresh(self).tokens(parameters, by: caller, keyThumbprint: keyThumbprint, claim)
        case .clientCredentials:
            try await clientCredentials(parameters, by: caller, keyThumbprint: keyThumbprint, claim)
        case .jwtBearer:
            try await ContainerLogin(self).tokens(parameters, by: caller, proof, claim)
        }
    }
}

/// What the token endpoint gives (RFC 6749 §5.1).
package struct IssuedTokens: Sendable {
    /// The access token, an RFC 9068 JWT.
    package let accessToken: Secret

    /// `Bearer`, or `DPoP` when the token is bound to a key.
    package let tokenType: String

    /// How many seconds the access token is valid.
    package let expiresIn: Int64

    /// The refresh token, if the client may refresh.
    package let refreshToken: Secret?

    /// The ID token, if `openid` is among the scopes.
    package let idToken: Secret?

    /// The token of the session that a login with a PIN has made (`assent_session`).
    package var session: Secret?

    /// What the access token is for.
    package let scopes: [String]
}
