import AssentCore
import AssentEngine
import Foundation
import Hummingbird

/// Policies, and what they are made of, as AM's REST interface shows them. The server's file has them: nothing is
/// changed here.
struct PolicyObjectRoutes: Sendable {
    /// What there is to be read.
    enum Kind: String, Sendable, CaseIterable {
        /// Policies, by their names.
        case policies
        /// Policy sets.
        case applications
        /// The types of resources.
        case resourcetypes
        /// The types of conditions.
        case conditiontypes
        /// The types of subjects.
        case subjecttypes
    }

    /// What a wrong method is told besides.
    static let place = "Policies are in the server's file, under realms.<name>.policySets, and are changed there."

    let decisions: PolicyDecisionPoint

    /// All of a kind, for AM's `_queryFilter=true`.
    func list(_ kind: Kind, _ call: RouteCall<OAuthProvider>) throws -> Response {
        try Self.authorize(call)
        guard let filter = try call.request.query("_queryFilter") else {
            throw AMError(400, "Use _queryFilter=true, or a name behind \(kind.rawValue)/.")
        }
        guard filter == "true" else { throw AMError(501, "The only _queryFilter is true.") }
        let found = objects(kind, realm: call.realm)
        return .json(
            200,
            [
                "result": .array(found.map { .object($0) }), "resultCount": .integer(found.count),
                "pagedResultsCookie": .null, "totalPagedResultsPolicy": "NONE", "totalPagedResults": -1,
                "remainingPagedResults": -1,
            ])
    }

    /// The one that the path names.
    func one(_ kind: Kind, _ call: RouteCall<OAuthProvider>) throws -> Response {
        try Self.authorize(call)
        guard let name = call.id.removingPercentEncoding else { throw AMError.notFound }
        let found = objects(kind, realm: call.realm).filter { $0["_id"]?.string == name }
        guard let object = found.first else {
            throw kind == .policies ? AMError(404, "Policy \(name.prefix(100)) does not exist.") : AMError.notFound
        }
        guard found.count == 1 else {
            throw AMError(409, "Several policy sets have a policy of this name. Use _queryFilter=true.")
        }
        return .json(200, .object(object))
    }

    private func objects(_ kind: Kind, realm: String) -> [JSONObject] {
        let sets = decisions.policySets(realm: realm)
        switch kind {
        case .policies: return sets.flatMap { set in set.policies.map(set.object(of:)) }
        case .applications: return sets.map(\.object)
        case .resourcetypes:
            var ids: Set<String> = []
            return sets.filter { ids.insert($0.resourceTypeID).inserted }.map(\.resourceType)
        case .conditiontypes: return PolicyType.conditions.map(\.object)
        case .subjecttypes: return PolicyType.subjects.map(\.object)
        }
    }

    private static func authorize(_ call: RouteCall<OAuthProvider>) throws {
        let caller = try call.session
        guard Door.administration.admits(caller), !caller.user.roles.isDisjoint(with: [.admin, .auditor]) else {
            throw EngineError.forbidden
        }
    }
}
