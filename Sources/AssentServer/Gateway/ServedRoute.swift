import AssentCore
import AssentEngine

/// A route as the gateway serves it: what each of its requests needs of it is made once and handed on by reference.
final class ServedRoute: Sendable {
    /// The route.
    let route: GatewayRoute

    /// The origins whose pages may call it.
    let pages: TrustedOrigins

    /// What an access token must have on it.
    let requirement: AccessTokenRequirement

    /// Which fields of clients its service gets.
    let fields: ForwardedFields.Rules

    /// A route of a gateway with this origin.
    init(_ route: GatewayRoute, origin: String, cookie: SessionCookie) {
        self.route = route
        pages = TrustedOrigins(own: origin, listed: route.allowedOrigins)
        requirement = route.requirement(origin: origin)
        fields = ForwardedFields.Rules(
            cookie: cookie, keepsAuthorization: route.keepsAuthorization, passes: route.passHeaders,
            strips: route.stripHeaders)
    }

    /// The request target that the service gets; see ``GatewayRoute/target(of:)``.
    func target(of resource: CanonicalResource) -> String {
        route.rewrite == nil ? resource.target : route.target(of: resource)
    }

    /// The route that answers `path`; see ``GatewayRoute/answering(_:of:)``.
    static func answering(_ path: String, of routes: [ServedRoute]) -> ServedRoute? {
        GatewayRoute.answering(path, of: routes, folded: \.route.folded)
    }
}
