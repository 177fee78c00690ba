package import AssentStore

/// What every ``AssentStore/SQLDatabase`` must do, as rules that run in any test framework.
///
/// ```swift
/// @Test(arguments: SQLDatabaseContract.rules)
/// func keeps(_ rule: SQLDatabaseContract.Rule) async throws {
///     try await rule.check { try await place.open(schema: SQLDatabaseContract.schema, clock: SystemClock()) }
/// }
/// ```
package enum SQLDatabaseContract {
    /// Opens the database of one check. Each call makes another instance, as another server process would.
    package typealias Opening = @Sendable () async throws -> any SQLDatabase

    /// One demand on a database.
    package struct Rule: Sendable, CustomStringConvertible {
        /// The demand, as a sentence.
        package let description: String

        private let body: @Sendable (any SQLDatabase, Opening) async throws -> Void

        init(_ description: String, _ body: @escaping @Sendable (any SQLDatabase, Opening) async throws -> Void) {
            self.description = description
            self.body = body
        }

        init(_ description: String, _ body: @escaping @Sendable (any SQLDatabase) async throws -> Void) {
            self.init(description) { database, _ in try await body(database) }
        }

        /// Checks a database, which must be new, used by nobody else, and have the contract's ``schema``.
        ///
        /// - Throws: ``SQLDatabaseContract/Violation``, or what the database threw unexpectedly.
        package func check(_ open: @escaping Opening) async throws {
            try await body(try await open(), open)
        }
    }

    /// A database that does not keep the contract.
    package struct Violation: Error, CustomStringConvertible {
        /// What was expected and what was seen.
        package let description: String

        init(_ description: String) {
            self.description = description
        }
    }

    /// The tables that the rules use.
    package static let schema = Schema([
        Migration(
            "sample",
            [
                "CREATE TABLE owners (id TEXT PRIMARY KEY)",
                """
                CREATE TABLE notes (
                    id TEXT PRIMARY KEY, owner_id TEXT REFERENCES owners (id), body BLOB,
                    count BIGINT NOT NULL DEFAULT 0, label TEXT DEFAULT 'a TEXT', level INTEGER)
                """,
            ])
    ])

    /// All rules. Each needs a database of its own.
    package static let rules: [Rule] = transactionRules + errorRules + valueRules + parallelRules + lifeRules

    /// The statement that stores a note.
    package static func insert(_ id: String, owner: String? = nil, body: [UInt8] = []) -> SQLStatement {
        SQLStatement(
            "INSERT INTO notes (id, owner_id, body) VALUES (\(id), \(owner), \(body))", expecting: .exactly(1))
    }

    /// How many rows a table has.
    package static func count(_ table: String, in database: any SQLDatabase) async throws -> Int64 {
        try await database.run(.read("SELECT count(*) AS n FROM \(SQL(verbatim: table))")).first?.integer("n") ?? -1
    }

    static func expect(_ condition: Bool, _ description: @autoclosure () -> String) throws {
        if !condition { throw Violation(description()) }
    }

    static func expectNotes(_ count: Int64, in database: any SQLDatabase) async throws {
        let found = try await Self.count("notes", in: database)
        try expect(found == count, "\(found) notes instead of \(count)")
    }

    @discardableResult
    static func expectError<Result>(
        _ code: StoreError.Code, _ body: () async throws -> Result
    ) async throws -> StoreError {
        do {
            _ = try await body()
        } catch let error as StoreError {
            try expect(error.code == code, "the error was \(error), not \(code.rawValue)")
            return error
        }
        throw Violation("there was no error \(code.rawValue)")
    }
}
