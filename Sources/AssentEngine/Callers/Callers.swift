package import AssentCore

/// Finds out who sends a request. Every endpoint asks here, so that one rule decides which session is alive, which
/// realm it belongs to, and which access token is valid.
package struct Callers: Sendable {
    private let sessions: Sessions
    private let providers: [String: OAuthProvider]

    /// The callers of these realms.
    ///
    /// - Parameters:
    ///   - sessions: the sessions of all realms.
    ///   - providers: the OpenID providers, by realm.
    package init(sessions: Sessions, providers: [String: OAuthProvider]) {
        self.sessions = sessions
        self.providers = providers
    }

    /// What clients of a realm may ask for about how their users sign in; `nil` for an unknown realm.
    func contexts(realm: String) -> AuthenticationContexts? { providers[realm]?.configuration.contexts }

    /// The caller with a session's token.
    ///
    /// - Throws: ``StoreError`` when the database cannot serve.
    package func caller(with credential: SessionCredential?, realm: String) async throws -> Caller {
        guard let credential, let session = try await sessions.live(token: credential.token) else { return .anonymous }
        return session.realm == realm ? .session(session, credential.carrier) : .foreignSession(session)
    }

    /// The caller with an access token, whatever it is for.
    ///
    /// - Throws: ``StoreError`` when the database cannot serve.
    package func caller(with credentials: BearerCredentials, realm: String) async throws -> Caller {
        switch credentials {
        case .absent: return .anonymous
        case .malformed: return .refusedToken(.notOurs)
        case .token(let token):
            guard let provider = providers[realm] else { return .refusedToken(.notOurs) }
            switch try await provider.check(accessToken: token) {
            case .granted(let grant): return .accessToken(grant)
            case .refused(let reason): return .refusedToken(reason)
            }
        }
    }

    /// The caller of a service behind the gateway. An access token decides alone: a session beside it does not replace
    /// a bad one. The session is noted as used.
    ///
    /// - Throws: ``StoreError`` when the database cannot serve.
    package func caller(
        with credentials: PresentedCredentials, realm: String, requirement: AccessTokenRequirement
    ) async throws -> Caller {
        var caller = try await caller(with: credentials.accessToken, realm: realm)
        if case .anonymous = caller { caller = try await self.caller(with: credentials.session, realm: realm) }
        if case .accessToken(let grant) = caller, let issuer = providers[realm]?.configuration.issuer,
            let refusal = requirement.refusal(of: grant, issuer: issuer)
        {
            return .refusedToken(refusal)
        }
        if let presented = caller.presented { try await sessions.touch(presented.session) }
        return caller
    }
}

/// What an access token must have to be valid for a service.
package struct AccessTokenRequirement: Sendable {
    /// The scopes, all of them.
    package let scopes: [String]

    /// What it must be issued for (`aud`), one of them (RFC 9068 §4): a token that another service was given must not
    /// let that service in here.
    package let audience: [String]

    /// Whether the realm's issuer is an audience too.
    package let includesIssuer: Bool

    /// A requirement.
    package init(scopes: [String], audience: [String], includesIssuer: Bool) {
        self.scopes = scopes
        self.audience = audience
        self.includesIssuer = includesIssuer
    }

    func refusal(of grant: AccessGrant, issuer: String) -> AccessRefusal? {
        guard grant.audience.contains(where: { audience.contains($0) || includesIssuer && $0 == issuer }) else {
            return .otherAudience
        }
        return Set(scopes).isSubset(of: grant.scopes) ? nil : .insufficientScope
    }
}
