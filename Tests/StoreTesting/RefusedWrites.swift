package import AssentStore

/// A database that does not take some writes, whichever database it is: anyone who works on it comes as far as the
/// statement that makes one of them, and no further.
package enum RefusedWrites {
    /// From now on these writes, named as a trigger names them (`INSERT ON audit`), fail and do nothing.
    package static func begin(_ writes: String, in database: any SQLDatabase) async throws {
        let event = "CREATE TRIGGER lost BEFORE \(writes)"
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

    /// From now on those of transactions are taken again.
    package static func end(in database: any SQLDatabase) async throws {
        let place: SQL = TestDatabase.isPostgreSQL ? " ON transactions" : ""
        _ = try await database.run([SQLStatement("DROP TRIGGER lost\(place)")])
    }
}
