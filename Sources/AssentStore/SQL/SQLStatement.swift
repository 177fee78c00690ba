/// One SQL statement with its arguments and what it must affect.
///
/// Parameters are written `?1`, `?2`, …; the same number may stand in several places. The SQL is the common part of
/// SQLite's and PostgreSQL's languages.
package struct SQLStatement: Sendable, Hashable {
    /// The SQL, a constant of the program: never built from input.
    package let sql: String

    /// The values of `?1`, `?2`, …
    package let arguments: [SQLValue]

    /// How many rows it must return or, when it returns none by its nature, change.
    package let expected: RowCount

    /// Whether it only reads, and so need not wait for writers.
    package let isRead: Bool

    /// A statement that may write.
    package init(_ sql: String, _ arguments: [SQLValue] = [], expecting expected: RowCount = .any) {
        self.init(sql: sql, arguments: arguments, expected: expected, isRead: false)
    }

    private init(sql: String, arguments: [SQLValue], expected: RowCount, isRead: Bool) {
        self.sql = sql
        self.arguments = arguments
        self.expected = expected
        self.isRead = isRead
    }

    /// A statement that only reads.
    package static func read(
        _ sql: String, _ arguments: [SQLValue] = [], expecting expected: RowCount = .any
    ) -> SQLStatement {
        SQLStatement(sql: sql, arguments: arguments, expected: expected, isRead: true)
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
