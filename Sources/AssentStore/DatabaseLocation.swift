package import AssentCore

/// Where a database is. The one place that knows which kinds of database there are.
package enum DatabaseLocation: Sendable, Hashable {
    /// A SQLite file. Its directory must exist.
    case sqlite(path: String)

    /// Opens the database, makes it when it is missing, and brings its schema up to date.
    ///
    /// - Parameters:
    ///   - schema: the tables it must have.
    ///   - clock: the time that is recorded beside each step of the schema.
    /// - Returns: the open database; close it with ``SQLDatabase/close()``.
    /// - Throws: ``StoreError``: `unavailable` when it cannot be opened or written, `newerSchema` when a later version
    ///   of the server has used it, `corrupt` when it is no database.
    package func open(schema: Schema = .current, clock: any WallClock) async throws -> any SQLDatabase {
        switch self {
        case .sqlite(let path):
            let database = try await SQLiteDatabase(path: path)
            try await schema.apply(to: database, clock: clock)
            return database
        }
    }

    /// Looks at the database without changing it, also while a server has it open.
    ///
    /// - Parameter schema: the tables that this version needs.
    /// - Returns: what was found.
    /// - Throws: ``StoreError``: `unavailable` when it cannot be read, `corrupt` when it is no database.
    package func examine(schema: Schema = .current) async throws -> DatabaseExamination {
        switch self {
        case .sqlite(let path): try await SQLiteExamination(path: path, schema: schema).run()
        }
    }
}

/// What a look at a database has found.
package struct DatabaseExamination: Sendable, Hashable {
    /// How far its schema is.
    package let schema: SchemaState

    /// Whether its pages and indexes fit together; `true` when there is no database.
    package let isWhole: Bool
}
