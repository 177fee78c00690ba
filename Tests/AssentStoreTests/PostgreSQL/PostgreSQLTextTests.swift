#if PostgreSQL && os(Linux)
import Testing

@testable import AssentStore

@Suite("The common SQL as PostgreSQL understands it")
struct PostgreSQLTextTests {
    @Test("Types are translated where tables are defined, in words and not in texts")
    func types() {
        let text = PostgreSQLText.translate(
            "CREATE TABLE a (id TEXT PRIMARY KEY, n INTEGER, body BLOB, TEXTS TEXT DEFAULT 'a TEXT', at BIGINT)")
        #expect(
            text == "CREATE TABLE a (id TEXT COLLATE \"C\" PRIMARY KEY, n BIGINT, body BYTEA, "
                + "TEXTS TEXT COLLATE \"C\" DEFAULT 'a TEXT', at BIGINT)")
        #expect(PostgreSQLText.translate("ALTER TABLE a ADD b TEXT") == "ALTER TABLE a ADD b TEXT COLLATE \"C\"")
        let other = "SELECT CAST(n AS TEXT), 'INTEGER' FROM a"
        #expect(PostgreSQLText.translate(other) == other)
    }

    @Test("What changes the schema is told from the rest")
    func definitions() {
        for text in ["CREATE TABLE a (b TEXT)", "ALTER TABLE a ADD b TEXT", "DROP TABLE a"] {
            #expect(SQL(verbatim: text).definesSchema)
            #expect(
                PostgreSQLWork(["SELECT 1", "\(SQL(verbatim: text))"].map { SQLStatement($0) }).kind == .definition)
        }
        #expect(!SQL("INSERT INTO a VALUES ('CREATE TABLE')").definesSchema)
    }

    @Test("NULL stands in the text, and the numbers of the parameters have no gaps")
    func nulls() {
        let none: String? = nil
        let command = PostgreSQLCommand(SQLStatement("SELECT \(1), \(none), \("a"), \(none)"))
        #expect(command.text == "SELECT $1, NULL, $2, NULL")
        #expect(command.arguments == [1, "a"])
    }

    @Test("A statement is known by a form that its values do not change, and that a part of it does")
    func forms() {
        func command(_ id: String?, _ part: SQL) -> PostgreSQLCommand {
            PostgreSQLCommand(SQLStatement("SELECT \(id), \(1) \(part)"))
        }
        let (first, second) = (command("a", "FROM a"), command(nil, "FROM a"))
        #expect(first.form == second.form)
        #expect(first.values.map(\.postgreSQLType) != second.values.map(\.postgreSQLType))
        #expect(first.text != second.text)
        #expect(first.form != command("a", "FROM b").form)
    }

    @Test("A call is one kind of work")
    func kinds() {
        let (read, write) = (SQLStatement.read("SELECT 1"), SQLStatement("DELETE FROM a"))
        #expect(PostgreSQLWork([read]).kind == .read)
        #expect(PostgreSQLWork([read, read]).kind == .snapshot)
        #expect(PostgreSQLWork([write]).kind == .write)
        #expect(PostgreSQLWork([read, write]).kind == .write)
    }

    private static let numerics: [(bytes: [UInt8], value: Int64?)] = [
        (bytes: [0, 0, 0, 0, 0, 0, 0, 0], value: 0),
        (bytes: [0, 1, 0, 0, 0, 0, 0, 0, 0, 7], value: 7),
        (bytes: [0, 1, 0, 1, 0, 0, 0, 0, 0, 7], value: 70_000),
        (bytes: [0, 1, 0, 0, 0x40, 0, 0, 0, 0, 7], value: -7),
        (bytes: [0, 5, 0, 4, 0, 0, 0, 0, 3, 0x9A, 13, 0x2C, 1, 0x70, 21, 0x65, 22, 0xAF], value: .max),
        (bytes: [0, 5, 0, 4, 0x40, 0, 0, 0, 3, 0x9A, 13, 0x2C, 1, 0x70, 21, 0x65, 22, 0xB0], value: .min),
        (bytes: [0, 5, 0, 4, 0, 0, 0, 0, 3, 0x9A, 13, 0x2C, 1, 0x70, 21, 0x65, 22, 0xB0], value: nil),
        (bytes: [0, 1, 0, 5, 0, 0, 0, 0, 0, 7], value: nil),
        (bytes: [0, 1, 0xFF, 0xFF, 0, 0, 0, 1, 0, 7], value: nil),
        (bytes: [0, 0, 0, 0, 0xC0, 0, 0, 0], value: nil),
        (bytes: [0, 2, 0, 1, 0, 0, 0, 0, 0, 7], value: nil),
        (bytes: [0, 1], value: nil),
    ]

    @Test("A sum is read, up to the largest numbers; what is not whole is not", arguments: numerics)
    func numeric(bytes: [UInt8], expected: Int64?) {
        let value = bytes.withUnsafeBytes { SQLValue(postgreSQLType: PostgreSQLType.numeric, $0) }
        #expect(value == expected.map { .integer($0) })
    }
}
#endif
