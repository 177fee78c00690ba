import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

/// How the gateway tells a client what the user must do first.
struct AdviceReply {
    /// What is known of the client.
    struct Client {
        /// Whether it is a page of another origin. A script cannot follow the redirect to the server: its browser tells
        /// the server no origin then, and the server answers none.
        let isForeignPage: Bool

        /// Whether it came with an access token, and with no session beside it. AM's clients have one.
        let hasTokenAlone: Bool

        /// By which scheme its token came.
        let scheme: TokenScheme

        /// What a new access token must be asked for with, where that would help (RFC 9470 §3). Only for a client that
        /// came with a token.
        let acrValues: [String]
    }

    let serverURL: String
    let publicOrigin: Origin

    /// 401 with a challenge for a client that asked for it, and for scripts: the redirect would lead them to a page for
    /// people, if their browser lets them follow it at all. Else a redirect to the server.
    ///
    /// A browser would repeat an unsafe method and its body to the server when it follows a 307; a navigation gets 303,
    /// which makes a GET of it. Its body is then lost, so it gets no way back to the resource.
    func reply(
        to request: Request, resource: CanonicalResource, realm: String, advice: Advice, client: Client
    ) throws -> Response {
        let mode = request.headers[.secFetchMode]
        let isScript = client.isForeignPage || mode != nil && mode != "navigate"
        let isStandard = client.hasTokenAlone && !client.acrValues.isEmpty
        if isStandard || isScript || request.headers[.authenticateResponse]?.lowercased() == "header" {
            var response = Response.problem(401, "The user must do something first: see WWW-Authenticate.")
            response.headers[.wwwAuthenticate] = try advice.challenges(
                server: serverURL, realm: realm, scheme: client.scheme, acrValues: client.acrValues)
            return response
        }
        let isNavigation = mode == "navigate"
        let isSafe = [.get, .head].contains(request.method)
        let back = "\(publicOrigin)\(isNavigation && !isSafe ? "/" : resource.target)"
        var response = Response(status: isNavigation && !isSafe ? .seeOther : .temporaryRedirect)
        response.headers[.location] = try advice.redirectLocation(
            server: serverURL, goto: back, realm: realm, encoding: .xml)
        response.headers[.cacheControl] = "no-store"
        return response
    }
}
