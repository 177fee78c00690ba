#if PostgreSQL && os(Linux)
import AssentCore
import AssentStore
import CPQ
import Foundation

/// With libpq on the same server: a connection and a thread for each lane, prepared statements, no pool between.
final class HandMadePostgreSQLRows: HandMadeRows {
    /// One connection, used by one thread at a time.
    private final class Lane {
        private let connection: OpaquePointer
        private var prepared: [String: String] = [:]

        init(_ configuration: PostgreSQLConfiguration) throws {
            let host = configuration.hosts[0]
            let text = "host=\(host.name) port=\(host.port) dbname=\(configuration.database) user=\(configuration.user)"
            guard let connection = PQconnectdb(text), PQstatus(connection) == CONNECTION_OK else {
                throw BenchFailure("PostgreSQL cannot be reached")
            }
            self.connection = connection
        }

        deinit { PQfinish(connection) }

        func serve(_ request: any HandMadeRequest) throws {
            for row in request.reads {
                guard try run(row, PGRES_TUPLES_OK, { PQntuples($0) == 1 }) else {
                    throw BenchFailure("a row was not found by hand")
                }
            }
            try request.calculate()
            try check(PQexec(connection, "BEGIN"))
            for row in request.rows {
                guard try run(row, PGRES_COMMAND_OK, { String(cString: PQcmdTuples($0)) == "1" }) else {
                    throw BenchFailure("a row was not written by hand")
                }
            }
            try check(PQexec(connection, "COMMIT"))
        }

        /// Runs a statement, which must end so, and says whether its result is right.
        private func run(
            _ row: SQL, _ status: ExecStatusType, _ isRight: (OpaquePointer) -> Bool
        ) throws -> Bool {
            let text = row.text(parameter: "$")
            let name = prepared[text] ?? "row\(prepared.count)"
            if prepared[text] == nil {
                try check(PQprepare(connection, name, text, 0, nil))
                prepared[text] = name
            }
            let texts = row.arguments.map { strdup(Self.text($0)) }
            defer { for text in texts { free(text) } }
            let values = texts.map { UnsafePointer($0) }
            guard let result = PQexecPrepared(connection, name, Int32(values.count), values, nil, nil, 0) else {
                throw BenchFailure("PostgreSQL gave no answer")
            }
            let isRight = isRight(result)
            try check(result, status)
            return isRight
        }

        private static func text(_ value: SQLValue) -> String {
            switch value {
            case .integer(let value): "\(value)"
            case .text(let value): value
            case .null, .blob: ""
            }
        }

        private func check(_ result: OpaquePointer?, _ status: ExecStatusType = PGRES_COMMAND_OK) throws {
            defer { PQclear(result) }
            guard PQresultStatus(result) == status else {
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

    func run(_ requests: [any HandMadeRequest], parallel: Int) async throws {
        try await Lanes.run(requests.count, on: lanes, parallel: parallel) { try $0.serve(requests[$1]) }
    }
}
#endif
