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

    func run(_ requests: [KeyedTokenByHand.Request], parallel: Int) async throws {
        try await Lanes.run(requests.count, parallel: parallel) { try await serve(requests[$0]) }
    }

    private func serve(_ request: KeyedTokenByHand.Request) async throws {
        try request.calculate()
        let isWritten = try await pool.write { database in
            for row in request.rows {
                let statement = try database.cachedStatement(sql: row.text())
                try statement.setArguments(StatementArguments(row.arguments.map(Self.value)))
                try statement.execute()
                guard database.changesCount == 1 else { return false }
            }
            return true
        }
        guard isWritten else { throw BenchFailure("a row was not written by hand") }
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
