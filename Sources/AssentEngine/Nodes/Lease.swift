import AssentCore
import AssentStore

/// Lets one of a database's servers do a piece of work that all of them could do, for a while.
///
/// It saves work and protects nothing: two nodes whose clocks differ may both hold it.
package struct Lease: Sendable {
    private let context: EngineContext
    private let name: String

    /// The lease of that name in a context's database.
    package init(_ name: String, _ context: EngineContext) {
        self.name = name
        self.context = context
    }

    /// Takes the lease for so many seconds, or prolongs it.
    ///
    /// One that another node has taken for much longer than that is of a clock that was ahead: it is taken over, or
    /// nobody would do the work for as long as that clock was ahead.
    ///
    /// - Returns: whether this node has it; otherwise another node has.
    /// - Throws: ``StoreError``.
    package func take(seconds: Int64) async throws -> Bool {
        let now = context.clock.epochSeconds
        let rows = try await context.database.run(
            SQLStatement(
                """
                INSERT INTO leases (name, holder, expires_at) VALUES (\(name), \(context.node), \(now + seconds))
                ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
                    WHERE leases.holder = excluded.holder OR leases.expires_at <= \(now)
                        OR leases.expires_at > \(now + 2 * seconds)
                RETURNING holder
                """))
        return !rows.isEmpty
    }
}
