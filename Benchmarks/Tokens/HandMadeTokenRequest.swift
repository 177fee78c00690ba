import AssentCore
import AssentEngine
import AssentStore
import Crypto
import Foundation
import GRDB

#if PostgreSQL && os(Linux)
import CPQ
#endif

/// The least that a token request with `private_key_jwt` costs: the assertion's signature is verified, an access token
/// is signed, and the spent assertion, the grant and the audit record are written in one transaction.
struct KeyedTokenByHand: Sendable {
    private let clientKey = P256.Signing.PrivateKey()
    private let serverKey = P256.Signing.PrivateKey()
    private let verified: Data
    private let signed: Data
    private let signature: P256.Signing.ECDSASignature

    /// Verifies and signs as many bytes as these: what is signed of an assertion, and of an access token.
    init(verified: Data, signed: Data) throws {
        self.verified = verified
        self.signed = signed
        signature = try clientKey.signature(for: verified)
    }

    /// One request.
    struct Request: Sendable {
        fileprivate let byHand: KeyedTokenByHand

        /// What it writes.
        let rows: [SQL]

        /// What it verifies and signs.
        func calculate() throws {
            guard byHand.clientKey.publicKey.isValidSignature(byHand.signature, for: byHand.verified),
                try byHand.serverKey.signature(for: byHand.signed).rawRepresentation.count == 64
            else { throw BenchFailure("not signed") }
        }
    }

    /// So many requests.
    func requests(_ count: Int) -> [Request] {
        let now = SystemClock().epochSeconds
        let time = Int64(Date().timeIntervalSince1970 * 1000)
        return (0..<count).map { _ in
            let (assertion, grant, record) = (SystemRandom().token(), SystemRandom().uuid(), SystemRandom().uuid())
            let detail = #"{"client":"office","grant":"\#(grant)"}"#
            return Request(
                byHand: self,
                rows: [
                    """
                    INSERT INTO client_assertions (id, realm, client_id, expires_at)
                    VALUES (\(assertion), \("/alpha"), \("office"), \(now + 660)) ON CONFLICT (id) DO NOTHING
                    """,
                    """
                    INSERT INTO grants (id, realm, client_id, scope, is_offline, created_at, expires_at)
                    VALUES (\(grant), \("/alpha"), \("office"), \("accounts"), 0, \(now), \(now + 3600))
                    """,
                    """
                    INSERT INTO audit (id, at, event, outcome, realm, detail, node, position)
                    VALUES (\(record), \(time), \("oauth.client"), \("success"), \("/alpha"), \(detail),
                        \("by hand"), \(time * 1000))
                    """,
                ])
        }
    }
}

/// Requests by hand on one database, with the server's durability.
protocol HandMadeRows: Sendable {
    /// Serves requests, `parallel` at a time as far as the database can.
    func run(_ requests: [KeyedTokenByHand.Request], parallel: Int) async throws
}

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
        try await withThrowingTaskGroup { group in
            for lane in 0..<parallel {
                group.addTask {
                    for index in stride(from: lane, to: requests.count, by: parallel) {
                        try await serve(requests[index])
                    }
                }
            }
            try await group.waitForAll()
        }
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

#if PostgreSQL && os(Linux)
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

        func serve(_ request: KeyedTokenByHand.Request) throws {
            try request.calculate()
            try check(PQexec(connection, "BEGIN"))
            for row in request.rows { try write(row) }
            try check(PQexec(connection, "COMMIT"))
        }

        private func write(_ row: SQL) throws {
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
            let isWritten = String(cString: PQcmdTuples(result)) == "1"
            try check(result)
            guard isWritten else { throw BenchFailure("a row was not written by hand") }
        }

        private static func text(_ value: SQLValue) -> String {
            switch value {
            case .integer(let value): "\(value)"
            case .text(let value): value
            case .null, .blob: ""
            }
        }

        private func check(_ result: OpaquePointer?) throws {
            defer { PQclear(result) }
            guard PQresultStatus(result) == PGRES_COMMAND_OK else {
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

    func run(_ requests: [KeyedTokenByHand.Request], parallel: Int) async throws {
        try await withThrowingTaskGroup { group in
            for number in 0..<parallel {
                let lane = lanes[number]
                group.addTask {
                    try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
                        Thread.detachNewThread {
                            done.resume(
                                with: Result {
                                    for index in stride(from: number, to: requests.count, by: parallel) {
                                        try lane.withLock { try $0.serve(requests[index]) }
                                    }
                                })
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}
#endif
