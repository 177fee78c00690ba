import AssentCore

/// The mark in a database that a copy to it has begun and has not ended. No server starts on such a database.
///
/// It tells the source, so that nobody goes on with a copy of another one, and the attempt, so that only the latest
/// goes on: each transaction of an attempt looks at the mark.
package struct UnfinishedCopy: Sendable {
    static let table = "server_state"

    private static let name = "unfinished-copy"

    /// Which rows of the table are data, and not the mark.
    static let isData: SQL = "name <> \(name)"

    private static let attemptSize = 16

    private let source: [UInt8]
    private let attempt: [UInt8]

    /// The mark of a new attempt to copy a source, which `identity` tells from others.
    init(identity: [UInt8], random: any RandomSource) {
        source = SHA2.sha256(identity)
        attempt = random.bytes(Self.attemptSize)
    }

    private init?(_ value: [UInt8]) {
        guard value.count > Self.attemptSize else { return nil }
        source = value.dropLast(Self.attemptSize)
        attempt = value.suffix(Self.attemptSize)
    }

    private var value: [UInt8] { source + attempt }

    /// The statement that finds the mark: with a row if there is one.
    static let reading = SQLStatement.read("SELECT value FROM server_state WHERE name = \(name)")

    /// The statement that counts the marks, as `marks`.
    static let counting = SQLStatement.read("SELECT count(*) AS marks FROM server_state WHERE name = \(name)")

    /// Whether a database, whose schema is up to date, has the mark.
    ///
    /// - Throws: ``StoreError`` when the database cannot serve.
    package static func isThere(in database: any SQLDatabase) async throws -> Bool {
        try await !database.run(reading).isEmpty
    }

    /// The statement that fails unless the mark is still this attempt's. In PostgreSQL it also lets an attempt that
    /// takes over wait for the transaction.
    var proof: SQLStatement {
        SQLStatement(
            "UPDATE server_state SET value = \(value) WHERE name = \(Self.name) AND value = \(value)",
            expecting: .exactly(1))
    }

    /// The statement that ends the copy.
    var removal: SQLStatement {
        SQLStatement(
            "DELETE FROM server_state WHERE name = \(Self.name) AND value = \(value)", expecting: .exactly(1))
    }

    /// Puts the mark into a database without any row, or takes it over from an attempt that was broken off.
    ///
    /// - Returns: whether the copy goes on where it was broken off.
    /// - Throws: ``DatabaseCopyError`` for a database that holds something else.
    func begin(in database: any SQLDatabase, _ tables: [StoredTable]) async throws -> Bool {
        guard let row = try await database.run(Self.reading).first else {
            try await beginAnew(in: database, tables)
            return false
        }
        guard let found = UnfinishedCopy(try row.blob("value")), found.source == source else {
            throw DatabaseCopyError(
                .targetOfAnotherSource, "The target holds an unfinished copy of another database.",
                DatabaseCopyError.emptyTarget)
        }
        let takeover = SQLStatement(
            "UPDATE server_state SET value = \(value) WHERE name = \(Self.name) AND value = \(found.value)",
            expecting: .exactly(1))
        try await DatabaseCopyError.explaining(takenAt: 0) { _ = try await database.run([takeover]) }
        return true
    }

    private func beginAnew(in database: any SQLDatabase, _ tables: [StoredTable]) async throws {
        var isEmpty: SQL = "1 = 1"
        for table in tables {
            isEmpty = "\(isEmpty) AND NOT EXISTS (SELECT 1 FROM \(SQL(verbatim: "\"\(table.name)\"")))"
        }
        let mark = SQLStatement(
            "INSERT INTO server_state (name, value) SELECT \(Self.name), \(value) WHERE \(isEmpty)",
            expecting: .exactly(1))
        do {
            _ = try await database.run([mark])
        } catch let error as StoreError where error.code == .unexpectedCount {
            throw DatabaseCopyError(
                .targetNotEmpty, "The target holds data that no copy has written.", DatabaseCopyError.emptyTarget)
        } catch let error as StoreError where error.code == .constraint {
            throw DatabaseCopyError.taken
        }
    }
}
