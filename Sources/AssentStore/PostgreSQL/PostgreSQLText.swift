/// The common SQL of both databases, as PostgreSQL understands it.
enum PostgreSQLText {
    /// The types in a text that defines or changes a table, as PostgreSQL has them; any other text as it is.
    ///
    /// - `BLOB` becomes `BYTEA`.
    /// - `INTEGER`, which has 32 bits there, becomes `BIGINT`: values have 64 bits.
    /// - `TEXT` gets the collation "C", whatever that of the database is: keys are equal and ordered by their bytes,
    ///   and an index survives an update of the system's languages.
    static func translate(_ text: String) -> String {
        guard text.hasPrefix("CREATE TABLE") || text.hasPrefix("ALTER TABLE") else { return text }
        var result = ""
        var word = ""
        var isQuoted = false
        for character in text + " " {
            if !isQuoted, character.isLetter || character.isNumber || character == "_" {
                word.append(character)
                continue
            }
            result += types[word] ?? word
            word = ""
            if character == "'" { isQuoted.toggle() }
            result.append(character)
        }
        return String(result.dropLast())
    }

    private static let types = ["BLOB": "BYTEA", "INTEGER": "BIGINT", "TEXT": "TEXT COLLATE \"C\""]
}
