package import AssentCore

/// A journey as the operator writes it: a graph of nodes, each of which asks, checks or decides.
package struct JourneyDefinition: Sendable, Hashable {
    /// The name by which clients and policies call it; compared exactly.
    package var name: String

    /// The id of the node where it begins.
    package var entry: String

    /// The nodes by their ids.
    package var nodes: [String: NodeDefinition]

    /// Whether it can only be run to approve a transaction.
    package var transactionalOnly: Bool

    /// Whether its success gives no session.
    package var noSession: Bool

    /// Whether it runs even when the session has already passed it, or another one where it is the realm's own.
    package var mustRun: Bool

    /// Seconds from its first page to its end.
    package var timeout: Int64

    /// The level that its success gives to the session, before nodes change it.
    package var authLevel: Int

    /// A journey; the flags' defaults and the five minutes are AM's.
    package init(
        name: String, entry: String, nodes: [String: NodeDefinition], transactionalOnly: Bool = false,
        noSession: Bool = false, mustRun: Bool = false, timeout: Int64 = 300, authLevel: Int = 0
    ) {
        self.name = name
        self.entry = entry
        self.nodes = nodes
        self.transactionalOnly = transactionalOnly
        self.noSession = noSession
        self.mustRun = mustRun
        self.timeout = timeout
        self.authLevel = authLevel
    }
}

/// One node of a journey.
package struct NodeDefinition: Sendable, Hashable {
    /// The node's type, by AM's name, for example `DataStoreDecisionNode`.
    package var type: String

    /// Its settings.
    package var config: JSONObject

    /// Where each outcome leads.
    package var outcomes: [String: JourneyTarget]

    /// A node.
    package init(_ type: String, config: JSONObject = JSONObject(), outcomes: [String: JourneyTarget]) {
        self.type = type
        self.config = config
        self.outcomes = outcomes
    }
}

/// Where an outcome leads.
package enum JourneyTarget: Sendable, Hashable {
    /// To the node of that id.
    case node(String)
    /// The journey has succeeded.
    case success
    /// The journey has failed.
    case failure

    /// Reads `success`, `failure` or a node's id. No node can be called like the first two.
    package init(_ text: String) {
        self =
            switch text {
            case "success": .success
            case "failure": .failure
            default: .node(text)
            }
    }
}
