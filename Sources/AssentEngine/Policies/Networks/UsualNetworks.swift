import AssentCore
import AssentStore

/// From which networks users have signed in and approved transactions, for the condition `UsualNetwork`. No address is
/// stored, only a ``NetworkHash`` of its network.
package struct UsualNetworks: Sendable {
    private let context: EngineContext

    /// How far back a condition may look, and how long a row is kept.
    package static let longestDays: Int64 = 90

    /// How many rows a user has at most; beyond, the one that is oldest makes room.
    package static let perUser: Int64 = 32

    /// The networks of a context's database.
    package init(_ context: EngineContext) { self.context = context }

    /// The statement that remembers where a user is, for the transaction of the database in which a journey succeeds.
    /// It counts until the user's epoch changes: a lock or another password forgets all networks.
    ///
    /// - Parameters:
    ///   - user: who it is.
    ///   - epoch: under which they have proved it; under another one nothing is remembered.
    ///   - address: where the request comes from.
    ///   - level: how strongly the journey has proved who it is.
    /// - Returns: the statement. It fails for nothing; without such a user it does nothing.
    func remembering(_ user: User, epoch: Int64?, at address: IPAddress, level: Int) -> SQLStatement {
        let network = NetworkHash(of: address, user: user, key: context.masterKey).text
        let own: SQL = "usual_networks n WHERE n.user_id = \(user.id)"
        // A row of the same network that says less, else a free place, else that of the oldest.
        return SQLStatement(
            """
            INSERT INTO usual_networks (user_id, slot, network, auth_level, epoch, seen_at)
            SELECT u.id, COALESCE(
                    (SELECT min(n.slot) FROM \(own) AND n.network = \(network) AND n.auth_level <= \(level)),
                    (SELECT min(f.slot) FROM (
                            SELECT 0 AS slot UNION ALL SELECT n.slot + 1 FROM \(own)) f
                        WHERE f.slot < \(Self.perUser)
                            AND NOT EXISTS (SELECT 1 FROM \(own) AND n.slot = f.slot)),
                    (SELECT n.slot FROM \(own) ORDER BY n.seen_at, n.slot LIMIT 1)),
                \(network), \(level), u.epoch, \(context.clock.epochSeconds)
            FROM users u WHERE u.id = \(user.id) AND u.epoch = \(epoch)
            ON CONFLICT (user_id, slot) DO UPDATE SET network = excluded.network, auth_level = excluded.auth_level,
                epoch = excluded.epoch, seen_at = excluded.seen_at
            """)
    }

    /// When, and how strongly proved, a user was in the network of an address.
    ///
    /// - Parameters:
    ///   - user: the user of a live session, who has the epoch of now.
    ///   - address: where the request comes from.
    /// - Returns: one for each level at which the network was seen; none where it never was.
    /// - Throws: ``EngineError`` `unavailable`.
    func sightings(of user: User, at address: IPAddress) async throws -> [NetworkSighting] {
        let network = NetworkHash(of: address, user: user, key: context.masterKey).text
        return try await context.translatingStoreErrors {
            try await context.database.run(
                .read(
                    """
                    SELECT auth_level, seen_at FROM usual_networks
                    WHERE user_id = \(user.id) AND network = \(network) AND epoch = \(user.epoch)
                    """)
            ).map {
                NetworkSighting(
                    authLevel: Int(clamping: try $0.integer("auth_level")), seenAt: try $0.integer("seen_at"))
            }
        }
    }

    /// Deletes what no condition looks back to.
    ///
    /// - Throws: ``StoreError``.
    package func purge() async throws {
        let oldest = context.clock.epochSeconds - Self.longestDays * 86_400
        _ = try await context.delete(
            from: "usual_networks", key: "user_id, slot", where: "seen_at <= \(oldest)")
    }
}

extension AccessSettlement {
    /// Adds where the user was before, if one of these policies asks for that and both the user and the address are
    /// known.
    func addSightings(to facts: inout PolicyFacts, for policies: [Policy]) async throws {
        guard policies.contains(where: \.asksForNetwork), let session = facts.session,
            let address = facts.clientAddress
        else { return }
        facts.sightings = try await UsualNetworks(context).sightings(of: session.user, at: address)
    }
}

extension Policy {
    /// Whether it is in force, and depends on where its user was before.
    var asksForNetwork: Bool { isActive && condition?.asksForNetwork == true }
}

extension PolicySet {
    /// Whether a policy depends on where its user was before, so that this must be remembered.
    package var asksForNetwork: Bool { policies.contains(where: \.asksForNetwork) }
}

extension PolicyCondition {
    /// Whether it depends on where its user was before.
    fileprivate var asksForNetwork: Bool {
        switch self {
        case .and(let conditions), .or(let conditions): conditions.contains(where: \.asksForNetwork)
        case .not(let condition): condition.asksForNetwork
        case .usualNetwork: true
        default: false
        }
    }
}
