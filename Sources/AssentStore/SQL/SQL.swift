/// A text in SQL together with its arguments. What is interpolated becomes an argument and never part of the text, so
/// that no input can change what a statement does: `"SELECT * FROM users WHERE id = \(id)"`.
///
/// An interpolated `SQL` stands there with its own arguments. The SQL is the common part of SQLite's and PostgreSQL's
/// languages.
package struct SQL: Sendable, Hashable, ExpressibleByStringInterpolation {
    /// What stands before, between and behind the arguments: always one more than there are of those.
    private var texts: [String]

    /// The values of the parameters, in their order in the text.
    package private(set) var arguments: [SQLValue]

    /// A text without arguments, a constant of the program: never built from input.
    package init(verbatim text: String) {
        texts = [text]
        arguments = []
    }

    /// A text without arguments.
    package init(stringLiteral value: String) { self.init(verbatim: value) }

    /// A text with arguments.
    package init(stringInterpolation: StringInterpolation) { self = stringInterpolation.sql }

    /// Values with commas between them.
    init(list values: [SQLValue]) {
        texts = values.isEmpty ? [""] : [""] + Array(repeating: ", ", count: values.count - 1) + [""]
        arguments = values
    }

    /// The text with a parameter for each argument, numbered from 1: `?1`, `?2`, … or with another sign before the
    /// number.
    package func text(parameter sign: Character = "?") -> String {
        var text = texts[0]
        text.reserveCapacity(texts.reduce(0) { $0 + $1.utf8.count + 3 })
        for (index, next) in texts.dropFirst().enumerated() {
            text.append(sign)
            text += String(index + 1)
            text += next
        }
        return text
    }

    /// The same without the arguments that are NULL: the word stands in the text instead. A parameter without a type is
    /// not possible everywhere, and PostgreSQL does not know which type a NULL would have.
    package func withoutNulls() -> SQL {
        var sql = SQL(verbatim: texts[0])
        for (argument, text) in zip(arguments, texts.dropFirst()) {
            if argument == .null { sql.append("NULL") } else { sql.append(argument) }
            sql.append(text)
        }
        return sql
    }

    private mutating func append(_ text: String) { texts[texts.count - 1] += text }

    private mutating func append(_ argument: SQLValue) {
        arguments.append(argument)
        texts.append("")
    }

    private mutating func append(_ sql: SQL) {
        append(sql.texts[0])
        texts += sql.texts.dropFirst()
        arguments += sql.arguments
    }

    /// Takes the pieces of a literal.
    package struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var sql = SQL(verbatim: "")

        /// An empty text.
        package init(literalCapacity: Int, interpolationCount: Int) {
            sql.texts.reserveCapacity(interpolationCount + 1)
            sql.arguments.reserveCapacity(interpolationCount)
        }

        /// Text of the program.
        package mutating func appendLiteral(_ literal: String) { sql.append(literal) }

        /// A part with its own arguments.
        package mutating func appendInterpolation(_ part: SQL) { sql.append(part) }

        /// An argument.
        package mutating func appendInterpolation(_ value: SQLValue) { sql.append(value) }

        /// Text, or NULL.
        package mutating func appendInterpolation(_ text: String?) { sql.append(SQLValue(text)) }

        /// A whole number, or NULL.
        package mutating func appendInterpolation(_ integer: (some BinaryInteger)?) { sql.append(SQLValue(integer)) }

        /// Bytes, or NULL.
        package mutating func appendInterpolation(_ bytes: [UInt8]?) { sql.append(SQLValue(bytes)) }

        /// 1 or 0.
        package mutating func appendInterpolation(_ flag: Bool) { sql.append(SQLValue(flag)) }
    }
}
