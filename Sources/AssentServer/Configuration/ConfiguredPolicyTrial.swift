import AssentConfiguration
package import AssentCore
package import AssentEngine
import HTTPTypes

/// `assent policy test`: tries an access on the policies of a server's file. No database is opened.
package struct ConfiguredPolicyTrial: Sendable {
    /// The realm; `nil` for the only one.
    package var realm: String?
    /// The policy set; `nil` for the only one of the realm.
    package var policySet: String?
    /// The user's language.
    package var language = "en"
    /// Who sends the request.
    package var caller = ImaginedCaller()

    /// A trial of nobody.
    package init() {}

    /// What the policies of a file would say.
    ///
    /// - Throws: ``ConfigurationError`` when the file cannot be used, or does not have the realm or the policy set.
    package func run(
        file: String, url: CanonicalResource, content: RequestContent, clock: any WallClock = SystemClock()
    ) throws -> PolicyTrial {
        let configuration = try ServerConfiguration.load(file: file)
        func one<Value>(_ kind: String, of all: [Value], named name: String?, _ nameOf: (Value) -> String) throws
            -> Value
        {
            let found = name.map { name in all.filter { nameOf($0) == name } } ?? all
            guard found.count == 1, let value = found.first else {
                let names = all.map(nameOf).joined(separator: ", ")
                throw ConfigurationError(
                    file: file, line: nil,
                    name.map { "there is no \(kind) \($0); known: \(names)" } ?? "name one \(kind) of these: \(names)")
            }
            return value
        }
        let wanted = realm.map { $0.hasPrefix("/") ? $0 : "/" + $0 }
        let realm = try one("realm", of: configuration.realms, named: wanted, \.name)
        let set = try one("policy set", of: realm.policySets, named: policySet, \.name)
        return PolicyTrial(
            set, resource: url, action: configuration.gateway?.action(of: content.method, url, in: set),
            content: content, facts: caller.facts(realm: realm.name, now: clock.epochSeconds), language: language)
    }
}

extension GatewayConfiguration {
    /// The action of a request at the gateway; `nil` where it has no route to the set of policies there.
    fileprivate func action(of method: String, _ resource: CanonicalResource, in set: PolicySet) -> String? {
        guard let own = try? Origin(headerValue: publicURL),
            own == (try? Origin(headerValue: "\(resource.scheme)://\(resource.host):\(resource.port)")),
            let route = GatewayRoute.answering(resource.path, of: routes),
            route.access == .policies(realm: set.realm, policySet: set.name),
            let method = HTTPRequest.Method(rawValue: method)
        else { return nil }
        return route.actions.action(of: method, resource)
    }
}
