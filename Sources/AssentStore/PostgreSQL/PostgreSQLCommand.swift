#if PostgreSQL && os(Linux)
/// One command to the server. No argument is NULL.
struct PostgreSQLCommand {
    /// The text with `$1`, `$2`, ….
    let text: String
    let arguments: [SQLValue]
    /// Whether the connection keeps it prepared.
    let isKept: Bool

    /// A statement of the store.
    init(_ statement: SQLStatement) {
        let sql = statement.sql.withoutNulls()
        let text = sql.text(parameter: "$")
        isKept = !sql.definesSchema
        self.text = isKept ? text : PostgreSQLText.translate(text)
        arguments = sql.arguments
    }

    /// A command that belongs to the connection.
    init(_ text: String, _ arguments: [SQLValue] = [], isKept: Bool = true) {
        self.text = text
        self.arguments = arguments
        self.isKept = isKept
    }

    static let begin = PostgreSQLCommand("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
    /// All statements see the database as it is when the first of them begins.
    static let beginSnapshot = PostgreSQLCommand("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    /// For a transaction that writes only what a crash may take.
    static let withoutWaiting = PostgreSQLCommand("SET LOCAL synchronous_commit = off")
    static let rollback = PostgreSQLCommand("ROLLBACK")
    /// Not prepared: what is on the wire then shows where a transaction ends.
    static let commit = PostgreSQLCommand("COMMIT", isKept: false)
    static let forgetPrepared = PostgreSQLCommand("DEALLOCATE ALL", isKept: false)

    /// Lets one process at a time change the schema, for as long as it takes, and wait for tables that are in use.
    static let beginDefinition: [PostgreSQLCommand] =
        [
            "SET LOCAL statement_timeout = 0", "SET LOCAL lock_timeout = 0",
            "SELECT 1 AS locked FROM pg_advisory_xact_lock(7017280570803617383)", "SET LOCAL lock_timeout = '60s'",
        ].map { PostgreSQLCommand($0, isKept: false) } + PostgreSQLOutcome.definition + PostgreSQLLook.definition
        + PostgreSQLSpentProofs.definition + PostgreSQLPayloadSessions.definition
}

/// What came of a command.
enum PostgreSQLAnswer {
    /// It has columns, and these rows.
    case rows([SQLRow])
    /// It has changed so many rows.
    case done(Int)
    case failed(PostgreSQLFault)
    /// One before it has failed.
    case skipped

    /// How many rows it has returned or, if it has none by its nature, changed.
    var count: Int {
        switch self {
        case .rows(let rows): rows.count
        case .done(let count): count
        case .failed, .skipped: 0
        }
    }

    var rows: [SQLRow] { if case .rows(let rows) = self { rows } else { [] } }
}
#endif
