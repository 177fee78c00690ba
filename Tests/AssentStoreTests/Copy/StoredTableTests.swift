import AssentCore
import StoreTesting
import Testing

@testable import AssentStore

@Suite("The tables of a schema, for a copy")
struct StoredTableTests {
    private func schema(_ statements: String...) -> Schema { Schema([Migration("test", statements)]) }

    @Test("Each table of a SQLite database is known, but the list of steps")
    func sqlite() async throws {
        let place = try await CopyPlace.sqlite()
        let database = try await place.open()
        let names = try await database.run(
            .read("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        ).map { try $0.text("name") }
        let known = try Schema.current.tables().map(\.name)
        #expect(Set(names) == Set(known).union(["schema_steps"]))
        try await database.close()
        withExtendedLifetime(place) {}
    }

    #if PostgreSQL && os(Linux)
    @Test(
        "Each table of a PostgreSQL database is known with its columns and its key, but what belongs to that database")
    func postgreSQL() async throws {
        let database = try await CopyPlace.postgreSQL().open()
        let rows = try await database.run(
            .read(
                """
                SELECT c.relname::text AS name, a.attname::text AS attribute, format_type(a.atttypid, NULL)::text AS type,
                    coalesce(array_position(i.indkey::int2[], a.attnum), -1) AS place
                FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                    LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
                WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
                ORDER BY c.relname, a.attnum
                """))
        var found: [String: [StoredTable.Column]] = [:]
        let contents: [String: StoredTable.Content] = ["bigint": .integer, "text": .text, "bytea": .blob]
        let own: Set = [
            "schema_steps", "latest_commits", "history", "history_marks", "payload_sessions", "spent_proofs",
        ]
        #expect(own.isSubset(of: try rows.map { try $0.text("name") }))
        for row in rows where !own.contains(try row.text("name")) {
            let column = StoredTable.Column(
                name: try row.text("attribute"), content: try #require(contents[row.text("type")]),
                // The array's places begin with 0, and -1 stands for none.
                keyPlace: Int(try row.integer("place")) + 1)
            found[try row.text("name"), default: []].append(column)
        }
        let known = try Schema.current.tables().map { ($0.name, $0.columns) }
        #expect(found == Dictionary(uniqueKeysWithValues: known))
        try await database.close()
    }
    #endif

    @Test("A table comes after those that its rows refer to")
    func order() throws {
        var known: Set<String> = []
        for table in try Schema.current.tables() {
            #expect(table.parents.isSubset(of: known), "\(table.name)")
            known.insert(table.name)
        }
        let names = try schema(
            "CREATE TABLE c (id TEXT PRIMARY KEY)", "CREATE TABLE b (id TEXT PRIMARY KEY REFERENCES c (id))",
            "CREATE TABLE a (id TEXT PRIMARY KEY REFERENCES b (id))"
        ).tables().map(\.name)
        #expect(names == ["c", "b", "a"])
    }

    @Test(
        "A table that could not be copied is a mistake that is said",
        arguments: [
            (["CREATE TABLE a (id TEXT)"], "no primary key"),
            (["CREATE TABLE a (id TEXT PRIMARY KEY, x REAL)"], "the type REAL"),
            (["CREATE TABLE a (id TEXT PRIMARY KEY, parent TEXT REFERENCES a (id))"], "circle"),
            (["CREATE TABLE a (id NONSENSE"], ""),
        ])
    func impossible(statements: [String], reason: String) {
        let error = #expect(throws: StoreError(.statement, "")) { try Schema([Migration("x", statements)]).tables() }
        #expect(reason.isEmpty || error?.detail.contains(reason) == true, "\(error?.detail ?? "")")
    }

    @Test("The key is in its own order, not in that of the columns")
    func key() throws {
        let table = try #require(
            try schema("CREATE TABLE a (x TEXT, y TEXT, z BLOB, PRIMARY KEY (y, x))").tables().first)
        #expect(table.key.map(\.name) == ["y", "x"] && table.columns.map(\.name) == ["x", "y", "z"])
    }
}
