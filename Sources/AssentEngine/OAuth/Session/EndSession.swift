import AssentCore
import AssentStore

/// What the end session endpoint answers.
package enum EndSessionOutcome: Sendable {
    /// It is done, and there is no page to go to.
    case done
    /// It is done, and the browser goes on to the client's page.
    case redirect(location: String)
    /// Nothing proves that the user wants this, so they are asked.
    case question(EndSessionQuestion)
    /// The user was asked, and stays signed in.
    case kept
}

/// The question whether a user wants to sign out.
package struct EndSessionQuestion: Sendable {
    /// Who is signed in.
    package let user: User

    /// The client that asks, if it has said which one it is.
    package let client: OAuthClient?

    /// The client's page to go to afterwards.
    package let target: String?

    /// The request to send again with the user's decision.
    package let parameters: OAuthParameters
}

/// Ends sessions as the pages and programs of clients ask (OpenID Connect RP-Initiated Logout 1.0).
package struct EndSessionEndpoint: Sendable {
    private let provider: OAuthProvider

    /// The end session endpoint of a provider.
    package init(_ provider: OAuthProvider) { self.provider = provider }

    /// The parameter of the end session endpoint that may be there more than once: the vendor's token vault adds its
    /// own to the one of the page.
    package static let repeatableHint: Set<String> = ["id_token_hint"]

    /// The end session endpoint (OpenID Connect RP-Initiated Logout 1.0 §2): ends the session that an ID token of ours,
    /// expired or not, came from; anyone may call it. The grants of that session end with it, unless they are for
    /// `offline_access`. Without an ID token the user of the browser's own session is asked.
    ///
    /// - Parameters:
    ///   - parameters: the query or the form.
    ///   - session: the browser's session; `nil` for a caller that cannot be asked.
    ///   - decision: what the user said when they were asked. The route makes sure that it was they who said it.
    /// - Returns: what to do.
    /// - Throws: ``OAuthError`` for an `id_token_hint` that is not valid, for none from a caller that has no session,
    ///   and for a `post_logout_redirect_uri` that is not the client's; the session is then as it was.
    package func answer(
        _ parameters: OAuthParameters, session: LiveSession? = nil, decision: AuthorizationDecision? = nil
    ) async throws -> EndSessionOutcome {
        let hints = parameters.all("id_token_hint")
        guard !hints.isEmpty else {
            return try await endOwn(parameters, session: session, decision: decision)
        }
        guard let hint = try await hint(in: hints), let client = configuration.definition(of: hint.clientID),
            parameters["client_id"] == nil || parameters["client_id"] == hint.clientID
        else { throw OAuthError.invalidRequest("The id_token_hint is not an ID token of this server for this client.") }
        let target = try logoutTarget(parameters, client: client)

        // After a step-up it is another session than the one that the token names.
        let ending = SQLStatement(
            "DELETE FROM sessions WHERE user_id = \(hint.userID) AND \(Sessions.isOne(of: hint.sessionAuditID))",
            expecting: .atLeast(1))
        let record = AuditRecord(
            .sessionEnd, .success, reason: "end_session", realm: configuration.realm, userID: hint.userID,
            sessionAuditID: hint.sessionAuditID, detail: ["client": .string(client.id)])
        do {
            _ = try await context.database.run([ending, provider.audit.statement(record)])
        } catch let error as StoreError where error.code == .unexpectedCount {
            // It has ended already.
        }
        return Self.afterLogout(target, parameters)
    }

    private struct Hint: Hashable {
        let clientID: String
        let userID: String
        let sessionAuditID: String
    }

    /// What the ID tokens among the hints name; `nil` when none is ours, or they name different sessions.
    private func hint(in hints: [String]) async throws -> Hint? {
        var found: Set<Hint> = []
        for hint in hints.prefix(2) {
            guard let claims = try await provider.claims(ofIDToken: Secret(hint), mayHaveExpired: true),
                let clientID = claims["aud"]?.string,
                let userID = claims["sub"]?.string, let auditID = claims["sid"]?.string
            else { continue }
            found.insert(Hint(clientID: clientID, userID: userID, sessionAuditID: auditID))
        }
        return found.count == 1 ? found.first : nil
    }

    /// Asks the user of the browser's session whether they want to sign out, and does it when they have said so.
    private func endOwn(
        _ parameters: OAuthParameters, session: LiveSession?, decision: AuthorizationDecision?
    ) async throws -> EndSessionOutcome {
        var client: OAuthClient?
        if let id = parameters["client_id"] {
            guard let known = configuration.definition(of: id) else { throw OAuthError.invalidClient }
            client = known
        }
        // Without a client nobody knows whose page it is, so the browser stays here.
        let target = try client.flatMap { client throws(OAuthError) in try logoutTarget(parameters, client: client) }
        guard let session else { return Self.afterLogout(target, parameters) }
        switch decision {
        case nil:
            let rest = parameters.form.items.filter { $0.name != "decision" }
            return .question(
                EndSessionQuestion(
                    user: session.user, client: client, target: target,
                    parameters: try OAuthParameters(FormItems(rest))))
        case .deny: return .kept
        case .allow:
            var detail = JSONObject()
            detail["client"] = client.map { .string($0.id) }
            _ = try await provider.sessions.end(
                id: session.id,
                recording: AuditRecord(
                    .sessionEnd, .success, reason: "end_session", realm: configuration.realm, userID: session.user.id,
                    sessionAuditID: session.auditID, detail: detail))
            return Self.afterLogout(target, parameters)
        }
    }

    private func logoutTarget(_ parameters: OAuthParameters, client: OAuthClient) throws(OAuthError) -> String? {
        guard let target = parameters["post_logout_redirect_uri"] else { return nil }
        // A program on the user's machine takes any free port (RFC 8252 §7.3).
        guard client.postLogoutRedirectURIs.contains(where: { RedirectURI.matches(target, registered: $0) }) else {
            throw .redirectMismatch
        }
        return target
    }

    private static func afterLogout(_ target: String?, _ parameters: OAuthParameters) -> EndSessionOutcome {
        guard let target else { return .done }
        var answer = FormItems()
        if let state = parameters["state"] { answer.append("state", state) }
        return .redirect(location: RedirectURI.adding(answer, to: target))
    }

    private var context: EngineContext { provider.context }
    private var configuration: OAuthProviderConfiguration { provider.configuration }
}
