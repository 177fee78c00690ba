#if PostgreSQL && os(Linux)
/// One command to the server. No argument is NULL.
struct PostgreSQLCommand {
    /// What it is written in, whatever its values are.
    let form: String
    /// The values that belong into ``form``. Those that are NULL stand in the text.
    let values: [SQLValue]
    /// What the store wants to run; `nil` for a command that belongs to the connection.
    private let statement: SQL?
    /// Whether the connection keeps it prepared.
    let isKept: Bool

    /// A statement of the store.
    init(_ statement: SQLStatement) {
        let sql = statement.sql
        form = sql.form
        values = sql.arguments
        self.statement = sql
        isKept = !sql.definesSchema
    }

    /// A command that belongs to the connection.
    init(_ text: String, _ arguments: [SQLValue] = [], isKept: Bool = true) {
        form = text
        values = arguments
        statement = nil
        self.isKept = isKept
    }

    /// The text with `$1`, `$2`, …. It is made anew each time, so only for a server that does not know it yet.
    var text: String {
        guard let statement else { return form }
        let text = statement.withoutNulls().text(parameter: "$")
        return isKept ? text : PostgreSQLText.translate(text)
    }

    /// The values of its parameters.
    var arguments: [SQLValue] { values.contains(where: \.isNull) ? values.filter { !$0.isNull } : values }

    static let begin = PostgreSQLCommand("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
    /// All statements see the database as it is when the first of them begins.
    static let beginSnapshot = PostgreSQLCommand("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    /// For a transaction that writes only what a crash may take.
    static let withoutWaiting = PostgreSQLCommand("SET LOCAL synchronous_commit = off")
    static let rollback = PostgreSQLCommand("ROLLBACK")
    /// Not prepared: what is on the wire then shows where a transaction ends.
    static let commit = PostgreSQLCommand("COMMIT", isKept: false)
    /// Ends a transaction that writes only what a crash may take: nobody has to find out what became of it.
    static let commitUnlogged = PostgreSQLCommand("COMMIT")
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
