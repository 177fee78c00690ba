import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

/// `/json/…/authenticate`: one step of a journey (am-server reference, authenticate).
struct AuthenticateRoute: Sendable {
    let authentication: Authentication
    let cookie: SessionCookie

    /// The public origin of the server, which is in the URLs that proofs are about.
    let origin: String

    /// Answers a step of a realm.
    func respond(to call: RouteCall<OAuthProvider>) async throws -> Response {
        let request = call.request
        let raw = try await call.body()
        let fields = request.headers
        var step = AuthenticateRequest(
            realm: call.realm, authIndexType: try request.query("authIndexType"),
            authIndexValue: try request.query("authIndexValue"), forceAuth: try request.flag("ForceAuth"),
            noSession: try request.flag("noSession"), suspendedID: try request.query("suspendedId"),
            sessionToken: cookie.token(fields),
            answer: try PageAnswer(
                Request.jsonObject(raw, contentType: fields[.contentType]), bytes: raw),
            clientAddress: call.client.limitKey,
            header: { name in HTTPField.Name(name).flatMap { fields[$0] } })
        step.clientIP = call.client.ip
        step.languages = AcceptedLanguages(fields).tags
        step.isStateless = try request.flag("stateless")
        step.proof = PresentedProof(request, origin: origin, server: .authorizationServer)
        step.noncePolicy = call.service.configuration.noncePolicy(of: nil)
        let reply = try await authentication.authenticate(step)
        var headers: HTTPFields = [.contentAPIVersion: "resource=2.1"]
        // A browser's navigation proves no key: a cookie with such a session would lock it out of every page.
        if case .success(let success) = reply, success.isNewSession, success.keyThumbprint == nil,
            let token = success.token
        {
            headers[values: .setCookie] = cookie.setting(token, answering: fields)
        }
        headers[.dpopNonce] = reply.newNonce
        return .json(200, reply.json, headers: headers)
    }
}
