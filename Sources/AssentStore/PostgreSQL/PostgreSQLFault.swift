#if PostgreSQL && os(Linux)
import CPQ

/// What the server said about a command that failed. Its `DETAIL` and `HINT` are never read: they quote stored values.
struct PostgreSQLFault: Error {
    /// The SQLSTATE, five characters; empty when it was not the server that spoke.
    let state: String
    let message: String
    /// The function of the server that has found the fault: a name that no language of the server changes.
    let routine: String
    /// Whether the server has ended the connection with it.
    let isFatal: Bool

    /// Reads the error of a result.
    init(_ result: OpaquePointer) {
        func field(_ code: Character) -> String {
            guard let code = code.asciiValue, let text = PQresultErrorField(result, Int32(code)) else { return "" }
            return String(cString: text)
        }
        state = field("C")
        message = field("M")
        routine = field("R")
        isFatal = ["FATAL", "PANIC"].contains(field("V"))
    }

    /// A fault of a statement that we have found.
    init(statement message: String) {
        state = "42000"
        self.message = message
        routine = ""
        isFatal = false
    }

    /// The class of the SQLSTATE.
    private var kind: Substring { state.prefix(2) }

    /// Whether the same transaction may succeed if it is run again from its beginning.
    var isPassing: Bool { isConflict || isStale }

    /// A deadlock, or two transactions that PostgreSQL could not put into an order.
    private var isConflict: Bool { ["40001", "40P01"].contains(state) }

    /// A prepared statement is gone, or its columns are no longer those of the table: another node has changed the
    /// schema.
    var isStale: Bool { state == "26000" || (state == "0A000" && routine == "RevalidateCachedQuery") }

    /// The server is a standby, or has become one: it cannot be written to.
    var isStandby: Bool { state == "25006" || (state == "0A000" && message.contains("recovery")) }

    /// Another row has the same key.
    var isDuplicate: Bool { state == "23505" }

    /// Whether what we asked for was to stop the statement, or its time was over.
    var isCancellation: Bool { state == "57014" }

    /// The error for the caller. Messages about data quote the data, so of those only the SQLSTATE is told.
    func error(statement: Int? = nil) -> StoreError {
        let text = "PostgreSQL \(state)" + (kind == "22" ? "" : ", \(message)")
        func error(_ code: StoreError.Code, _ advice: String = "") -> StoreError {
            StoreError(code, advice.isEmpty ? text : "\(text). \(advice)", statement: statement)
        }
        switch state {
        case "42501": return error(.unavailable, "Give the role the right to use and to make the server's tables.")
        case "53100": return error(.unavailable, "Free space on the disk of the database server.")
        case "55P03": return error(.unavailable, "Another transaction held a lock for too long.")
        case "57014": return error(.unavailable, "The statement took too long.")
        case "XX001", "XX002": return error(.corrupt, "Restore the database from a backup.")
        case _ where isConflict: return error(.unavailable, "Other transactions came in between each time.")
        case _ where isStale: return error(.unavailable)
        case _ where isStandby: return error(.unavailable, Self.standbyAdvice)
        default: break
        }
        switch kind {
        case "23": return error(.constraint)
        case "0A", "21", "22", "25", "26", "2B", "2F", "34", "3F", "42", "44", "54", "P0": return error(.statement)
        default: return error(.unavailable)
        }
    }

    static let standbyAdvice = "Nobody can write to this server. Name all servers of the database in the configuration."
}

/// The connection is gone, or is not fit to go on with.
struct PostgreSQLLoss: Error {
    /// Why, for the caller.
    let error: StoreError
    /// Whether the server was still there, and said nothing for too long.
    var isSilence = false

    init(_ detail: String) { error = StoreError(.unavailable, detail) }

    init(silence detail: String) {
        self.init(detail)
        isSilence = true
    }

    init(_ error: StoreError) { self.error = error }
}
#endif
