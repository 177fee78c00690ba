package import AssentCore

/// The tables that this version of the server works with, as steps that are applied one after the other.
///
/// The table `schema_steps` records which steps a database has. Steps are numbered from 1 without gaps.
package struct Schema: Sendable {
    /// The steps, oldest first.
    package let steps: [Migration]

    /// Its tables, once they were asked for: that makes a database, and each attempt at a copy asks.
    let knownTables = Locked<[StoredTable]?>(nil)

    /// A schema; tests make shorter and longer ones than ``current``.
    package init(_ steps: [Migration]) {
        self.steps = steps
    }

    /// The schema of this version.
    package static let current = Schema([
        .users, .sessions, .audit, .serverKeys, .transactions, .grants, .journeySteps, .administration,
        .auditSequence, .boundFields, .serverState, .auditNodes, .nodes, .grantContexts, .repeatedRequests, .consents,
        .signing, .signingSlots, .signingLife, .signingNotices, .transactionMakers, .userEpochs, .codeKeys,
        .clientAssertions, .sessionKeys, .senders, .tokenlessSessions, .registrations,
        .sessionKinds, .instanceVersions, .logins, .webLinks, .journeyLevels, .shownLines, .payloadKeys,
        .usualNetworks, .deviceConfigs, .transactionAttempts, .blockedContainers, .signingNoticePositions,
        .housekeeping, .pendingKeys, .attemptAges, .statelessKeys, .signingLookUps, .restoredSlots,
        .earlierSessions, .auditUsers,
    ])

    /// Brings a database up to date. All missing steps are one transaction: if one fails, the older version of the
    /// server can still use the database.
    ///
    /// Servers that start at the same time share the work: each step's record is written only while it is the next
    /// one, so one server applies the steps and the others find them applied.
    ///
    /// - Parameters:
    ///   - database: what is brought up to date.
    ///   - clock: the time that is recorded beside each step.
    ///   - check: is asked before steps are added to a database that has the table `server_state`. There is no way back
    ///     from them, so what refuses the database must do it here.
    /// - Throws: ``StoreError``: `newerSchema` when a later version of the server has used the database, else the
    ///   reason why a step failed; what `check` throws.
    package func apply(
        to database: any SQLDatabase, clock: any WallClock,
        admitting check: (any SQLDatabase) async throws -> Void = { _ in }
    ) async throws {
        var applied = try await Self.appliedSteps(of: database)
        while try isMissingSteps(after: applied) {
            if steps.prefix(applied).contains(where: { $0.name == Migration.serverState.name }) {
                try await check(database)
            }
            do {
                _ = try await database.run(statements(after: applied, at: clock.epochSeconds))
                return
            } catch let error as StoreError {
                // Another server may have been faster. Then its steps are there now.
                let latest = try await Self.appliedSteps(of: database)
                guard latest > applied else { throw error }
                applied = latest
            }
        }
    }

    /// What a database with so many steps is to this version.
    func state(applied: Int) -> SchemaState {
        if applied == steps.count { return .current(step: applied) }
        return applied < steps.count
            ? .older(step: applied, known: steps.count) : .newer(step: applied, known: steps.count)
    }

    /// How many steps a database has. Makes the table that says so when it is missing.
    private static func appliedSteps(of database: any SQLDatabase) async throws -> Int {
        let table = SQLStatement(
            """
            CREATE TABLE IF NOT EXISTS schema_steps (
                step INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)
            """)
        let rows = try await database.run([table, SchemaState.count]).last ?? []
        return Int(try rows.first?.integer("steps") ?? 0)
    }

    private func isMissingSteps(after applied: Int) throws -> Bool {
        let state = state(applied: applied)
        if case .newer = state { throw StoreError(.newerSchema, state.description) }
        return applied < steps.count
    }

    private func statements(after applied: Int, at now: Int64) -> [SQLStatement] {
        steps.enumerated().dropFirst(applied).flatMap { index, step in
            let record = SQLStatement(
                """
                INSERT INTO schema_steps (step, name, applied_at)
                SELECT \(index + 1), \(step.name), \(now) WHERE (SELECT count(*) FROM schema_steps) = \(index + 1) - 1
                """, expecting: .exactly(1))
            return [record] + step.statements.map { SQLStatement(SQL(verbatim: $0)) }
        }
    }
}

/// How far a database's schema is, seen by this version of the server.
package enum SchemaState: Sendable, Hashable, CustomStringConvertible {
    /// There is no database, or nothing in it.
    case missing
    /// It is as this version needs it.
    case current(step: Int)
    /// A start brings it from `step` to `known`.
    case older(step: Int, known: Int)
    /// A later version of the server has used it. This version refuses to start.
    case newer(step: Int, known: Int)
    /// It has tables, but none of them are this server's.
    case foreign

    /// How many steps a database has.
    static let count = SQLStatement.read("SELECT count(*) AS steps FROM schema_steps")

    /// What it means for the operator.
    package var description: String {
        switch self {
        case .missing: "the database will be made at the first start"
        case .current(let step): "the database has schema step \(step), as this version needs it"
        case .older(let step, let known): "a start will bring the schema from step \(step) to \(known)"
        case .newer(let step, let known):
            "the database has schema step \(step), this version knows \(known): use a newer assent"
        case .foreign: "the database holds tables of another program, and none of this server"
        }
    }
}
