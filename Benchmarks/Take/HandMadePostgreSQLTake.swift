#if PostgreSQL && os(Linux)
import AssentCore
import AssentStore
import CPQ
import Foundation

/// With libpq on the same server: a connection and a thread for each lane, prepared statements, no pool between.
final class HandMadePostgreSQLTake: HandMadeTake {
    /// One connection, used by one thread at a time.
    private final class Lane {
        private let connection: OpaquePointer
        private var take: String?

        init(_ configuration: PostgreSQLConfiguration) throws {
            let host = configuration.hosts[0]
            let text = "host=\(host.name) port=\(host.port) dbname=\(configuration.database) user=\(configuration.user)"
            guard let connection = PQconnectdb(text), PQstatus(connection) == CONNECTION_OK else {
                throw BenchFailure("PostgreSQL cannot be reached")
            }
            self.connection = connection
            let places = (1...11).map { "$\($0)" }.joined(separator: ", ")
            try Self.check(
                PQprepare(connection, "note", "\(HandMadeRecord.columns) VALUES (\(places))", 0, nil), PGRES_COMMAND_OK)
        }

        deinit { PQfinish(connection) }

        func take(_ prepared: TakeWorld.Prepared) throws {
            let text = prepared.take.text(parameter: "$")
            if take == nil {
                try Self.check(PQprepare(connection, "take", text, 0, nil), PGRES_COMMAND_OK)
                take = text
            }
            guard take == text else { throw BenchFailure("the take has another text") }
            try Self.check(PQexec(connection, "BEGIN"), PGRES_COMMAND_OK)
            try run("take", prepared.take.arguments) { result in
                guard String(cString: PQcmdTuples(result)) == "1" else {
                    throw BenchFailure("a transaction was not taken")
                }
            }
            try run("note", HandMadeRecord.values(prepared)) { _ in }
            try Self.check(PQexec(connection, "COMMIT"), PGRES_COMMAND_OK)
        }

        private func run(
            _ name: String, _ arguments: [SQLValue], _ check: (OpaquePointer) throws -> Void
        ) throws {
            let texts = arguments.map { strdup(Self.text($0)) }
            defer { for text in texts { free(text) } }
            let values = texts.map { UnsafePointer($0) }
            guard let result = PQexecPrepared(connection, name, Int32(values.count), values, nil, nil, 0) else {
                throw BenchFailure("PostgreSQL gave no answer")
            }
            defer { PQclear(result) }
            guard PQresultStatus(result) == PGRES_COMMAND_OK else {
                throw BenchFailure("PostgreSQL: \(String(cString: PQresultErrorMessage(result)))")
            }
            try check(result)
        }

        private static func text(_ value: SQLValue) -> String {
            switch value {
            case .null: ""
            case .integer(let value): "\(value)"
            case .text(let value): value
            case .blob(let value):
                "\\x" + value.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
            }
        }

        private static func check(_ result: OpaquePointer?, _ expected: ExecStatusType) throws {
            defer { PQclear(result) }
            guard PQresultStatus(result) == expected else {
                throw BenchFailure("PostgreSQL: \(result.map { String(cString: PQresultErrorMessage($0)) } ?? "")")
            }
        }
    }

    /// One thread at a time uses a lane, so no thread waits for a lock.
    private let lanes: [Locked<Lane>]

    /// As many connections as will be used at one time.
    init(_ configuration: PostgreSQLConfiguration, parallel: Int) throws {
        lanes = try (0..<parallel).map { _ in Locked(try Lane(configuration)) }
    }

    func take(_ prepared: [TakeWorld.Prepared], parallel: Int) async throws {
        try await Lanes.run(prepared.count, on: lanes, parallel: parallel) { try $0.take(prepared[$1]) }
    }

    func close() {}
}
#endif
