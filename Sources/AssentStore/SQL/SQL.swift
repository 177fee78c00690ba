/// A text in SQL together with its arguments. What is interpolated becomes an argument and never part of the text, so
/// that no input can change what a statement does: `"SELECT * FROM users WHERE id = \(id)"`.
///
/// An interpolated `SQL` stands there with its own arguments. The SQL is the common part of SQLite's and PostgreSQL's
/// languages.
package struct SQL: Sendable, Hashable, ExpressibleByStringInterpolation {
    /// The text, with ``mark`` where an argument stands.
    private var marked: String

    /// The values of the parameters, in their order in the text.
    package private(set) var arguments: [SQLValue]

    /// The text with numbered parameters where it was made before.
    private var numbered: NumberedText?

    /// No text of the program has this control character.
    private static let mark: Unicode.Scalar = "\u{1}"

    /// A text without arguments, a constant of the program: never built from input.
    package init(verbatim text: String) {
        marked = text
        arguments = []
    }

    /// A text without arguments.
    package init(stringLiteral value: String) { self.init(verbatim: value) }

    /// A text with arguments.
    package init(stringInterpolation: StringInterpolation) { self = stringInterpolation.sql }

    /// Values with commas between them.
    package init(list values: [SQLValue]) {
        marked = values.map { _ in String(Self.mark) }.joined(separator: ", ")
        arguments = values
    }

    /// The same text for all values of the arguments, with a sign where they stand.
    var form: String { marked }

    /// Whether it changes the schema.
    var definesSchema: Bool { Self.definitions.contains { marked.utf8.starts(with: $0.utf8) } }

    private static let definitions = ["CREATE ", "ALTER ", "DROP "]

    /// The text with a parameter for each argument, numbered from 1: `?1`, `?2`, … or with another sign before the
    /// number.
    package func text(parameter sign: Unicode.Scalar = "?") -> String {
        guard !arguments.isEmpty else { return marked }
        if let text = numbered?.text(parameter: sign) { return text }
        return replacingMarks { index, text in
            text += String(sign).utf8
            text += String(index + 1).utf8
        }
    }

    /// The text with something else where arguments stand. In pieces, since each statement that is run comes by here.
    private func replacingMarks(_ replace: (_ index: Int, _ text: inout [UInt8]) -> Void) -> String {
        var (marked, text, index) = (marked, [UInt8](), 0)
        text.reserveCapacity(marked.utf8.count + 4 * arguments.count)
        marked.withUTF8 { bytes in
            var rest = bytes[...]
            while let mark = rest.firstIndex(of: UInt8(ascii: Self.mark)) {
                text += rest[..<mark]
                replace(index, &text)
                index += 1
                rest = rest[(mark + 1)...]
            }
            text += rest
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The same without the arguments that are NULL: the word stands in the text instead. A parameter without a type is
    /// not possible everywhere, and PostgreSQL does not know which type a NULL would have.
    package func withoutNulls() -> SQL {
        guard arguments.contains(where: \.isNull) else { return self }
        var sql = SQL(
            verbatim: replacingMarks { index, text in
                text += (arguments[index].isNull ? "NULL" : String(Self.mark)).utf8
            })
        sql.arguments = arguments.filter { !$0.isNull }
        return sql
    }

    /// The same text, whose parameters have been numbered for both databases.
    func withNumberedText() -> SQL {
        var sql = self
        sql.numbered = NumberedText(question: text(parameter: "?"), dollar: text(parameter: "$"))
        return sql
    }

    /// The same text with other arguments, as many as there are.
    func with(arguments values: [SQLValue]) -> SQL {
        var sql = self
        sql.arguments = values
        return sql
    }

    /// Two are equal when they have the same text and the same arguments.
    package static func == (left: Self, right: Self) -> Bool {
        left.marked == right.marked && left.arguments == right.arguments
    }

    /// Hashes text and arguments.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(marked)
        hasher.combine(arguments)
    }

    private mutating func append(_ argument: SQLValue) {
        arguments.append(argument)
        marked.unicodeScalars.append(Self.mark)
    }

    /// Takes the pieces of a literal.
    package struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var sql = SQL(verbatim: "")

        /// An empty text.
        package init(literalCapacity: Int, interpolationCount: Int) {
            sql.marked.reserveCapacity(literalCapacity + interpolationCount)
            sql.arguments.reserveCapacity(interpolationCount)
        }

        /// Text of the program.
        package mutating func appendLiteral(_ literal: String) { sql.marked += literal }

        /// A part with its own arguments.
        package mutating func appendInterpolation(_ part: SQL) {
            sql.marked += part.marked
            sql.arguments += part.arguments
        }

        /// An argument.
        package mutating func appendInterpolation(_ value: SQLValue) { sql.append(value) }

        /// Text, or NULL.
        package mutating func appendInterpolation(_ text: String?) { sql.append(SQLValue(text)) }

        /// A whole number, or NULL.
        package mutating func appendInterpolation(_ integer: (some BinaryInteger)?) { sql.append(SQLValue(integer)) }

        /// A whole number as times are, or NULL. The generic function takes much longer: other modules call it as it
        /// is, without a version for the type.
        package mutating func appendInterpolation(_ integer: Int64?) {
            sql.append(integer.map(SQLValue.integer) ?? .null)
        }

        /// Bytes, or NULL.
        package mutating func appendInterpolation(_ bytes: [UInt8]?) { sql.append(SQLValue(bytes)) }

        /// 1 or 0.
        package mutating func appendInterpolation(_ flag: Bool) { sql.append(SQLValue(flag)) }
    }
}

/// A text with its parameters as each of the databases writes them.
private final class NumberedText: Sendable {
    private let question: String
    private let dollar: String

    init(question: String, dollar: String) {
        self.question = question
        self.dollar = dollar
    }

    func text(parameter sign: Unicode.Scalar) -> String? {
        switch sign {
        case "?": question
        case "$": dollar
        default: nil
        }
    }
}
