import Foundation
import GRDB

/// The same SQL by hand, its text and arguments made beforehand: GRDB, the same file, `synchronous = FULL`, prepared
/// statements kept.
struct HandMadeTake: Sendable {
    private let pool: DatabasePool

    private static let note = """
        INSERT INTO audit
            (id, at, event, outcome, reason, realm, user_id, session_audit_id, transaction_id, detail, node, position)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 'by hand', ?11)
        """

    private static let detail = """
        {"policySet":"bank","policy":"pay","resource":"https://localhost:8444/transfers"}
        """

    init(path: String) async throws {
        var configuration = Configuration()
        configuration.busyMode = .timeout(10)
        configuration.foreignKeysEnabled = true
        pool = try DatabasePool(path: path, configuration: configuration)
        // The pool has set NORMAL, whatever its configuration says.
        let level = try await pool.writeWithoutTransaction { database in
            try database.execute(sql: "PRAGMA synchronous = FULL")
            return try Int.fetchOne(database, sql: "PRAGMA synchronous")
        }
        guard level == 2 else { throw BenchFailure("synchronous is not FULL") }
    }

    /// Takes a transaction and notes it.
    func take(_ prepared: TakeWorld.Prepared) async throws {
        let isTaken = try await pool.write { database in
            let now = Date()
            let take = try database.cachedStatement(sql: prepared.take)
            try take.setArguments(StatementArguments(prepared.arguments))
            guard let row = try Row.fetchOne(take) else { return false }
            let note = try database.cachedStatement(sql: Self.note)
            let arguments: StatementArguments = [
                UUID().uuidString.lowercased(), Int64(now.timeIntervalSince1970 * 1000), "transaction.take", "success",
                nil, row["realm"] as String, row["user_id"] as String, row["session_audit_id"] as String, prepared.id,
                Self.detail, Int64(now.timeIntervalSince1970 * 1_000_000),
            ]
            try note.setArguments(arguments)
            try note.execute()
            return true
        }
        guard isTaken else { throw BenchFailure("a transaction was not taken") }
    }

    /// Copies a transaction's row under other ids.
    func copy(_ id: String, as copies: [String]) async throws {
        try await pool.write { database in
            let others = try database.columns(in: "transactions").map(\.name).filter { $0 != "id" }
                .joined(separator: ", ")
            let insert = try database.makeStatement(
                sql: "INSERT INTO transactions (id, \(others)) SELECT ?1, \(others) FROM transactions WHERE id = ?2")
            for copy in copies { try insert.execute(arguments: [copy, id]) }
        }
    }

    /// How many of these transactions are taken, each with one record in the audit log.
    func taken(_ prepared: [TakeWorld.Prepared]) async throws -> Int {
        try await pool.read { database in
            var count = 0
            let find = try database.makeStatement(
                sql: """
                    SELECT count(*) FROM transactions t WHERE t.id = ?1 AND t.state = 'TAKEN' AND 1 =
                        (SELECT count(*) FROM audit a WHERE a.transaction_id = t.id AND a.event = 'transaction.take')
                    """)
            for each in prepared { count += try Int.fetchOne(find, arguments: [each.id]) ?? 0 }
            return count
        }
    }

    /// Closes the file.
    func close() throws { try pool.close() }
}
