/// One SQL statement and what it must affect.
package struct SQLStatement: Sendable, Hashable {
    /// What is run, with its arguments.
    package let sql: SQL

    /// How many rows it must return or, when it returns none by its nature, change.
    package let expected: RowCount

    /// Whether it only reads, and so need not wait for writers.
    package let isRead: Bool

    /// Whether it is a transaction's ``record(_:)``.
    package let isRecord: Bool

    /// Whether it is an ``unlogged(_:)`` one.
    package let isUnlogged: Bool

    /// A statement that may write.
    package init(_ sql: SQL, expecting expected: RowCount = .any) {
        self.init(sql: sql, expected: expected)
    }

    private init(
        sql: SQL, expected: RowCount, isRead: Bool = false, isRecord: Bool = false, isUnlogged: Bool = false
    ) {
        self.sql = sql
        self.expected = expected
        self.isRead = isRead
        self.isRecord = isRecord
        self.isUnlogged = isUnlogged
    }

    /// A statement that only reads.
    package static func read(_ sql: SQL, expecting expected: RowCount = .any) -> SQLStatement {
        SQLStatement(sql: sql, expected: expected, isRead: true)
    }

    /// A statement that inserts one row, whatever the database has, under a key that was drawn at random for it.
    ///
    /// Run a second time it fails, but only if the transaction that it belongs to took place. So a database finds out
    /// what became of a `COMMIT` that got no answer.
    package static func record(_ sql: SQL) -> SQLStatement {
        SQLStatement(sql: sql, expected: .exactly(1), isRecord: true)
    }

    /// A statement that is run alone and writes only rows that a crash may take; it may read others. It is one round
    /// trip, and neither the disk nor a standby is waited for.
    ///
    /// When a connection is lost under it, it is run a second time, whatever became of the first: a statement for
    /// which that would be wrong cannot be unlogged.
    package static func unlogged(_ sql: SQL) -> SQLStatement {
        SQLStatement(sql: sql, expected: .any, isUnlogged: true)
    }
}

/// How many rows a statement must return or change.
package enum RowCount: Sendable, Hashable {
    /// Any number.
    case any
    /// Exactly this many.
    case exactly(Int)
    /// This many or more.
    case atLeast(Int)

    /// Whether `count` is what was expected.
    package func matches(_ count: Int) -> Bool {
        switch self {
        case .any: true
        case .exactly(let expected): count == expected
        case .atLeast(let expected): count >= expected
        }
    }
}
