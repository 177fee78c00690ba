import AssentCore
import AssentEnforcement
package import AssentEngine
import HTTPTypes

/// The key `actions` of a route: of several entries the first that is about a request says its action.
package struct RouteActions: Sendable, Hashable {
    /// The entries, in their order.
    package var entries: [RouteAction] = []

    private static let maximumEntries = 100

    /// The action that policies decide on: the method itself where no entry says otherwise.
    func action(of method: HTTPRequest.Method, _ resource: CanonicalResource) -> String {
        entries.first { $0.covers(method.rawValue, resource) }?.name ?? method.rawValue
    }

    /// The actions that requests of a method may have here.
    func names(of method: HTTPRequest.Method) -> Set<String> {
        Set(entries.filter { $0.methods.contains(method.rawValue) }.map(\.name) + [method.rawValue])
    }

    /// Reads the key of a route at `path`.
    ///
    /// - Throws: what is wrong, with its place.
    static func read(
        _ route: SettingsReader<Void>, path: String, access: GatewayRoute.Access, realms: RouteRealms
    ) throws -> RouteActions {
        var read = RouteActions()
        guard route.has("actions"), case .policies(let realm, let name) = access else { return read }
        let known = realms.actions(realm: realm, policySet: name)
        for reader in route.list("actions") {
            let entry = try entry(reader, path: path, known: known)
            if let earlier = read.entries.first(where: { $0.hides(entry) }) {
                throw reader.issue("path", "an entry before it is about all of it already: \(earlier.path)")
            }
            read.entries.append(entry)
        }
        guard (1...maximumEntries).contains(read.entries.count) else {
            throw route.issue("actions", "a route has 1 to \(maximumEntries) of them, or no such key")
        }
        return read
    }

    private static func entry(
        _ reader: SettingsReader<Void>, path: String, known: [String]?
    ) throws -> RouteAction {
        let methods = reader.strings("methods")
        let forwarded = Gateway.methods.map(\.rawValue)
        guard !methods.isEmpty, methods.allSatisfy(forwarded.contains) else {
            throw reader.issue("methods", "must name some of: \(forwarded.sorted().joined(separator: ", "))")
        }
        let name = reader.string("action")
        guard (1...EnforcementBounds.name).contains(name.utf8.count) else {
            throw reader.issue("action", "must have 1 to \(EnforcementBounds.name) bytes")
        }
        if let known, !known.contains(name) {
            throw reader.issue(
                "action", "the policy set knows no action \(name); known: \(known.joined(separator: ", "))")
        }
        let entry: RouteAction
        do {
            entry = try RouteAction(methods: Set(methods), path: reader.string("path"), name: name)
        } catch {
            throw reader.issue("path", error.description)
        }
        guard entry.reaches(below: path) else {
            throw reader.issue("path", "matches nothing at or below the route's path, \(path)")
        }
        reader.finish()
        return entry
    }
}
