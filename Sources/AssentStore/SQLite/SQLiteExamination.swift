import Foundation
import GRDB

/// Reads a SQLite file without writing to it and without leaving a file beside it.
struct SQLiteExamination {
    let path: String
    let schema: Schema
    let statements: [SQLStatement]

    /// Whether the file is one that nobody has opened since it was written whole. What stands beside it under the name
    /// of its log, where others may make files, is then theirs.
    var isFresh = false

    private static let missing = DatabaseExamination(schema: .missing, isWhole: true)

    func run() async throws -> DatabaseExamination {
        guard FileManager.default.fileExists(atPath: path) else { return Self.missing }
        if isFresh { return try await examine(isImmutable: true) }
        // A file without a log beside it is open nowhere, and can be read as if nothing could change it. Otherwise
        // SQLite would make a log, and a reader may not take that away again.
        let wasOpen = hasLog
        do {
            let found = try await examine(isImmutable: !wasOpen)
            if hasLog == wasOpen { return found }
        } catch  where hasLog != wasOpen {}
        // A server has started or stopped in between.
        return try await examine(isImmutable: !hasLog)
    }

    private var hasLog: Bool { FileManager.default.fileExists(atPath: path + "-wal") }

    private func examine(isImmutable: Bool) async throws -> DatabaseExamination {
        do {
            var configuration = Configuration()
            configuration.readonly = true
            configuration.busyMode = .timeout(10)
            let name = isImmutable ? URL(filePath: path).absoluteString + "?immutable=1" : path
            let file = try DatabaseQueue(path: name, configuration: configuration)
            defer { try? file.close() }
            return try await file.read { try examination(of: $0) }
        } catch let error as DatabaseError {
            throw StoreError(error)
        }
    }

    private func examination(of database: Database) throws -> DatabaseExamination {
        let tables = try Set(String.fetchAll(database, sql: "SELECT name FROM sqlite_master WHERE type = 'table'"))
        if tables.isEmpty { return Self.missing }
        let isWhole = try String.fetchOne(database, sql: "PRAGMA quick_check(1)") == "ok"
        guard tables.contains("schema_steps") else { return DatabaseExamination(schema: .foreign, isWhole: isWhole) }
        let steps = try Int.fetchOne(database, sql: SchemaState.count.sql.text()) ?? 0
        // A file that is not whole may not be readable there.
        let isUnfinishedCopy =
            try isWhole && tables.contains(UnfinishedCopy.table)
            && SQLiteDatabase.execute(UnfinishedCopy.reading, index: 0, in: database).count > 0
        let state = schema.state(applied: steps)
        let isCurrent = state == .current(step: steps)
        return DatabaseExamination(
            schema: state, isWhole: isWhole, isUnfinishedCopy: isUnfinishedCopy,
            rows: isCurrent ? try statements.map { try SQLiteDatabase.execute($0, index: 0, in: database) } : [])
    }
}
