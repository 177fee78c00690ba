import AssentStore
import Foundation
import GRDB

/// With GRDB on the same file, `synchronous = FULL`, prepared statements kept.
struct HandMadeSQLiteRows: HandMadeRows {
    private let pool: DatabasePool

    init(path: String) async throws {
        var configuration = Configuration()
        configuration.busyMode = .timeout(10)
        configuration.foreignKeysEnabled = true
        pool = try DatabasePool(path: path, configuration: configuration)
        // The pool has set NORMAL, whatever its configuration says.
        try await pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
    }

    func run(_ requests: [any HandMadeRequest], parallel: Int) async throws {
        try await Lanes.run(requests.count, parallel: parallel) { try await serve(requests[$0]) }
    }

    private func serve(_ request: any HandMadeRequest) async throws {
        if !request.reads.isEmpty {
            let isFound = try await pool.read { database in
                try request.reads.allSatisfy { try Row.fetchAll(Self.statement($0, database)).count == 1 }
            }
            guard isFound else { throw BenchFailure("a row was not found by hand") }
        }
        try request.calculate()
        let isWritten = try await pool.write { database in
            for row in request.rows {
                try Self.statement(row, database).execute()
                guard database.changesCount == 1 else { return false }
            }
            return true
        }
        guard isWritten else { throw BenchFailure("a row was not written by hand") }
    }

    private static func statement(_ sql: AssentStore.SQL, _ database: Database) throws -> Statement {
        let statement = try database.cachedStatement(sql: sql.text())
        try statement.setArguments(StatementArguments(sql.arguments.map(value)))
        return statement
    }

    private static func value(_ value: SQLValue) -> DatabaseValue {
        switch value {
        case .null: .null
        case .integer(let value): value.databaseValue
        case .text(let value): value.databaseValue
        case .blob(let value): Data(value).databaseValue
        }
    }

    func close() throws { try pool.close() }
}
