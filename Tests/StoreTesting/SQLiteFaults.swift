package import AssentStore

/// What happens to a SQLite file outside of the server, for tests.
extension SQLDatabase {
    /// Limits the file to `pages` database pages: what a full disk looks like.
    package func limitSize(pages: Int) async throws {
        _ = try await pragma("max_page_count = \(pages)")
    }

    /// Refuses every change, or takes them again: what a file looks like that may only be read (`SQLITE_READONLY`).
    package func setReadOnly(_ isReadOnly: Bool) async throws {
        _ = try await pragma("query_only = \(isReadOnly ? 1 : 0)")
    }

    /// Whether each commit is on the disk before it is acknowledged; 2 is FULL.
    package func synchronousLevel() async throws -> Int64? {
        try await pragma("synchronous").first?.integer("synchronous")
    }

    private func pragma(_ text: String) async throws -> [SQLRow] {
        guard let sqlite = self as? SQLiteDatabase else { throw StoreError(.statement, "this is not SQLite") }
        return try await sqlite.pragma(text)
    }
}
