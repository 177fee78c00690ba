import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

/// Signing out where the browser has come from no app that could do it.
extension SignInRoute {
    /// Says that the user is signed in, with a button to sign out.
    func signedInPage(_ visit: SignInVisit) -> Response {
        let language = visit.frame.language
        let body: HTML = """
            \(SignInMessage.signedIn.html(language))
            <form method="post" action="\(exact: visit.address())">
            <p class="actions"><button name="signout" value="1">\(language[.signOut])</button></p>
            </form>
            """
        return PageDocument(title: language[.signedIn], body: body, frame: visit.frame).response()
    }

    /// Ends the session of the browser that has sent our form. A browser has one for all realms: where its user has
    /// signed in to another one since the page was shown, that session would live on without its cookie.
    func signOut(_ visit: SignInVisit) async throws -> Response {
        let fields = visit.request.headers
        var caller = try await caller(visit)
        if case .foreignSession(let other) = caller { caller = try await self.caller(visit, realm: other.realm) }
        if let session = caller.session {
            let record = AuditRecord(
                .sessionEnd, .success, reason: "logout", realm: session.realm, userID: session.user.id,
                sessionAuditID: session.auditID)
            _ = try await sessions.end(id: session.id, recording: record)
        }
        var response = visit.says(.signedOut, 200)
        for value in cookie.clearing(answering: fields) + (visit.wanted.run?.setting(nil, in: fields) ?? []) {
            response.headers.append(HTTPField(name: .setCookie, value: value))
        }
        return response
    }
}
