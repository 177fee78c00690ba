package import AssentCore

/// Copies all rows of one database to another, of the same kind or not, while nobody else uses them.
///
/// Each part of the rows is one transaction, so a copy that was broken off goes on after the greatest key of each
/// table. At the end both sides are read again and compared; only then the target counts as a database.
package struct DatabaseCopy: Sendable {
    private let source: any SQLDatabase
    private let target: any SQLDatabase
    private let tables: [StoredTable]
    private let mark: UnfinishedCopy

    /// A copy.
    ///
    /// - Parameters:
    ///   - source: what is read.
    ///   - target: what is written. It has the same schema.
    ///   - schema: the schema of both.
    ///   - identity: bytes that no other source has, also when it was moved to another place.
    ///   - random: tells this attempt from others.
    /// - Throws: ``StoreError`` for a schema with a table that cannot be copied.
    package init(
        from source: any SQLDatabase, to target: any SQLDatabase, schema: Schema = .current, identity: [UInt8],
        random: any RandomSource
    ) throws {
        self.source = source
        self.target = target
        tables = try schema.tables()
        mark = UnfinishedCopy(identity: identity, random: random)
    }

    /// Copies and compares, or only compares where an earlier attempt has ended. `report` is told how far it is.
    ///
    /// - Throws: ``DatabaseCopyError``, or ``StoreError`` when a database failed. The target then keeps its mark, and
    ///   another attempt goes on.
    package func run(report: @escaping @Sendable (CopyProgress) -> Void = { _ in }) async throws -> CopyReport {
        if try await UnfinishedCopy.isThere(in: source) {
            throw DatabaseCopyError(
                .sourceUnfinished, "The source is an unfinished copy itself.", "Finish that copy, or take its source.")
        }
        let isResumed: Bool
        do {
            isResumed = try await mark.begin(in: target, tables)
        } catch let error as DatabaseCopyError where error.code == .targetNotEmpty {
            guard let earlier = try await ended(report) else { throw error }
            return earlier
        }
        for table in tables { try await copy(table, report) }
        let digests = try await compared(report)
        try await DatabaseCopyError.explaining(takenAt: 0) { _ = try await target.run([mark.removal]) }
        return CopyReport(tables: digests, isResumed: isResumed)
    }

    /// What an earlier attempt has copied, where it has removed its mark and only the answer to that was lost. `nil`
    /// where the target does not hold the same as the source, or another attempt is under way. Nothing is written.
    private func ended(_ report: @escaping @Sendable (CopyProgress) -> Void) async throws -> CopyReport? {
        // Most other targets differ in this, which is found faster.
        for table in tables {
            guard try await count(table, in: source) == count(table, in: target) else { return nil }
        }
        do {
            let digests = try await compared(report)
            guard try await !UnfinishedCopy.isThere(in: target) else { return nil }
            return CopyReport(tables: digests, isResumed: true)
        } catch let error as DatabaseCopyError where error.code == .contentDiffers {
            return nil
        }
    }

    /// Reads all tables of both sides.
    private func compared(_ report: @escaping @Sendable (CopyProgress) -> Void) async throws -> [TableDigest] {
        var digests: [TableDigest] = []
        for table in tables { digests.append(try await compared(table, report)) }
        for (table, digest) in zip(tables, digests) { try await refuseChanged(table, since: digest) }
        return digests
    }

    private func copy(_ table: StoredTable, _ report: (CopyProgress) -> Void) async throws {
        let total = try await count(table, in: source)
        let last = try await TableScan.greatestKey(of: table, in: target)
        var rows = last == nil ? 0 : try await count(table, in: target)
        var scan = TableScan(table, in: source, after: last)
        while true {
            let part = try await scan.next()
            if part.isEmpty { break }
            try await DatabaseCopyError.explaining(takenAt: 0) {
                _ = try await target.run([mark.proof] + part.map(table.insertion))
            }
            rows += Int64(part.count)
            report(CopyProgress(step: .copying, table: table.name, rows: rows, total: total))
        }
        report(CopyProgress(step: .copying, table: table.name, rows: rows, total: total, isDone: true))
    }

    private func compared(
        _ table: StoredTable, _ report: @escaping @Sendable (CopyProgress) -> Void
    ) async throws -> TableDigest {
        let total = try await count(table, in: source)
        async let theirs = TableDigest.read(table, in: source)
        let ours = try await TableDigest.read(table, in: target) {
            report(CopyProgress(step: .comparing, table: table.name, rows: $0, total: total))
        }
        let expected = try await theirs
        guard ours == expected else {
            throw DatabaseCopyError(
                .contentDiffers,
                """
                The table \(table.name) is not the same on both sides: \(expected.rows) rows in the source, \
                \(ours.rows) in the target. One of the two was changed while it was copied, or since a copy was broken \
                off.
                """, DatabaseCopyError.emptyTarget)
        }
        report(CopyProgress(step: .comparing, table: table.name, rows: ours.rows, total: total, isDone: true))
        return ours
    }

    /// A server that has begun to work on the source since has written records at least: what it has done is not in the
    /// target, and what it has spent could be spent there again.
    private func refuseChanged(_ table: StoredTable, since digest: TableDigest) async throws {
        let rows = try await count(table, in: source)
        guard rows == digest.rows else {
            throw DatabaseCopyError(
                .contentDiffers,
                """
                The table \(table.name) of the source had \(digest.rows) rows when it was compared, and has \(rows) \
                now: somebody works on the source. Stop all its servers.
                """, DatabaseCopyError.emptyTarget)
        }
    }

    private func count(_ table: StoredTable, in database: any SQLDatabase) async throws -> Int64 {
        try await database.run(.read("SELECT count(*) AS n FROM \(table.source)")).first?.integer("n") ?? 0
    }
}

/// How far a copy is.
package struct CopyProgress: Sendable, Hashable {
    /// What is done with the tables, one after the other.
    package enum Step: Sendable, Hashable {
        /// Rows are read from the source and written to the target.
        case copying
        /// Both sides are read and compared.
        case comparing
    }

    /// What is done.
    package let step: Step

    /// The table.
    package let table: String

    /// How many rows of it are done.
    package let rows: Int64

    /// How many it has.
    package let total: Int64

    /// Whether this step is done with the table.
    package let isDone: Bool

    /// A stage of a copy.
    package init(step: Step, table: String, rows: Int64, total: Int64, isDone: Bool = false) {
        self.step = step
        self.table = table
        self.rows = rows
        self.total = total
        self.isDone = isDone
    }
}

/// What a copy has copied. Both sides hold it.
package struct CopyReport: Sendable, Hashable {
    /// Each table, in the order in which they were copied.
    package let tables: [TableDigest]

    /// Whether an earlier attempt had begun.
    package let isResumed: Bool
}
