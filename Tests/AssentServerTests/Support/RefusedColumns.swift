import AssentStore
import StoreTesting

/// A database that does not take some columns of transactions, whichever database it is: who works on it comes as far
/// as the statement that sets one of them, and no further.
enum RefusedColumns {
    /// From now on a statement that sets one of these columns fails, and does nothing.
    static func begin(_ columns: String, in database: any SQLDatabase) async throws {
        let event = "CREATE TRIGGER lost BEFORE UPDATE OF \(columns) ON transactions"
        let statements: [SQLStatement] =
            TestDatabase.isPostgreSQL
            ? [
                SQLStatement(
                    """
                    CREATE OR REPLACE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS
                    'BEGIN RAISE EXCEPTION ''lost'' USING ERRCODE = ''53100''; END'
                    """), SQLStatement("\(SQL(verbatim: event)) FOR EACH ROW EXECUTE FUNCTION lose()"),
            ] : [SQLStatement("\(SQL(verbatim: event)) BEGIN SELECT RAISE(ABORT, 'lost'); END")]
        _ = try await database.run(statements)
    }

    /// From now on they are taken again.
    static func end(in database: any SQLDatabase) async throws {
        let place: SQL = TestDatabase.isPostgreSQL ? " ON transactions" : ""
        _ = try await database.run([SQLStatement("DROP TRIGGER lost\(place)")])
    }
}
