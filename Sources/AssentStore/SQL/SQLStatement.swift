/// One SQL statement and what it must affect.
package struct SQLStatement: Sendable, Hashable {
    /// What is run, with its arguments.
    package let sql: SQL

    /// How many rows it must return or, when it returns none by its nature, change.
    package let expected: RowCount

    /// Whether it only reads, and so need not wait for writers.
    package let isRead: Bool

    /// A statement that may write.
    package init(_ sql: SQL, expecting expected: RowCount = .any) {
        self.init(sql: sql, expected: expected, isRead: false)
    }

    private init(sql: SQL, expected: RowCount, isRead: Bool) {
        self.sql = sql
        self.expected = expected
        self.isRead = isRead
    }

    /// A statement that only reads.
    package static func read(_ sql: SQL, expecting expected: RowCount = .any) -> SQLStatement {
        SQLStatement(sql: sql, expected: expected, isRead: true)
    }
}

/// How many rows a statement must return or change.
package enum RowCount: Sendable, Hashable {
    /// Any number.
    case any
    /// Exactly this many.
    case exactly(Int)

    /// Whether `count` is what was expected.
    package func matches(_ count: Int) -> Bool {
        switch self {
        case .any: true
        case .exactly(let expected): count == expected
        }
    }
}
