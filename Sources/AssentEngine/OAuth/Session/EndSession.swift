import AssentCore
import AssentStore

/// What the end session endpoint answers.
package enum EndSessionOutcome: Sendable, Hashable {
    /// It is done, and there is no page to go to.
    case done
    /// It is done, and the browser goes on to the client's page.
    case redirect(location: String)
}

extension OAuthProvider {
    /// The end session endpoint (OpenID Connect RP-Initiated Logout 1.0 §2): ends the session that an ID token of ours,
    /// expired or not, came from. The grants of that session end with it, unless they are for
    /// `offline_access`.
    ///
    /// - Throws: ``OAuthError`` without a valid `id_token_hint`, or for a `post_logout_redirect_uri` that is not the
    ///   client's; the session is then as it was.
    package func endSession(_ parameters: OAuthParameters) async throws -> EndSessionOutcome {
        guard let claims = try await hintedClaims(Secret(try parameters.required("id_token_hint"))),
            let clientID = claims["aud"]?.string, let client = configuration.client(clientID),
            let userID = claims["sub"]?.string, let auditID = claims["sid"]?.string,
            parameters["client_id"] == nil || parameters["client_id"] == clientID
        else { throw OAuthError.invalidRequest("The id_token_hint is not an ID token of this server for this client.") }
        let target = parameters["post_logout_redirect_uri"]
        if let target, !client.postLogoutRedirectURIs.contains(target) { throw OAuthError.redirectMismatch }

        // After a step-up the grant belongs to another session than the one that the token names.
        let ending = SQLStatement(
            """
            DELETE FROM sessions WHERE user_id = \(userID) AND (audit_id = \(auditID) OR id IN
                (SELECT session_id FROM grants WHERE user_id = \(userID) AND session_audit_id = \(auditID)))
            """, expecting: .exactly(1))
        let record = AuditRecord(
            .sessionEnd, .success, reason: "end_session", realm: configuration.realm, userID: userID,
            sessionAuditID: auditID, detail: ["client": .string(clientID)])
        do {
            _ = try await context.database.run([ending, audit.statement(record)])
        } catch let error as StoreError where error.code == .unexpectedCount {
            // It has ended already.
        }
        guard let target else { return .done }
        var answer = FormItems()
        if let state = parameters["state"] { answer.append("state", state) }
        return .redirect(location: RedirectURI.adding(answer, to: target))
    }
}
