import AssentCore

/// Why the store did not do what it was asked. Errors are equal when their codes are.
package struct StoreError: AssentError {
    /// What went wrong.
    package let code: Code

    /// What exactly, for the log; never a stored value.
    package let detail: String

    /// For `unexpectedCount`: the index of the statement, from 0.
    package let statement: Int?

    /// For `unavailable`: what an operator can do something about, if that is known.
    package let obstacle: Obstacle?

    /// An error with its explanation.
    package init(_ code: Code, _ detail: String, statement: Int? = nil, obstacle: Obstacle? = nil) {
        self.code = code
        self.detail = detail
        self.statement = statement
        self.obstacle = obstacle
    }

    /// What keeps a database from serving; it names no server. The first of several is the one to be told.
    package enum Obstacle: String, Sendable, CaseIterable {
        /// A synchronous standby does not confirm what is committed.
        case standbySilent
        /// A synchronous standby is required, and the server names none.
        case standbyNotNamed
        /// Several servers accept writes, and none has everything.
        case serversDiffer
        /// A server answers, and lacks what the node or another server has.
        case serverRefused
        /// No server can be reached that accepts writes.
        case noServer
    }

    static func missing(_ column: String) -> StoreError {
        StoreError(.corrupt, "column \(column) is missing, of another type or too large a number")
    }

    /// Whether the database cannot serve now, but may later.
    package var isTransient: Bool { code == .unavailable }

    /// A stable name of a kind of failure; more may be added.
    package struct Code: ErrorCode {
        /// The name.
        package let rawValue: String

        /// A code by its name.
        package init(rawValue: String) { self.rawValue = rawValue }

        /// A statement did not affect the number of rows that it must.
        package static let unexpectedCount = Code("unexpectedCount")
        /// A unique key is taken, or another constraint does not hold.
        package static let constraint = Code("constraint")
        /// The database is full, read-only, locked or unreachable: the same call may succeed later.
        package static let unavailable = Code("unavailable")
        /// The connection was lost while a transaction was committed, or the disk has failed under it, and nobody knows
        /// whether it took place, or will be there after a crash. Look before you repeat it.
        package static let outcomeUnknown = Code("outcomeUnknown")
        /// The database's content is not what this version understands.
        package static let corrupt = Code("corrupt")
        /// The statement cannot be run: a fault of this program, not of the database.
        package static let statement = Code("statement")
        /// A newer version of the server wrote the schema.
        package static let newerSchema = Code("newerSchema")
    }
}
