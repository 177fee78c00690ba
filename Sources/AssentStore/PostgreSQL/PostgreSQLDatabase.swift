#if PostgreSQL && os(Linux)
import Logging

/// A PostgreSQL database, which many server processes may use at the same time.
///
/// A statement that reads is one round trip to the server. A transaction is two, however many statements it has: the
/// statements, then, if each has affected what it must, `COMMIT`. If the connection is lost under `COMMIT`, the server
/// is asked whether it took place before the caller gets an answer.
package final class PostgreSQLDatabase: SQLDatabase {
    private let pool: PostgreSQLPool
    private let keeper: PostgreSQLKeeper
    private let watch: PostgreSQLWatch

    /// A database. Nothing is opened before the first call.
    init(_ configuration: PostgreSQLConfiguration, logger: Logger) {
        keeper = PostgreSQLKeeper(configuration, logger: logger)
        pool = PostgreSQLPool(configuration, keeper: keeper)
        watch = PostgreSQLWatch(keeper)
    }

    deinit { abandon() }

    private func end() {
        watch.end()
        keeper.end()
    }

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
        let work = PostgreSQLWork(statements)
        let refusal = work.kind == .unlogged ? keeper.conflict : work.isWriting ? keeper.refusal : nil
        if let refusal { throw refusal }
        return try await pool.run(work)
    }

    /// Lets the history begin, after the schema was made with its tables.
    func beginHistory() async throws {
        keeper.forgetCurrent()
        _ = try await run(.read("SELECT 1 AS answer"))
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

    /// Reads the list of schema steps, and makes sure that the server can be written to, and is the right one.
    package func checkHealth() async throws {
        if let refusal = keeper.refusal { throw refusal }
        let rows = try await run(
            .read(
                """
                SELECT count(*) AS steps, pg_is_in_recovery() AS standby,
                    current_setting('synchronous_standby_names') <> '' AS replicates FROM schema_steps
                """))
        guard let row = rows.first, try !row.bool("standby") else {
            throw StoreError(.unavailable, PostgreSQLFault.standbyAdvice, obstacle: .noServer)
        }
        if keeper.configuration.requiresStandby, try !row.bool("replicates") {
            throw StoreError(
                .unavailable, "No synchronous standby is named any more.", obstacle: .standbyNotNamed)
        }
    }

    /// What an operator has to know although everything goes on.
    package var notices: DatabaseNotices { keeper.notices }

    /// Nodes share it.
    package var isShared: Bool { true }

    /// Waits no longer for what the server does not answer: a statement, a `COMMIT`, or a search for its outcome.
    package func abandon() {
        end()
        pool.abandon()
    }

    /// Ends all connections, those in use after their calls, and writes the node's last mark.
    package func close() async {
        await watch.finish()
        end()
        await pool.close()
    }
}
#endif
