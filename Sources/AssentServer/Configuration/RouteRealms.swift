import AssentCore
import AssentEngine

/// The realms whose policies a gateway's routes may name.
enum RouteRealms {
    /// Those of the same file.
    case known([RealmConfiguration])
    /// Those of these names, whose policies another server has.
    case elsewhere(Set<String>)

    /// The realms of the same file.
    var configurations: [RealmConfiguration] { if case .known(let realms) = self { realms } else { [] } }

    /// Whether the engine is another server.
    var isElsewhere: Bool { if case .elsewhere = self { true } else { false } }

    /// The actions that a policy set knows; `nil` where another server knows them.
    func actions(realm: String, policySet: String) -> [String]? {
        guard case .known(let realms) = self else { return nil }
        return realms.first { $0.name == realm }?.policySets.first { $0.name == policySet }?.actions ?? []
    }

    /// Checks what a route names, as far as that can be known here.
    ///
    /// - Throws: what is wrong, with its place.
    func check(_ route: SettingsReader<Void>, realm: String, policySet: String) throws {
        switch self {
        case .known(let realms):
            guard let known = realms.first(where: { $0.name == realm }) else {
                throw route.issue("realm", "the file has no realm \(realm)")
            }
            guard known.policySets.contains(where: { $0.name == policySet }) else {
                let names = known.policySets.map(\.name).joined(separator: ", ")
                throw route.issue("policySet", "realm \(realm) has no policy set \(policySet); known: \(names)")
            }
        case .elsewhere(let names):
            guard names.contains(realm) else {
                throw route.issue("realm", "engine.realms has no realm \(realm): the gateway has no client there")
            }
        }
    }
}
