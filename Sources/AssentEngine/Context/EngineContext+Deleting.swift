import AssentStore

extension EngineContext {
    /// How many rows of a table are deleted in one transaction.
    static let deletionBatch = 5_000

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
        var count = 0
        while true {
            let deleted = try await database.run(
                SQLStatement(
                    """
                    DELETE FROM \(table) WHERE (\(condition)) AND (\(key)) IN (
                        SELECT \(key) FROM \(table) WHERE \(condition) LIMIT \(Self.deletionBatch))
                    RETURNING \(key)
                    """)
            ).count
            count += deleted
            guard deleted == Self.deletionBatch else { return count }
        }
    }
}
