import AssentCore
package import AssentEngine
package import HTTPTypes

/// The key `identity` of a route: in which field its service is told who calls, and what.
package struct RouteIdentity: Sendable, Hashable {
    /// The field that has the token. A client's own such field reaches no service.
    package let field: HTTPField.Name

    /// What the token says.
    package let service: ServiceIdentity

    /// The field where the route names none.
    static let usualField = HTTPField.Name("Assent-Identity")!

    private static let longestAudience = 512

    /// The key of a route; `nil` without it.
    ///
    /// - Throws: what is wrong, with its place.
    static func read(_ route: SettingsReader<Void>) throws -> RouteIdentity? {
        guard let reader = route.optionalMapping("identity") else { return nil }
        let audience = reader.string("audience")
        guard (1...longestAudience).contains(audience.utf8.count) else {
            throw reader.issue("audience", "must name the service, for example https://accounts.internal")
        }
        let claims = reader.strings("claims")
        if let unknown = ServiceIdentity.unknownClaim(in: claims) {
            let known = ServiceIdentity.selectableClaims.joined(separator: ", ")
            throw reader.issue("claims", "\(unknown) is not a claim that this server knows; known: \(known)")
        }
        let name = reader.optionalString("header") ?? usualField.rawName
        guard let field = HTTPField.Name(name), ForwardedFields.canIdentify(field) else {
            throw reader.issue("header", "\(name) cannot be the field: clients send it, or it has another meaning")
        }
        reader.finish()
        return RouteIdentity(field: field, service: ServiceIdentity(audience: audience, claims: claims))
    }

    /// What is wrong with the routes together: a field that says who calls on one of them must not be one in which
    /// clients say what they like on another, since both may lead to one service.
    static func fault(in routes: [GatewayRoute]) -> String? {
        for route in routes {
            guard let name = route.identity?.field.canonicalName else { continue }
            guard let other = routes.first(where: { $0.passHeaders.contains(name) }) else { continue }
            return "the route \(other.name) passes \(name) of clients, by which the route \(route.name) says who calls"
        }
        return nil
    }
}
