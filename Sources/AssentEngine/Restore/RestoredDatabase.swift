import AssentCore
import AssentStore

/// The database of a restored backup, before a server works on it: what was open when the backup was made may have been
/// used since, and nobody here knows.
package struct RestoredDatabase: Sendable {
    private let context: EngineContext

    /// How much of each kind there was, in the order of ``FencedKind``.
    package struct Outcome: Sendable, Hashable {
        /// The counts, without those that are zero.
        package let counts: [FencedKind: Int64]
    }

    /// A context's database.
    package init(_ context: EngineContext) { self.context = context }

    /// Ends everything that ``TableRegister`` says is used once or may have ended since, in one transaction of the
    /// database.
    ///
    /// - Parameter keepingSessions: whether sessions, grants, consents and the keys of tokens stay as they are in the
    ///   backup. What was signed out, revoked, withdrawn or discarded since is valid again then.
    /// - Returns: how much there was.
    /// - Throws: ``StoreError``; nothing has changed then.
    package func fence(keepingSessions: Bool = false) async throws -> Outcome {
        var plan: [(step: FenceStep, range: Range<Int>)] = []
        var statements: [SQLStatement] = []
        for table in TableRegister.tables {
            for step in table.fence where !(keepingSessions && step.isOptional) {
                let own = try await step.statements(for: table.name, context)
                plan.append((step, statements.count..<statements.count + own.count))
                statements += own
            }
        }
        let note = AuditRecord(.databaseRestore, .success, detail: ["keepsSessions": .bool(keepingSessions)])
        let results = try await context.database.run(statements + [AuditLog(context).statement(note)])
        var counts: [FencedKind: Int64] = [:]
        for (step, range) in plan {
            let count = try step.count(Array(results[range]))
            if let kind = step.kind, count > 0 { counts[kind, default: 0] += count }
        }
        return Outcome(counts: counts)
    }
}
