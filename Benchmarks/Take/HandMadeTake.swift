import AssentEngine
import AssentStore
import Foundation
import GRDB

/// The take and its audit record as SQL by hand, on the same database with the same durability.
protocol HandMadeTake: Sendable {
    /// Takes these transactions, `parallel` at a time as far as the database can.
    func take(_ prepared: [TakeWorld.Prepared], parallel: Int) async throws

    /// Closes the database.
    func close() throws
}

/// What both ways by hand write.
enum HandMadeRecord {
    static let columns = """
        INSERT INTO audit
            (id, at, event, outcome, realm, user_id, session_audit_id, transaction_id, detail, node, position)
        """

    static let detail = """
        {"policySet":"bank","policy":"pay","resource":"https://localhost:8444/transfers"}
        """

    /// The values for ``columns``.
    static func values(_ prepared: TakeWorld.Prepared) -> [SQLValue] {
        let now = Date().timeIntervalSince1970
        return [
            .text(UUID().uuidString.lowercased()), .integer(Int64(now * 1000)), .text("transaction.take"),
            .text("success"), .text(prepared.realm), .text(prepared.session.user.id),
            .text(prepared.session.auditID), .text(prepared.id), .text(detail), .text("by hand"),
            .integer(Int64(now * 1_000_000)),
        ]
    }
}

/// With GRDB on the same file, `synchronous = FULL`, prepared statements kept. SQLite has one writer at a time.
struct HandMadeSQLiteTake: HandMadeTake {
    private let pool: DatabasePool

    private static let note = HandMadeRecord.columns + " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"

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

    func take(_ prepared: [TakeWorld.Prepared], parallel: Int) async throws {
        try await Lanes.run(prepared.count, parallel: parallel) { try await take(prepared[$0]) }
    }

    private func take(_ prepared: TakeWorld.Prepared) async throws {
        let isTaken = try await pool.write { database in
            let take = try database.cachedStatement(sql: prepared.take.text())
            try take.setArguments(Self.arguments(prepared.take.arguments))
            try take.execute()
            guard database.changesCount == 1 else { return false }
            let note = try database.cachedStatement(sql: Self.note)
            try note.setArguments(Self.arguments(HandMadeRecord.values(prepared)))
            try note.execute()
            return true
        }
        guard isTaken else { throw BenchFailure("a transaction was not taken") }
    }

    private static func arguments(_ values: [SQLValue]) -> StatementArguments {
        StatementArguments(
            values.map { value -> DatabaseValue in
                switch value {
                case .null: .null
                case .integer(let value): value.databaseValue
                case .text(let value): value.databaseValue
                case .blob(let value): Data(value).databaseValue
                }
            })
    }

    func close() throws { try pool.close() }
}
