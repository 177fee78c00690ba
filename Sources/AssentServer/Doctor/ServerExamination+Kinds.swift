import AssentConfiguration
import AssentCore
import AssentEngine

/// What nobody can reach, since nobody can be of the kind that it is for, and what anybody can reach.
extension ServerExamination {
    static func kinds(_ configuration: ServerConfiguration) -> [Diagnosis] {
        configuration.realms.flatMap { realm -> [Diagnosis] in
            let routes = (configuration.gateway?.routes ?? []).filter { route in
                if case .policies(realm.name, _) = route.access { true } else { false }
            }
            return openScopes(realm) + unreachableScopes(routes, realm) + routes.flatMap { unknownKinds($0, realm) }
                + realm.policySets.flatMap { unsatisfied($0, routes, realm) }
        }
    }

    /// Scopes that anybody gets who registers, although otherwise only clients have them that prove who they are.
    private static func openScopes(_ realm: RealmConfiguration) -> [Diagnosis] {
        let confidential = Set(realm.clients.filter { $0.kind != .public }.flatMap(\.scopes))
        let common = Set(realm.clients.filter { $0.kind == .public }.flatMap(\.scopes)).union(standardScopes)
        return realm.apps.filter { $0.admission == .open }.compactMap { app in
            let secret = app.client.scopes.filter { confidential.contains($0) && !common.contains($0) }
            guard !secret.isEmpty else { return nil }
            return Diagnosis(
                .note,
                "anybody can register as the app \(app.id) of \(realm.name) (registration: open) and ask for "
                    + "[\(secret.joined(separator: ", "))], which otherwise only clients with a secret or a key have. "
                    + "Take these scopes from the app, or demand an initial access token or a software statement")
        }
    }

    /// The scopes of OpenID Connect, which say nothing about a service.
    private static let standardScopes: Set = ["openid", "profile", "email", "address", "phone", "offline_access"]

    /// Scopes that a remembered user may have although no route for remembered users asks for them. Without a route of
    /// the realm, other servers may.
    private static func unreachableScopes(_ routes: [GatewayRoute], _ realm: RealmConfiguration) -> [Diagnosis] {
        guard !routes.isEmpty else { return [] }
        let asked = Set(routes.filter { $0.accepts.contains(.implicit) }.flatMap(\.scopes))
        return realm.apps.compactMap { app in
            let useless = (app.implicitScopes ?? []).filter { !asked.contains($0) }
            guard !useless.isEmpty else { return nil }
            return Diagnosis(
                .note,
                "the app \(app.id) of \(realm.name) has the implicit scopes [\(useless.joined(separator: ", "))], and no route "
                    + "that accepts implicit asks for them: take them from implicit, or let a route accept it")
        }
    }

    /// The kinds that a route names and that nobody of its realm can be.
    private static func unknownKinds(_ route: GatewayRoute, _ realm: RealmConfiguration) -> [Diagnosis] {
        route.accepts.subtracting(possibleKinds(realm)).map(\.rawValue).sorted().map { kind in
            Diagnosis(
                .note,
                "the route \(route.name) accepts \(kind), and no app or client of \(realm.name) can call as that: "
                    + "take it from accepts, or give an app or a client what it needs")
        }
    }

    /// The kinds that callers of a realm can be of. Users are remembered by devices of the realm's transaction signing.
    private static func possibleKinds(_ realm: RealmConfiguration) -> Set<CallerKind> {
        var kinds: Set<CallerKind> = [.user]
        if realm.apps.contains(where: \.allowsStateless) { kinds.insert(.stateless) }
        if realm.apps.contains(where: \.client.callsForItself) { kinds.insert(.device) }
        if realm.clients.contains(where: \.callsForItself) { kinds.insert(.client) }
        if realm.signing != nil, realm.apps.contains(where: { $0.implicitScopes != nil }) { kinds.insert(.implicit) }
        return kinds
    }

    /// The policies that hold for nobody who can be asked about.
    private static func unsatisfied(
        _ set: PolicySet, _ routes: [GatewayRoute], _ realm: RealmConfiguration
    ) -> [Diagnosis] {
        // Over REST programs ask about users.
        let asked = routes.filter { $0.access == .policies(realm: realm.name, policySet: set.name) }
            .reduce(into: Door.policySubject.kinds) { $0.formUnion($1.accepts) }.intersection(possibleKinds(realm))
        return set.policies.filter { policy in
            var kinds = self.kinds(of: policy.subject, realm)
            if policy.condition.map(needsSession) ?? false { kinds.subtract([.device, .client]) }
            return policy.isActive && asked.isDisjoint(with: kinds)
        }.map {
            Diagnosis(
                .note,
                "the policy \($0.name) of \(realm.name), \(set.name), holds for nobody: no caller whom its routes accept "
                    + "can be its subject and meet its condition")
        }
    }

    /// The kinds of those whom a subject can be.
    private static func kinds(of subject: PolicySubject, _ realm: RealmConfiguration) -> Set<CallerKind> {
        let users: Set<CallerKind> = [.user, .implicit, .stateless]
        return switch subject {
        case .and(let subjects):
            subjects.reduce(Set(CallerKind.allCases)) { $0.intersection(kinds(of: $1, realm)) }
        case .or(let subjects): subjects.reduce(into: []) { $0.formUnion(kinds(of: $1, realm)) }
        case .not(.authenticatedUsers), .none: []
        case .not, .authenticatedUsers: users
        case .identity(let ids): ids.isEmpty ? [] : users
        // Who asks over REST about a token is a program, and the token's subject is not a caller of a route.
        case .jwtClaim: [.user]
        case .app(let ids): realm.apps.contains { ids.contains($0.id) && $0.client.callsForItself } ? [.device] : []
        case .client(let ids): realm.clients.contains { ids.contains($0.id) && $0.callsForItself } ? [.client] : []
        }
    }

    /// Whether a condition can only hold with a session, which callers for themselves do not have.
    private static func needsSession(_ condition: PolicyCondition) -> Bool {
        switch condition {
        case .and(let conditions): conditions.contains(where: needsSession)
        case .or(let conditions): !conditions.isEmpty && conditions.allSatisfy(needsSession)
        case .not(let condition): needsSession(condition)
        case .authLevel, .authenticateToService, .sessionProperty, .sessionAge, .usualNetwork, .transaction: true
        case .address, .time, .scopes: false
        }
    }
}

extension OAuthClient {
    /// Whether it can have a token of its own.
    fileprivate var callsForItself: Bool { grantTypes.contains(.clientCredentials) }
}
