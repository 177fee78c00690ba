import AssentCore
package import AssentStore
import Crypto

/// The servers of a database. Each writes down every few minutes that it is there and by which policies it decides:
/// what was approved under one policy is refused by a node that has another.
package struct Nodes: Sendable {
    private let context: EngineContext

    /// Seconds between two reports of a node.
    package static let interval: Int64 = 300

    /// Seconds after which a node that has not reported counts as gone.
    package static let presence = 2 * interval + 60

    /// A server as it was when it last reported.
    package struct Node: Sendable, Hashable {
        /// Its id.
        package let id: String
        /// When it reported, in seconds since 1970, by its own clock.
        package let seenAt: Int64
        /// The digest of its policies.
        package let policies: String
    }

    /// The nodes of a context's database.
    package init(_ context: EngineContext) { self.context = context }

    /// The digest of a configuration's policies: equal on two nodes if and only if each policy has the same name, place
    /// and revision.
    package static func digest(of policySets: [PolicySet]) -> String {
        let lines = policySets.flatMap { set in
            set.policies.map { JSONValue.array([set.realm, set.name, $0.name, $0.revision].map { .string($0) }) }
        }
        let text = lines.map { $0.serialized() }.sorted().joined(separator: "\n")
        return Base64URL.encode(Array(SHA256.hash(data: Array(text.utf8))))
    }

    /// Writes down that this node is there, and forgets those that are gone for a day.
    ///
    /// - Returns: the ids of the nodes that are there and decide by other policies.
    /// - Throws: ``StoreError``.
    package func report(policies: String) async throws -> [String] {
        let now = context.clock.epochSeconds
        let results = try await context.database.run([
            SQLStatement(
                """
                INSERT INTO nodes (id, seen_at, policies) VALUES (\(context.node), \(now), \(policies))
                ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, policies = excluded.policies
                """),
            SQLStatement("DELETE FROM nodes WHERE seen_at < \(now - 86_400)"),
            Self.reading,
        ])
        return try (results.last ?? []).map(Self.node)
            .filter { $0.policies != policies && $0.seenAt > now - Self.presence }.map(\.id)
    }

    /// The statement that reads all nodes of a database, for ``node(_:)``.
    package static let reading = SQLStatement.read("SELECT id, seen_at, policies FROM nodes ORDER BY id")

    /// A row of ``reading``.
    package static func node(_ row: SQLRow) throws -> Node {
        Node(id: try row.text("id"), seenAt: try row.integer("seen_at"), policies: try row.text("policies"))
    }
}
