#if PostgreSQL && os(Linux)
/// A PostgreSQL database, which many server processes may use at the same time.
///
/// A statement that reads is one round trip to the server. A transaction is two, however many statements it has: the
/// statements, then, if each has affected what it must, `COMMIT`. If the connection is lost under `COMMIT`, the server
/// is asked whether it took place before the caller gets an answer.
package final class PostgreSQLDatabase: SQLDatabase {
    private let pool: PostgreSQLPool

    /// A database. Nothing is opened before the first call.
    init(_ configuration: PostgreSQLConfiguration) {
        pool = PostgreSQLPool(configuration)
    }

    deinit { pool.abandon() }

    /// Runs one statement.
    package func run(_ statement: SQLStatement) async throws -> [SQLRow] {
        try await run([statement]).first ?? []
    }

    /// Runs statements as one transaction.
    package func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
        if statements.isEmpty { return [] }
        // PostgreSQL refuses it as well, but only after it has come there.
        if let index = statements.firstIndex(where: { $0.sql.arguments.contains(where: \.hasNUL) }) {
            throw StoreError(.statement, "a text has a NUL", statement: index)
        }
        return try await pool.run(PostgreSQLWork(statements))
    }

    /// Makes sure that no other program works in the schema.
    ///
    /// - Throws: ``StoreError``: `corrupt` if there are tables, but none of this server.
    func refuseOthersTables() async throws {
        let row = try await run(.read(SQL(verbatim: PostgreSQLExamination.tables.text))).first
        guard let row, try !row.bool("known"), try row.integer("tables") > 0 else { return }
        throw StoreError(
            .corrupt,
            "\(SchemaState.foreign.description). Give the server a database of its own, or its role a schema.")
    }

    /// Reads the list of schema steps, and makes sure that the server can be written to.
    package func checkHealth() async throws {
        let rows = try await run(.read("SELECT count(*) AS steps, pg_is_in_recovery() AS standby FROM schema_steps"))
        if try rows.first?.bool("standby") != false { throw StoreError(.unavailable, PostgreSQLFault.standbyAdvice) }
    }

    /// Ends all connections, those in use after their calls.
    package func close() async { await pool.close() }
}
#endif
