import AssentCore
import AssentStore

/// One thing that is done to a table of a restored backup.
package struct FenceStep: Sendable {
    /// What ends by it; `nil` when that is counted elsewhere.
    package let kind: FencedKind?

    /// Whether it ends what is used many times, so that an operator may decide to keep it.
    package let isOptional: Bool

    private let work: Work

    private enum Work: Sendable {
        /// Rows are deleted.
        case delete(condition: @Sendable (Int64) -> SQL)
        /// Rows get other values.
        case set(@Sendable (Int64) -> SQL, condition: @Sendable (Int64) -> SQL)
        /// What the database alone cannot do. Each statement returns the rows that it has changed.
        case prepared(@Sendable (EngineContext) async throws -> [SQLStatement])
    }

    private init(_ kind: FencedKind?, isOptional: Bool, _ work: Work) {
        self.kind = kind
        self.isOptional = isOptional
        self.work = work
    }

    /// Deletes the rows for which `condition` is true at a time.
    static func delete(
        _ kind: FencedKind?, isOptional: Bool = false,
        where condition: @escaping @Sendable (Int64) -> SQL = { _ in "1 = 1" }
    ) -> FenceStep {
        FenceStep(kind, isOptional: isOptional, .delete(condition: condition))
    }

    /// Gives the rows for which `condition` is true other values.
    static func set(
        _ kind: FencedKind?, isOptional: Bool = false, _ assignment: @escaping @Sendable (Int64) -> SQL,
        where condition: @escaping @Sendable (Int64) -> SQL
    ) -> FenceStep {
        FenceStep(kind, isOptional: isOptional, .set(assignment, condition: condition))
    }

    /// Runs statements that are made for the database; each returns the rows that it has changed.
    static func prepared(
        _ kind: FencedKind?, _ statements: @escaping @Sendable (EngineContext) async throws -> [SQLStatement]
    ) -> FenceStep {
        FenceStep(kind, isOptional: false, .prepared(statements))
    }

    /// The statements for a table. The rows that they return are what ``count(_:)`` counts.
    func statements(for table: String, _ context: EngineContext) async throws -> [SQLStatement] {
        let now = context.clock.epochSeconds
        let name = SQL(verbatim: table)
        switch work {
        case .delete(let condition):
            return [
                .read("SELECT count(*) AS ended FROM \(name) WHERE \(condition(now))"),
                SQLStatement("DELETE FROM \(name) WHERE \(condition(now))"),
            ]
        case .set(let assignment, let condition):
            return [
                .read("SELECT count(*) AS ended FROM \(name) WHERE \(condition(now))"),
                SQLStatement("UPDATE \(name) SET \(assignment(now)) WHERE \(condition(now))"),
            ]
        case .prepared(let statements): return try await statements(context)
        }
    }

    /// How many rows there were, from what the statements have returned.
    func count(_ results: [[SQLRow]]) throws -> Int64 {
        if case .prepared = work { return Int64(results.joined().count) }
        return try results.first?.first?.integer("ended") ?? 0
    }
}
