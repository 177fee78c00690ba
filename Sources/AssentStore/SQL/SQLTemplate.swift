/// A text in SQL that is put together once, for a statement that nearly every request runs: only what a request says of
/// itself is put into it.
package struct SQLTemplate: Sendable {
    private let sql: SQL

    /// Which of the values stands at each parameter; `nil` where the text has its own.
    private let places: [Int?]

    /// A template.
    ///
    /// - Parameters:
    ///   - sql: the text, with a stand-in for each value that differs.
    ///   - standIns: the stand-ins, in the order in which ``with(_:)`` takes the values. No other argument of the text
    ///     is equal to one of them.
    package init(_ sql: SQL, standIns: [SQLValue]) {
        places = sql.arguments.map { standIns.firstIndex(of: $0) }
        self.sql = sql.withNumberedText()
    }

    /// The text with these values, one for each stand-in.
    package func with(_ values: [SQLValue]) -> SQL {
        sql.with(arguments: zip(places, sql.arguments).map { place, own in place.map { values[$0] } ?? own })
    }
}
