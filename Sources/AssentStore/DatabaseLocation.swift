package import AssentCore
package import Logging

/// Where a database is. The one place that knows which kinds of database there are.
package enum DatabaseLocation: Sendable, Hashable {
    /// A SQLite file. Its directory must exist.
    case sqlite(path: String)

    /// A PostgreSQL database, for one or many nodes.
    case postgresql(PostgreSQLConfiguration)

    /// Opens the database and brings its schema up to date. A SQLite file that is missing is made; a PostgreSQL
    /// database must exist.
    ///
    /// - Parameters:
    ///   - schema: the tables it must have.
    ///   - clock: the time that is recorded beside each step of the schema.
    ///   - logger: gets what an operator has to know about the servers of the database.
    ///   - check: may refuse a database of an older schema before that is changed (``Schema``).
    /// - Returns: the open database; close it with ``SQLDatabase/close()``.
    /// - Throws: ``StoreError``: `unavailable` when it cannot be opened or written, `newerSchema` when a later version
    ///   of the server has used it, `corrupt` when it is not a database of this server; what `check` throws.
    package func open(
        schema: Schema = .current, clock: any WallClock,
        logger: Logger = Logger(label: "assent.store") { _ in SwiftLogNoOpLogHandler() },
        admitting check: (any SQLDatabase) async throws -> Void = { _ in }
    ) async throws -> any SQLDatabase {
        switch self {
        case .sqlite(let path):
            let database = try await SQLiteDatabase(path: path)
            try await schema.apply(to: database, clock: clock, admitting: check)
            return database
        case .postgresql(let configuration):
            #if PostgreSQL && os(Linux)
            let database = PostgreSQLDatabase(configuration, logger: logger)
            do {
                try await database.refuseOthersTables()
                try await schema.apply(to: database, clock: clock, admitting: check)
                try await database.beginHistory()
            } catch {
                await database.close()
                throw error
            }
            return database
            #else
            throw Self.notBuilt(configuration)
            #endif
        }
    }

    /// Looks at the database without changing it, also while a server has it open.
    ///
    /// - Parameters:
    ///   - schema: the tables that this version needs.
    ///   - clock: the time that a database server's is compared with.
    ///   - statements: what else is read, if the schema is the one that this version needs.
    /// - Returns: what was found.
    /// - Throws: ``StoreError``: `unavailable` when it cannot be read, `corrupt` when it is not a database.
    package func examine(
        schema: Schema = .current, clock: any WallClock = SystemClock(), reading statements: [SQLStatement] = []
    ) async throws -> DatabaseExamination {
        switch self {
        case .sqlite(let path):
            try await SQLiteExamination(path: path, schema: schema, statements: statements).run()
        case .postgresql(let configuration):
            #if PostgreSQL && os(Linux)
            try await PostgreSQLExamination(
                configuration: configuration, schema: schema, clock: clock, statements: statements
            ).run()
            #else
            throw Self.notBuilt(configuration)
            #endif
        }
    }

    /// How many connections of nodes the servers of the database have at this moment. A SQLite file does not know: the
    /// lock of its data directory tells.
    ///
    /// - Throws: ``StoreError`` when the server of the database cannot be asked.
    package func connectionsOfServers() async throws -> Int {
        switch self {
        case .sqlite: return 0
        case .postgresql(let configuration):
            #if PostgreSQL && os(Linux)
            return try await PostgreSQLExamination(configuration: configuration).connectionsOfServers()
            #else
            throw Self.notBuilt(configuration)
            #endif
        }
    }

    #if !(PostgreSQL && os(Linux))
    static func notBuilt(_ configuration: PostgreSQLConfiguration) -> StoreError {
        StoreError(
            .unavailable,
            """
            This program cannot use the PostgreSQL database \(configuration.database): it was built without \
            PostgreSQL. Build it on Linux with --traits PostgreSQL or --enable-all-traits.
            """)
    }
    #endif
}

/// What a look at a database has found.
package struct DatabaseExamination: Sendable, Hashable {
    /// How far its schema is.
    package let schema: SchemaState

    /// Whether its pages and indexes fit together; `true` when there is no database, and for a database server, which
    /// looks after that itself.
    package let isWhole: Bool

    /// Whether a copy to it has begun and has not ended: no server starts on it.
    package let isUnfinishedCopy: Bool

    /// What else there is to say, the server first; empty for a file.
    package let findings: [DatabaseFinding]

    /// What the statements have read that were asked for; nothing unless the schema is the one that was needed.
    package let rows: [[SQLRow]]

    /// What was found.
    package init(
        schema: SchemaState, isWhole: Bool, isUnfinishedCopy: Bool = false, findings: [DatabaseFinding] = [],
        rows: [[SQLRow]] = []
    ) {
        self.schema = schema
        self.isWhole = isWhole
        self.isUnfinishedCopy = isUnfinishedCopy
        self.findings = findings
        self.rows = rows
    }
}

/// One thing that a look at a database server has found.
package struct DatabaseFinding: Sendable, Hashable {
    /// Whether it must be put right before the database is used.
    package let isProblem: Bool

    /// Whether the operator should know of it, and may have wanted it so.
    package let isNote: Bool

    /// What was found and, for a problem, what to do.
    package let text: String

    init(isProblem: Bool, isNote: Bool = false, _ text: String) {
        self.isProblem = isProblem
        self.isNote = isNote
        self.text = text
    }
}
