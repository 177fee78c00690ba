package import AssentCore

/// An app that may ask for tokens, as the operator's file defines it.
package struct OAuthClient: Sendable, Hashable {
    /// What a client may do at the token endpoint.
    package enum GrantType: String, Sendable, Hashable, CaseIterable {
        /// Change a code for tokens.
        case authorizationCode = "authorization_code"
        /// Change a refresh token for tokens.
        case refreshToken = "refresh_token"
        /// Get a token of its own, without a user.
        case clientCredentials = "client_credentials"
        /// Sign a user in by a login that a device has signed (RFC 7523 §2.1). For installations of apps.
        case jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    }

    /// Whether the client can keep a secret, and what it proves itself with (RFC 6749 §2.1).
    package enum Kind: Sendable, Hashable {
        /// It cannot: an app on a device, a page.
        case `public`
        /// It can; the value is ``OAuthClient/hash(ofSecret:)`` of its secret.
        case confidential(secretHash: String)
        /// It holds a private key, and signs assertions with it (`private_key_jwt`).
        case keyed(ClientKeys)
    }

    /// The value of `client_id`.
    package var id: String

    /// Whether it can keep a secret.
    package var kind: Kind

    /// Where codes may be sent; compared as they are, but for the port of a loopback address.
    package var redirectURIs: [String]

    /// Where a browser may be sent after the session was ended.
    package var postLogoutRedirectURIs: [String] = []

    /// The web origins of its pages, which may call the endpoints of the provider.
    package var allowedOrigins: [String] = []

    /// What it may ask for.
    package var scopes: [String]

    /// What it gets when it asks for nothing in particular; part of ``scopes``.
    package var defaultScopes: [String] = []

    /// What it may do at the token endpoint.
    package var grantTypes: Set<GrantType> = [.authorizationCode, .refreshToken]

    /// How many seconds an access token is valid.
    package var accessTokenLifetime: Int64 = 3600

    /// How many seconds a refresh token may be used; its successor lives as long again.
    package var refreshTokenLifetime: Int64 = 7 * 24 * 3600

    /// How many seconds an ID token is valid.
    package var idTokenLifetime: Int64 = 3600

    /// What its ID tokens are signed with: RS256, which every client must know (OpenID Connect Core §15.1), or ES256.
    package var idTokenAlgorithm = SignatureAlgorithm.rs256

    /// What its access tokens are signed with: ES256, or RS256, which every resource server must know (RFC 9068 §2.1).
    package var accessTokenAlgorithm = SignatureAlgorithm.es256

    /// The claims about the user that its ID tokens carry, as far as the granted scopes give them (OpenID Connect Core
    /// §5.4). For programs that never ask the userinfo endpoint.
    package var idTokenClaims: [String] = []

    /// Whether its pages may ask by `prompt=none` for an ID token without a code, to learn whose session lives.
    package var checksSessions = false

    /// Whether the user is taken to agree, since the client is the operator's own. The vendor's SDKs need it.
    package var consentImplied = true

    /// How many seconds a user's consent is remembered.
    package var consentLifetime: Int64 = 365 * 86400

    /// What users know it as; its id when `nil`.
    package var name: String?

    /// Whether a code needs a PKCE challenge (RFC 7636). A public client always needs one.
    package var requiresPKCE = true

    /// The resource servers its access tokens are for (`aud`, RFC 9068 §3); the issuer itself when empty.
    package var audience: [String] = []

    /// Whether it may introspect tokens that are neither its own nor meant for it: a resource server.
    package var introspectsAll = false

    /// Whether all its access tokens belong to a key, so that it gets none without a proof (`dpop_bound_access_tokens`,
    /// RFC 9449 §5.2).
    package var requiresProof = false

    /// Whether its proofs must have a nonce, whatever the realm says.
    package var requiresNonce = false

    /// For an instance of an app: whether its version is served no more.
    var isDisabled = false

    /// For an instance of an app: whether its version must seal its calls.
    var requiresSealing = false

    /// For an instance of an app: what is written when it authenticates; `nil` for a client of the file.
    var use: InstanceUse?

    /// Its id in the table of instances; `nil` for a client of the file.
    var instanceID: String? { use == nil ? nil : id }

    /// A client with AM's defaults; what is not a parameter can be set.
    package init(id: String, kind: Kind, redirectURIs: [String], scopes: [String]) {
        self.id = id
        self.kind = kind
        self.redirectURIs = redirectURIs
        self.scopes = scopes
    }

    /// What is kept of a client's secret. The secret is a machine's, 256 random bits, so nothing is stretched.
    package static func hash(ofSecret secret: Secret) -> String { TokenHash.of(secret) }

    /// Whether `secret` is the client's.
    func accepts(_ secret: Secret) -> Bool {
        guard case .confidential(let hash) = kind else { return false }
        return ConstantTime.equal(Self.hash(ofSecret: secret), hash)
    }

    /// Whether codes may go to `uri`.
    package func allowsRedirect(to uri: String) -> Bool {
        redirectURIs.contains { RedirectURI.matches(uri, registered: $0) }
    }

    /// What is left of the scopes that are asked for when those that nobody may have here are taken away (RFC 6749
    /// §3.3): many programs always ask for `offline_access`, or for all that the metadata lists.
    ///
    /// - Throws: ``OAuthError`` `invalid_scope` when none is left.
    static func allowed(_ asked: [String], where isAllowed: (String) -> Bool) throws(OAuthError) -> [String] {
        let allowed = asked.filter(isAllowed)
        guard !allowed.isEmpty || asked.isEmpty else { throw .invalidScope(asked) }
        return allowed
    }

    static func isScope(_ text: String) -> Bool {
        (1...128).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0 == 0x21 || (0x23...0x5B).contains($0) || (0x5D...0x7E).contains($0) }
    }
}

extension OAuthClient {
    /// What is wrong with the definition, one sentence each; empty when nothing is.
    package func validate() -> [String] {
        var faults: [String] = []
        if id.isEmpty || id.utf8.count > 128 || !id.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) {
            faults.append("a client id has 1 to 128 printable ASCII characters")
        }
        if case .confidential(let hash) = kind, Base64URL.decode(hash)?.count != 32 {
            faults.append("\(id): the secret's hash is the unpadded base64url of a SHA-256")
        }
        if case .keyed(let keys) = kind { faults += keys.faults.map { "\(id): \($0)" } }
        if kind == .public, !requiresPKCE { faults.append("\(id): a public client always needs PKCE") }
        if kind == .public, introspectsAll { faults.append("\(id): a public client cannot introspect") }
        if kind == .public, grantTypes.contains(.clientCredentials) {
            faults.append("\(id): a public client has no secret, so it cannot use client_credentials")
        }
        if grantTypes.contains(.authorizationCode), redirectURIs.isEmpty {
            faults.append("\(id): a client that uses codes needs a redirect URI")
        }
        for uri in redirectURIs + postLogoutRedirectURIs {
            if let fault = RedirectURI.fault(in: uri) { faults.append("\(id): redirect URI \(uri) \(fault)") }
        }
        for scope in scopes where !Self.isScope(scope) { faults.append("\(id): \(scope) cannot be a scope") }
        for scope in defaultScopes where !scopes.contains(scope) {
            faults.append("\(id): default scope \(scope) is not one of its scopes")
        }
        if !ServerKeys.Purpose.idToken.algorithms.contains(idTokenAlgorithm) {
            faults.append("\(id): ID tokens are signed with RS256 or ES256")
        }
        if !ServerKeys.Purpose.accessToken.algorithms.contains(accessTokenAlgorithm) {
            faults.append("\(id): access tokens are signed with ES256 or RS256")
        }
        faults += idTokenClaims.compactMap(fault(inClaim:))
        if checksSessions, !scopes.contains("openid") || !grantTypes.contains(.authorizationCode) {
            faults.append("\(id): checking sessions needs the scope openid and the grant type authorization_code")
        }
        if Set(scopes).count != scopes.count { faults.append("\(id): a scope is there twice") }
        for (name, seconds) in [
            ("access token", accessTokenLifetime), ("refresh token", refreshTokenLifetime),
            ("ID token", idTokenLifetime), ("user's consent", consentLifetime),
        ] where !(1...10 * 366 * 86400).contains(seconds) {
            faults.append("\(id): the lifetime of its \(name) must be between a second and ten years")
        }
        return faults
    }

    /// Why ID tokens cannot carry a claim; `nil` when they can.
    private func fault(inClaim claim: String) -> String? {
        guard let scope = UserClaims.scope(of: claim) else {
            return
                "\(id): \(claim) is not a claim that this server knows; known: \(UserClaims.selectable.joined(separator: ", "))"
        }
        return scopes.contains(scope) ? nil : "\(id): the claim \(claim) needs the scope \(scope)"
    }
}
