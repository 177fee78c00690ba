import AssentStore

extension EngineContext {
    /// How many rows of a table are deleted or changed in one transaction.
    static let rowsAtOnce = 5_000

    /// Deletes the rows of a table for which a condition is true, some in one transaction: after a long stop or an
    /// attack all at once would take longer than a statement may, each time anew, or keep those who write waiting.
    ///
    /// - Parameters:
    ///   - table: the table.
    ///   - key: the columns of its primary key.
    ///   - condition: is looked at once more when a row is deleted: it may have changed meanwhile.
    /// - Returns: how many rows there were.
    /// - Throws: ``StoreError``.
    func delete(from table: SQL, key: SQL = "id", where condition: SQL) async throws -> Int {
        try await inSteps("DELETE FROM \(table)", of: table, key: key, where: condition)
    }

    /// Changes the rows of a table for which a condition is true, some in one transaction, for the same reason.
    ///
    /// - Parameters:
    ///   - table: the table.
    ///   - key: the columns of its primary key.
    ///   - changes: what is set. It must make the condition false, or the steps would never end.
    ///   - condition: is looked at once more when a row is changed.
    /// - Throws: ``StoreError``.
    func update(_ table: SQL, key: SQL = "id", set changes: SQL, where condition: SQL) async throws {
        _ = try await inSteps("UPDATE \(table) SET \(changes)", of: table, key: key, where: condition)
    }

    private func inSteps(_ change: SQL, of table: SQL, key: SQL, where condition: SQL) async throws -> Int {
        var count = 0
        while true {
            let changed = try await database.run(
                SQLStatement(
                    """
                    \(change) WHERE (\(condition)) AND (\(key)) IN (
                        SELECT \(key) FROM \(table) WHERE \(condition) LIMIT \(Self.rowsAtOnce))
                    RETURNING \(key)
                    """)
            ).count
            count += changed
            guard changed == Self.rowsAtOnce else { return count }
        }
    }
}
