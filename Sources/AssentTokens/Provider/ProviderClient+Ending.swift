import AssentCore

/// What ends at the provider.
extension ProviderClient {
    /// Revokes the refresh token, then the access token: the end of the first need not be that of the second (RFC 7009
    /// §2.1). What may pass is thrown at once, and both are to be revoked again; a refusal of the first does not save
    /// the second.
    func revoke(refreshToken: Secret?, accessToken: Secret?, within limit: Duration? = nil) async throws {
        var refusal: TokenError?
        for (token, kind) in [(refreshToken, "refresh_token"), (accessToken, "access_token")] {
            guard let token else { continue }
            do {
                try await revoke(token, kind: kind, within: limit)
            } catch let error as TokenError where !error.isTransient {
                refusal = refusal ?? error
            }
        }
        if let refusal { throw refusal }
    }

    private func revoke(_ token: Secret, kind: String, within limit: Duration?) async throws {
        guard let url = try await metadata().revocationEndpoint else {
            throw ProviderMetadata.missing("revocation_endpoint")
        }
        let identity = try await client.knownIdentity()
        var form = FormItems()
        form.append("token", token.reveal())
        form.append("token_type_hint", kind)
        form.append("client_id", identity.id)
        let reply = try await correctingClock(of: identity) {
            let authenticated = try await client.authenticated(form, as: identity)
            return try await exchange.post(url, form: authenticated, within: limit)
        }
        let detail = "The provider revoked no token."
        if reply.oauthError == "invalid_client" {
            throw await refused(.signOutRefused, detail, by: reply, of: identity)
        }
        try Self.checkDone(reply, detail)
    }

    /// The page that ends the provider's session (OpenID Connect RP-Initiated Logout 1.0 §2).
    func endSessionURL(idToken: Secret, redirectURI: String? = nil) async throws -> String {
        guard let endpoint = try await metadata().endSessionEndpoint else {
            throw ProviderMetadata.missing("end_session_endpoint")
        }
        var items = [("id_token_hint", idToken.reveal())]
        // The ID token names the client as well (§2), also where its registration has ended since.
        if let id = try? await client.knownIdentity().id { items.append(("client_id", id)) }
        if let redirectURI { items.append(("post_logout_redirect_uri", redirectURI)) }
        return items.reduce(endpoint) { URLText.appending($1.0, $1.1, to: $0) }
    }

    /// Ends the provider's session without a browser. Nothing is followed: a redirect leads to a page where the
    /// provider asks its user (§2), whom nobody asks here.
    func endSession(idToken: Secret) async throws {
        let url = try await endSessionURL(idToken: idToken)
        try Self.checkDone(try await exchange.get(url), "The provider's session is not ended.")
    }

    /// Neither endpoint's success has content that means anything (RFC 7009 §2.2). A page is a question to the user
    /// (RP-Initiated Logout §2) or comes from somebody who does not know the protocol, an `error` is one whatever the
    /// status, and 202 promises what nobody can look up later.
    private static func checkDone(_ reply: ProviderExchange.Reply, _ detail: String) throws(TokenError) {
        guard [200, 204].contains(reply.status), reply.oauthError == nil else {
            throw TokenError(.signOutRefused, detail, status: reply.status, oauthError: reply.oauthError)
        }
        guard !reply.isPage else {
            throw TokenError(
                .signOutRefused, "\(detail) It shows a page instead, where it may ask the user.",
                suggestion: "Sign out in a browser.", status: reply.status)
        }
    }
}
