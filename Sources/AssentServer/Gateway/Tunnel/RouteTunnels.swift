import AssentCore
import AssentEngine

/// The key `websocket` of a route, and what belongs to it.
package struct RouteTunnels: Sendable, Hashable {
    /// How many may be open at once, on this node.
    package var limit = 1000

    /// For how many seconds neither end may send anything.
    package var silenceSeconds = 120

    /// After how many seconds the caller is looked up again.
    package var recheckSeconds = 30

    /// How many seconds the gateway waits for the service's connection. The file does not change this and what follows.
    package var connectSeconds = 5

    /// How many seconds it waits for the service's answer to the handshake.
    package var answerSeconds = 10

    /// How many seconds it waits, when the service has ended the tunnel, for a client that takes the rest.
    package var closeSeconds = 10

    private static let further = ["maxTunnels", "tunnelSilenceSeconds"]

    /// What a route says; `nil` where it has no WebSockets. `handshakes` are the actions that a GET may have there.
    ///
    /// - Throws: what is wrong, with its place.
    static func read(
        _ route: SettingsReader<Void>, upstream: UpstreamSettings, access: GatewayRoute.Access,
        handshakes: Set<String>, realms: [RealmConfiguration]
    ) throws -> RouteTunnels? {
        guard route.bool("websocket", default: false) else {
            if let key = further.first(where: { route.has($0) }) {
                throw route.issue(key, "belongs to websocket: true")
            }
            return nil
        }
        guard upstream.addresses.count == 1,
            upstream.addresses.allSatisfy({ (try? Origin(headerValue: $0))?.isSecure == false })
        else {
            throw route.issue("websocket", "the upstream of a route with WebSockets must be one http URL")
        }
        if let policy = policyWithTransaction(access, handshakes, realms) {
            throw route.issue(
                "websocket",
                "the policy \(policy) asks for a transaction for GET, which a WebSocket cannot have: give the route a "
                    + "policy set of its own")
        }
        var read = RouteTunnels()
        read.limit = route.integer("maxTunnels", default: read.limit, in: 1...1_000_000)
        read.silenceSeconds = route.integer("tunnelSilenceSeconds", default: read.silenceSeconds, in: 1...86_400)
        return read
    }

    /// A policy of the route's set that would ask for a transaction at a handshake, which is a GET.
    private static func policyWithTransaction(
        _ access: GatewayRoute.Access, _ handshakes: Set<String>, _ realms: [RealmConfiguration]
    ) -> String? {
        guard case .policies(let realm, let name) = access else { return nil }
        let set = realms.first { $0.name == realm }?.policySets.first { $0.name == name }
        return set?.policies.first { policy in
            policy.isActive && !handshakes.isDisjoint(with: policy.actionValues.keys)
                && !(policy.condition?.transactions ?? []).isEmpty
        }?.name
    }
}
