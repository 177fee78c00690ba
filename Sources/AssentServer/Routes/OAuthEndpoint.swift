import HTTPTypes
import Hummingbird

/// An OAuth 2 / OpenID Connect endpoint, by its path below the realm, as AM has them.
enum OAuthEndpoint: String {
    case authorize
    case token = "access_token"
    case revoke = "token/revoke"
    case introspect
    case userInfo = "userinfo"
    case keys = "connect/jwk_uri"
    case endSession = "connect/endSession"
    case discovery = ".well-known/openid-configuration"

    /// How it is asked (RFC 6749 §3.1 and §3.2, RFC 7009 §2, RFC 7662 §2.1, OpenID Connect Core §5.3.1).
    var methods: [HTTPRequest.Method] {
        switch self {
        case .authorize, .userInfo, .endSession: [.get, .post]
        case .token, .revoke, .introspect: [.post]
        case .keys, .discovery: [.get]
        }
    }

    /// Whether pages of any origin may read its answers: the endpoints that an app in a browser calls itself. A browser adds
    /// nothing to such a call by which the server would know the user: what counts is in the form or in `Authorization`.
    var isForEveryOrigin: Bool {
        switch self {
        case .token, .revoke, .userInfo, .keys, .discovery: true
        case .authorize, .introspect, .endSession: false
        }
    }

    /// The answer to a browser that asks whether a page may call it (Fetch §3.3.2).
    var preflight: Response {
        Response(
            status: .noContent,
            headers: [
                .accessControlAllowMethods: methods.map(\.rawValue).joined(separator: ", "),
                .accessControlAllowHeaders: "Authorization, Content-Type", .accessControlMaxAge: "600",
            ])
    }

    var methodNotAllowed: Response {
        var response = Response.oauth(405, "invalid_request", "The endpoint does not know this method.")
        response.headers[.allow] = methods.map(\.rawValue).joined(separator: ", ")
        return response
    }
}
