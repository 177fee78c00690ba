/// A database that runs statements. It has no closures: SQLite's and PostgreSQL's libraries have opposite shapes.
package protocol SQLDatabase: Sendable {
    /// Runs one statement and returns its rows.
    ///
    /// - Throws: ``StoreError``; with code `unexpectedCount`, nothing has changed.
    func run(_ statement: SQLStatement) async throws -> [SQLRow]

    /// Runs statements as one transaction and returns the rows of each.
    ///
    /// - Throws: ``StoreError``; whatever it is, nothing has changed. With code `unexpectedCount`, ``StoreError/statement``
    ///   tells which one did not affect what it must.
    func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]]
}

/// Why the store did not do what it was asked. Errors are equal when their codes are.
package struct StoreError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What went wrong.
    package let code: Code

    /// What exactly, for the log; never a stored value.
    package let detail: String

    /// For `unexpectedCount`: the index of the statement, from 0.
    package let statement: Int?

    /// An error with its explanation.
    package init(_ code: Code, _ detail: String, statement: Int? = nil) {
        self.code = code
        self.detail = detail
        self.statement = statement
    }

    static func missing(_ column: String) -> StoreError {
        StoreError(.corrupt, "column \(column) is missing or has another type")
    }

    /// Code and explanation.
    package var description: String { "\(code.rawValue): \(detail)" }

    /// Errors are equal when their codes are.
    package static func == (left: Self, right: Self) -> Bool { left.code == right.code }

    /// Hashes the code.
    package func hash(into hasher: inout Hasher) { hasher.combine(code) }

    /// The kinds of failure.
    package enum Code: String, Hashable, Sendable {
        /// A statement did not affect the number of rows that it must.
        case unexpectedCount
        /// A unique key is taken, or another constraint does not hold.
        case constraint
        /// The database is full, read-only, locked or unreachable: the same call may succeed later.
        case unavailable
        /// The database's content is not what this version understands.
        case corrupt
        /// The statement cannot be run: a fault of this program, not of the database.
        case statement
        /// A newer version of the server wrote the schema.
        case newerSchema
    }
}
