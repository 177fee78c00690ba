package import AssentCore
import AssentStore

/// Lets clients act for users who have signed in, and says to browsers what comes first where they have not.
package struct AuthorizationEndpoint: Sendable {
    private let provider: OAuthProvider

    /// The authorization endpoint of a provider.
    package init(_ provider: OAuthProvider) { self.provider = provider }

    /// The authorization endpoint (RFC 6749 §4.1.1, RFC 7636, RFC 9207, OpenID Connect Core §3.1.2).
    ///
    /// - Parameters:
    ///   - parameters: the query or the form.
    ///   - session: the caller's session, if it has one that is alive.
    ///   - decision: what the user said, where they were asked. The route makes sure that it was they who said it
    ///     (``isCSRFToken(_:of:)``).
    /// - Returns: what to do; errors that the client may know are in the redirect.
    /// - Throws: ``OAuthError`` that is shown to the user and goes to no client: the client is unknown, or the redirect
    ///   URI is not the client's. ``StoreError`` when the database cannot serve.
    package func answer(
        _ parameters: OAuthParameters, session: LiveSession?, decision: AuthorizationDecision? = nil
    ) async throws -> AuthorizationOutcome {
        let target: (client: OAuthClient, uri: String)
        do {
            if parameters["response_type"] == "none", parameters["redirect_uri"] == nil {
                return try await checkSession(parameters, session: session)
            }
            target = try await redirectTarget(of: parameters)
        } catch var error as OAuthError {
            error.state = parameters["state"]
            throw error
        }
        do {
            let request = try AuthorizationRequest(parameters, client: target.client, redirectURI: target.uri)
            return try await decide(
                request, session: try await usable(session, for: request),
                hasSession: session?.realm == configuration.realm,
                decision: request.decision(decision, in: session))
        } catch let error as OAuthError {
            return .redirect(
                redirect(
                    to: target.uri, ["error": error.code.rawValue, "error_description": error.detail],
                    state: parameters["state"], isInFragment: parameters["response_type"] == "id_token"))
        }
    }

    /// Whether the session lives and the client would get a code, for a page that asks by `fetch`: there is no redirect
    /// that it would have to follow (as AM).
    private func checkSession(
        _ parameters: OAuthParameters, session: LiveSession?
    ) async throws -> AuthorizationOutcome {
        guard let client = try await provider.clients.find(try parameters.required("client_id")) else {
            throw OAuthError.invalidClient
        }
        let request = try AuthorizationRequest(parameters, client: client, redirectURI: "", isSilent: true)
        // Nobody is asked, so everything but the client's answer is an error.
        _ = try await decide(
            request, session: try await usable(session, for: request),
            hasSession: session?.realm == configuration.realm, decision: nil)
        return .sessionLives
    }

    /// What a client gets when its user gives up instead of signing in (RFC 6749 §4.1.2.1 `access_denied`).
    ///
    /// - Parameter parameters: the client's request.
    /// - Returns: where to send the browser.
    /// - Throws: ``OAuthError`` when the client is unknown, or the redirect URI is not the client's.
    package func cancel(_ parameters: OAuthParameters) async throws -> AuthorizationRedirect {
        redirect(
            to: try await redirectTarget(of: parameters).1,
            ["error": "access_denied", "error_description": "The user did not sign in."], state: parameters["state"])
    }

    /// What a client gets that needs the user's consent where nobody can be asked for it (OpenID Connect Core
    /// §3.1.2.6 `consent_required`).
    ///
    /// - Parameter parameters: the client's request.
    /// - Returns: where to send the browser.
    /// - Throws: ``OAuthError`` when the client is unknown, or the redirect URI is not the client's.
    package func withoutConsent(_ parameters: OAuthParameters) async throws -> AuthorizationRedirect {
        redirect(
            to: try await redirectTarget(of: parameters).1,
            ["error": "consent_required", "error_description": "The request requires consent."],
            state: parameters["state"])
    }

    /// Whether `token` is what AM's clients send as `csrf` beside `decision`: the token of the session itself.
    package static func isCSRFToken(_ token: Secret, of session: LiveSession) -> Bool {
        ConstantTime.equal(TokenHash.of(token), session.id)
    }

    private func redirectTarget(of parameters: OAuthParameters) async throws -> (OAuthClient, String) {
        guard let client = try await provider.clients.find(try parameters.required("client_id")) else {
            throw OAuthError.invalidClient
        }
        let uri = try parameters.required("redirect_uri")
        guard client.allowsRedirect(to: uri) else { throw OAuthError.redirectMismatch }
        return (client, uri)
    }

    /// The session, unless it is of another realm, is only for another client's or, where the client says whom it
    /// expects, of another user.
    private func usable(_ session: LiveSession?, for request: AuthorizationRequest) async throws -> LiveSession? {
        guard let session, session.realm == configuration.realm, configuration.admits(session, to: request.client)
        else {
            return nil
        }
        guard let hint = request.idTokenHint else { return session }
        let claims = try await provider.claims(ofIDToken: Secret(hint), mayHaveExpired: true)
        guard let claims, claims["aud"]?.string == request.client.id else {
            throw OAuthError.invalidRequest("The id_token_hint is not an ID token of this client.")
        }
        return claims["sub"]?.string == session.user.id ? session : nil
    }

    private func decide(
        _ request: AuthorizationRequest, session: LiveSession?, hasSession: Bool, decision: AuthorizationDecision?
    ) async throws -> AuthorizationOutcome {
        let isRecent = session.map { now - $0.createdAt <= request.maxAge ?? .max } ?? false
        guard let session, isRecent, !request.demandsLogin else {
            if request.prompts.contains(.none) {
                // AM says interaction_required; its browser SDK goes by this text, everybody else by the code.
                throw OAuthError(.loginRequired, "The request requires some interaction that is not allowed.")
            }
            return .login(try demand(request, unmet: nil, replacesSession: hasSession))
        }
        if !request.prompts.contains(.none), !request.hasAskedForContext,
            let unmet = configuration.contexts.unmet(request.acrValues, by: session)
        {
            return .login(try demand(request, unmet: unmet, replacesSession: false))
        }
        let remembered =
            request.client.consentImplied
            ? nil : try await provider.consent(of: session.user.id, to: request.client)
        let isRemembered = remembered?.covers(request.scopes) == true && !request.prompts.contains(.consent)
        if decision == .deny {
            _ = try await context.database.run(
                provider.audit.statement(record(.oauthAuthorize, .refused, reason: "denied", request, session)))
            throw OAuthError(.accessDenied, "Resource Owner did not authorize the request")
        }
        var agreement: [SQLStatement] = []
        if !request.client.consentImplied {
            if decision == .allow {
                agreement = provider.remembering(
                    request.scopes, to: request.client, earlier: remembered, of: session.user.id,
                    sessionAuditID: session.auditID)
            } else if isRemembered, let remembered {
                agreement = [provider.using(remembered, of: session.user.id)]
            } else {
                return try consentDemand(request, session)
            }
        }
        let isAgreed = agreement.map { GuardedStatement($0, else: isRemembered ? ConsentTakenBack() : nil) }
        if request.responseType != .code {
            guard case .done = try await context.database.attempt(isAgreed) else {
                return try consentDemand(request, session)
            }
            return .redirect(
                request.responseType == .idToken
                    ? try await sessionToken(request, session: session)
                    : redirect(to: request.redirectURI, [:], state: request.state))
        }
        let code: Secret?
        do {
            code = try await issueCode(request, session: session, agreement: isAgreed)
        } catch let error as StoreError where error.code == .constraint && request.client.use != nil {
            throw OAuthError(.unauthorizedClient, "The client has ended.")
        }
        guard let code else { return try consentDemand(request, session) }
        return .redirect(
            redirect(
                to: request.redirectURI, ["code": code.reveal()], state: request.state,
                clientID: request.client.id))
    }

    /// The ID token of a session check. It says who has the session, and nothing else about them.
    private func sessionToken(
        _ request: AuthorizationRequest, session: LiveSession
    ) async throws -> AuthorizationRedirect {
        let token = try await provider.mintIDToken(
            ResourceOwner(of: session), acr: configuration.contexts.reached(by: session, wanted: request.acrValues),
            client: request.client, scopes: ["openid"], nonce: request.nonce, accessToken: nil)
        return redirect(
            to: request.redirectURI, ["id_token": token.reveal()], state: request.state, isInFragment: true)
    }

    private func demand(
        _ request: AuthorizationRequest, unmet: AuthenticationContexts.Requirement?, replacesSession: Bool
    ) throws -> LoginDemand {
        LoginDemand(
            replacesSession: replacesSession,
            continuation: try request.continuation(leastMaxAge: configuration.leastMaxAge),
            requirement: unmet ?? configuration.contexts.unmet(request.acrValues, by: nil))
    }

    /// The question, unless nobody may be asked.
    private func consentDemand(
        _ request: AuthorizationRequest, _ session: LiveSession
    ) throws(OAuthError) -> AuthorizationOutcome {
        guard !request.prompts.contains(.none) else {
            throw OAuthError(.consentRequired, "The request requires consent.")
        }
        return .consent(
            ConsentDemand(
                client: request.client, user: session.user, scopes: request.scopes,
                expiresAt: now + request.client.consentLifetime,
                parameters: try request.withDecision(of: session.user), redirectURI: request.redirectURI))
    }

    /// A remembered consent was taken back between our look and what relies on it.
    private struct ConsentTakenBack: Sendable {}

    /// A code; `nil` when the agreement does not hold any more.
    private func issueCode(
        _ request: AuthorizationRequest, session: LiveSession, agreement: [GuardedStatement<ConsentTakenBack>]
    ) async throws -> Secret? {
        let code = Secret(context.random.token())
        let grant = NewGrant(
            id: context.random.uuid(), client: request.client, scopes: try await scopes(of: request, in: session),
            owner: ResourceOwner(of: session), sessionID: session.id,
            acr: configuration.contexts.reached(by: session, wanted: request.acrValues))
        let expiresAt = now + configuration.codeLifetime
        let outcome = try await context.database.attempt(
            agreement
                + [
                    grant.statement(realm: configuration.realm, now: now, expiresAt: expiresAt),
                    SQLStatement(
                        """
                        INSERT INTO oauth_codes (id, grant_id, client_id, redirect_uri, code_challenge, nonce,
                            sender, expires_at)
                        VALUES (\(TokenHash.of(code)), \(grant.id), \(request.client.id), \(request.redirectURI),
                            \(request.codeChallenge ?? ""), \(request.nonce), \(request.sender?.stored), \(expiresAt))
                        """, expecting: .exactly(1)),
                    provider.audit.statement(
                        record(.oauthAuthorize, .success, reason: nil, request, session, grantID: grant.id)),
                ].map(GuardedStatement.also))
        return if case .done = outcome { code } else { nil }
    }

    /// The scopes of a code. `offline_access`, which outlives the session, is only for a user who has signed in, and
    /// not by a container or by an app's link: tokens that outlive such a session would go on when the container is
    /// blocked, its PIN ends, or the app's grant ends.
    private func scopes(of request: AuthorizationRequest, in session: LiveSession) async throws -> [String] {
        guard request.scopes.contains(OAuthClient.offlineAccess) else { return request.scopes }
        if Door.renewal.admits(session), try await !provider.sessions.endsWithItsOrigin(session) {
            return request.scopes
        }
        return request.scopes.filter { $0 != OAuthClient.offlineAccess }
    }

    private func redirect(
        to uri: String, _ parameters: KeyValuePairs<String, String>, state: String?, clientID: String? = nil,
        isInFragment: Bool = false
    ) -> AuthorizationRedirect {
        var all = FormItems(parameters)
        all.append("iss", configuration.issuer)
        if let state { all.append("state", state) }
        if let clientID { all.append("client_id", clientID) }
        return AuthorizationRedirect(uri: uri, parameters: all, isInFragment: isInFragment)
    }

    private func record(
        _ event: AuditEvent, _ outcome: AuditRecord.Outcome, reason: String?, _ request: AuthorizationRequest,
        _ session: LiveSession, grantID: String? = nil
    ) -> AuditRecord {
        var detail = JSONObject()
        detail["client"] = .string(request.client.id)
        detail["scope"] = .string(request.scopes.joined(separator: " "))
        detail["grant"] = grantID.map(JSONValue.string)
        return AuditRecord(
            event, outcome, reason: reason, realm: configuration.realm, userID: session.user.id,
            sessionAuditID: session.auditID, detail: detail)
    }

    private var context: EngineContext { provider.context }
    private var configuration: OAuthProviderConfiguration { provider.configuration }
    private var now: Int64 { provider.now }
}
