import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

/// How the gateway tells a client what the user must do first.
struct AdviceReply {
    let serverURL: String
    let publicOrigin: Origin

    /// 401 with a challenge for a client that asked for it, or that `isScript`; else a redirect to the server.
    ///
    /// A script cannot follow that redirect: its browser tells the server no origin then, and the server answers none.
    ///
    /// A browser would repeat an unsafe method and its body to the server when it follows a 307; a navigation gets 303,
    /// which makes a GET of it. Its body is then lost, so it gets no way back to the resource.
    func reply(
        to request: Request, resource: CanonicalResource, realm: String, advice: Advice, isScript: Bool
    ) throws -> Response {
        if isScript || request.headers[.authenticateResponse]?.lowercased() == "header" {
            var response = Response.problem(401, "The user must do something first: see WWW-Authenticate.")
            response.headers[.wwwAuthenticate] = try advice.challengeFieldValue(server: serverURL, realm: realm)
            return response
        }
        let isNavigation = request.headers[.secFetchMode] == "navigate"
        let isSafe = [.get, .head].contains(request.method)
        let back = "\(publicOrigin)\(isNavigation && !isSafe ? "/" : resource.target)"
        var response = Response(status: isNavigation && !isSafe ? .seeOther : .temporaryRedirect)
        response.headers[.location] = try advice.redirectLocation(
            server: serverURL, goto: back, realm: realm, encoding: .base64URL)
        response.headers[.cacheControl] = "no-store"
        return response
    }
}
