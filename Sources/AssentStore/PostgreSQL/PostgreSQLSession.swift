#if PostgreSQL && os(Linux)
import CPQ
import Foundation

/// One connection to a server, in pipeline mode. It belongs to the thread that has opened it and blocks that one.
final class PostgreSQLSession {
    /// A name that no other connection has, now or later.
    let id: String
    let connection: OpaquePointer
    /// The server that it leads to; `nil` in tests without one.
    let host: PostgreSQLConfiguration.Host?
    private let bell: PostgreSQLBell
    /// The statements that are kept.
    private var prepared: [Statement: Prepared] = [:]
    private var lastName = 0
    private var forgetsAll = false
    /// How many transactions were numbered.
    private var lastTransaction: Int64 = 0
    /// Milliseconds of silence after which the connection counts as lost.
    private let silenceLimit: Int32
    private let remarks = Remarks()
    /// The run of the server that it leads to, once that is known.
    var incarnation: ServerIncarnation?
    /// How many calls in a row have written only what a crash may take.
    var unloggedCalls = 0
    /// Whether it is set up for such calls alone (``setUp(for:)``).
    var isForUnlogged = false

    /// More prepared statements than this server has are somebody's mistake; they are forgotten, all at once.
    private static let mostPrepared = 500

    /// Takes an open connection over.
    init(
        _ connection: OpaquePointer, id: String, host: PostgreSQLConfiguration.Host?, bell: PostgreSQLBell,
        silenceLimit: Int
    ) {
        self.connection = connection
        self.id = id
        self.host = host
        self.bell = bell
        self.silenceLimit = Int32(clamping: silenceLimit)
        // Else libpq writes what the server remarks to the standard error.
        PQsetNoticeReceiver(
            connection,
            { place, _ in
                if let place { Unmanaged<Remarks>.fromOpaque(place).takeUnretainedValue().count += 1 }
            }, Unmanaged.passUnretained(remarks).toOpaque())
    }

    deinit { PQfinish(connection) }

    /// How often the server has remarked something: notices and warnings.
    private final class Remarks {
        var count = 0
    }

    /// By which name the server knows a connection.
    static func applicationName(_ id: String) -> String { "assent \(id)" }

    /// The number of a transaction that begins: 1 for the first.
    func numberTransaction() -> Int64 {
        lastTransaction += 1
        return lastTransaction
    }

    /// All prepared statements are made anew.
    func forgetPrepared() { forgetsAll = true }

    // MARK: - Waiting

    /// Waits until the bell rings. Returns `false` when the connection has ended before.
    func waitForBell() -> Bool {
        while PQsocket(connection) >= 0 {
            var places = [
                pollfd(fd: PQsocket(connection), events: Int16(POLLIN), revents: 0),
                pollfd(fd: bell.descriptor, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&places, 2, -1) > 0 else { continue }
            if places[1].revents != 0 {
                bell.answer()
                return true
            }
            // Nobody was asked: a notice or the new value of a setting, or the end.
            guard PQconsumeInput(connection) == 1, PQisBusy(connection) == 0, PQstatus(connection) == CONNECTION_OK
            else { return false }
        }
        return false
    }

    /// Lets the thread wait.
    func pause(milliseconds: Int32) { _ = poll(nil, 0, milliseconds) }

    // MARK: - Commands

    /// Sends commands in one go and reads all answers: one round trip. After the first that fails, the others are
    /// skipped.
    ///
    /// With `isPatient` the server may take as long as it wants. `isCancelled` is asked when the bell rings; if so, the
    /// server is told to stop what it does.
    /// - Throws: ``PostgreSQLLoss``; nobody knows then what the server has done of it.
    func exchange(
        _ commands: [PostgreSQLCommand], isPatient: Bool = false, isCancelled: () -> Bool = { false }
    ) throws(PostgreSQLLoss) -> [PostgreSQLAnswer] {
        try exchange(commands, Patience(limit: isPatient ? nil : silenceLimit), isCancelled)
    }

    /// Commits. The server may confirm that late, when a standby has to have it, and then nothing here may hurry it:
    /// what ends such a wait makes the transaction visible without the standby. So the connection is given up after
    /// `limit` milliseconds of silence, and the server is told nothing.
    ///
    /// - Parameters:
    ///   - limit: the milliseconds.
    ///   - questions: what is asked right after it, in the same round trip.
    /// - Returns: the answer to `COMMIT`, and those to the questions.
    /// - Throws: ``PostgreSQLLoss``, also when the server warns: it then has committed here, and perhaps nowhere else.
    func commit(
        limit: Int, asking questions: [PostgreSQLCommand] = []
    ) throws(PostgreSQLLoss) -> [PostgreSQLAnswer] {
        try commit(Patience(limit: Int32(clamping: limit)), questions)
    }

    /// Commits, and waits for the server's answer as long as `goesOn` says so, which is asked ten times a second.
    ///
    /// - Throws: ``PostgreSQLLoss``, also when the server warns.
    func commit(while goesOn: () -> Bool) throws(PostgreSQLLoss) -> [PostgreSQLAnswer] {
        try withoutActuallyEscaping(goesOn) { (goesOn) throws(PostgreSQLLoss) in
            try commit(Patience(limit: nil, goesOn: goesOn), [])
        }
    }

    private func commit(
        _ patience: Patience, _ questions: [PostgreSQLCommand]
    ) throws(PostgreSQLLoss) -> [PostgreSQLAnswer] {
        let before = remarks.count
        let answers = try exchange([.commit] + questions, patience, { false })
        guard remarks.count == before else {
            throw PostgreSQLLoss("The database server has committed with a warning: no standby may have it.")
        }
        return answers
    }

    /// How long an answer is waited for.
    private struct Patience {
        /// Milliseconds of silence; `nil` for as long as it takes.
        let limit: Int32?
        var goesOn: (() -> Bool)?
    }

    private func exchange(
        _ commands: [PostgreSQLCommand], _ patience: Patience, _ isCancelled: () -> Bool
    ) throws(PostgreSQLLoss) -> [PostgreSQLAnswer] {
        if forgetsAll || prepared.count >= Self.mostPrepared {
            prepared = [:]
            forgetsAll = false
            _ = try exchange([.forgetPrepared])
        }
        let entries = try send(commands)
        var answers: [PostgreSQLAnswer] = []
        answers.reserveCapacity(commands.count)
        var fault: PostgreSQLFault?
        for entry in entries {
            let answer = try read(entry.executed, patience, isCancelled)
            if case .failed(let found) = answer, fault == nil { fault = found }
            switch entry {
            case .prepare(let key):
                if case .done = answer { continue }
                prepared[key] = nil
            // Its execution is skipped: the fault belongs to that.
            case .execute:
                if case .skipped = answer, let first = fault {
                    answers.append(answers.contains(where: \.isFailure) ? .skipped : .failed(first))
                } else {
                    answers.append(answer)
                }
            }
        }
        guard let sync = try next(patience, isCancelled) else {
            throw PostgreSQLLoss("The server's answer makes no sense.")
        }
        defer { PQclear(sync) }
        guard PQresultStatus(sync) == PGRES_PIPELINE_SYNC else { throw loss(PostgreSQLFault(sync)) }
        return answers
    }

    /// What is prepared: the same form with other types, or with a NULL elsewhere, is another statement.
    private struct Statement: Hashable {
        let form: String
        /// 0 for a NULL, which is written into the text.
        let types: [Oid]

        /// By its length alone: to hash a long text takes longer than to compare it with the few that are as long.
        func hash(into hasher: inout Hasher) {
            hasher.combine(form.utf8.count)
            hasher.combine(types)
        }
    }

    /// A statement that the server knows, and what it knows of its result.
    private final class Prepared {
        let name: String
        /// What its columns are called, and their types, once it has run. They stay: where a table was changed so that
        /// they would be others, the server refuses to run it (``PostgreSQLFault/isStale``).
        var columns: Columns?

        init(name: String) { self.name = name }
    }

    private struct Columns {
        let names: [String]
        let types: [Oid]

        init(of result: OpaquePointer) {
            let columns = 0..<PQnfields(result)
            names = columns.map { String(cString: PQfname(result, $0)) }
            types = columns.map { PQftype(result, $0) }
        }
    }

    private enum Entry {
        case prepare(Statement)
        /// `nil` for a statement that is not kept.
        case execute(Prepared?)

        var executed: Prepared? { if case .execute(let prepared) = self { prepared } else { nil } }
    }

    private func send(_ commands: [PostgreSQLCommand]) throws(PostgreSQLLoss) -> [Entry] {
        var entries: [Entry] = []
        entries.reserveCapacity(2 * commands.count)
        for command in commands {
            let key = Statement(form: command.form, types: command.values.map(\.postgreSQLType))
            let arguments = command.arguments
            var statement = command.isKept ? prepared[key] : nil
            if statement == nil {
                if command.isKept {
                    lastName += 1
                    statement = Prepared(name: "s\(lastName)")
                    prepared[key] = statement
                }
                let types = arguments.map(\.postgreSQLType)
                let name = statement?.name ?? ""
                guard PQsendPrepare(connection, name, command.text, Int32(types.count), types) == 1 else {
                    throw loss()
                }
                entries.append(.prepare(key))
            }
            guard sendExecution(of: statement?.name ?? "", arguments) else { throw loss() }
            entries.append(.execute(statement))
        }
        guard PQpipelineSync(connection) == 1 else { throw loss() }
        return entries
    }

    private func sendExecution(of name: String, _ arguments: [SQLValue]) -> Bool {
        // As a C string: a Swift string would be copied for the call.
        name.withCString { name in
            guard !arguments.isEmpty else {
                return PQsendQueryPrepared(connection, name, 0, nil, nil, nil, 1) == 1
            }
            var bytes: [UInt8] = []
            var places: [Int] = []
            var lengths: [Int32] = []
            bytes.reserveCapacity(48 * arguments.count)
            places.reserveCapacity(arguments.count)
            lengths.reserveCapacity(arguments.count)
            for argument in arguments {
                let place = bytes.count
                argument.append(to: &bytes)
                places.append(place)
                lengths.append(Int32(clamping: bytes.count - place))
            }
            // What is empty needs an address, too: without one it would be NULL.
            bytes.append(0)
            let formats = [Int32](repeating: 1, count: arguments.count)
            return bytes.withUnsafeBytes { buffer in
                let start = buffer.assumingMemoryBound(to: CChar.self).baseAddress
                let values = places.map { start?.advanced(by: $0) }
                return PQsendQueryPrepared(connection, name, Int32(arguments.count), values, lengths, formats, 1) == 1
            }
        }
    }

    // MARK: - Answers

    /// The answer to one command, with the end of its results. `prepared` is the statement that it has run, if that is
    /// kept.
    private func read(
        _ prepared: Prepared?, _ patience: Patience, _ isCancelled: () -> Bool
    ) throws(PostgreSQLLoss) -> PostgreSQLAnswer {
        var answer: PostgreSQLAnswer?
        while let result = try next(patience, isCancelled) {
            defer { PQclear(result) }
            switch PQresultStatus(result) {
            case PGRES_TUPLES_OK: answer = Self.rows(of: result, Self.columns(of: result, prepared))
            case PGRES_COMMAND_OK: answer = .done(Int(String(cString: PQcmdTuples(result))) ?? 0)
            case PGRES_EMPTY_QUERY: answer = .failed(PostgreSQLFault(statement: "there is nothing to run"))
            case PGRES_PIPELINE_ABORTED: answer = .skipped
            case PGRES_FATAL_ERROR:
                let fault = PostgreSQLFault(result)
                if fault.isFatal || PQstatus(connection) != CONNECTION_OK { throw loss(fault) }
                answer = .failed(fault)
            default: throw PostgreSQLLoss("The server's answer makes no sense.")
            }
        }
        guard let answer else { throw loss() }
        return answer
    }

    /// The columns of a result. A statement that is kept has the same each time, and a text is made for each name.
    private static func columns(of result: OpaquePointer, _ prepared: Prepared?) -> Columns {
        if let known = prepared?.columns, known.names.count == Int(PQnfields(result)) { return known }
        let columns = Columns(of: result)
        prepared?.columns = columns
        return columns
    }

    private static func rows(of result: OpaquePointer, _ columns: Columns) -> PostgreSQLAnswer {
        let (names, types) = (columns.names, columns.types)
        var rows: [SQLRow] = []
        for row in 0..<PQntuples(result) {
            var values: [SQLValue] = []
            values.reserveCapacity(names.count)
            for column in 0..<Int32(names.count) {
                if PQgetisnull(result, row, column) == 1 {
                    values.append(.null)
                    continue
                }
                let bytes = UnsafeRawBufferPointer(
                    start: PQgetvalue(result, row, column), count: Int(PQgetlength(result, row, column)))
                guard let value = SQLValue(postgreSQLType: types[Int(column)], bytes) else {
                    let (name, type) = (names[Int(column)], types[Int(column)])
                    return .failed(PostgreSQLFault(statement: "column \(name) has the type number \(type): cast it"))
                }
                values.append(value)
            }
            rows.append(SQLRow(names: names, values: values))
        }
        return .rows(rows)
    }

    /// The next result, waiting for it; `nil` at the end of a command's results.
    private func next(_ patience: Patience, _ isCancelled: () -> Bool) throws(PostgreSQLLoss) -> OpaquePointer? {
        var wasCancelled = false
        while PQisBusy(connection) == 1 {
            let rest = PQflush(connection)
            guard rest >= 0 else { throw loss() }
            var places = [
                pollfd(
                    fd: PQsocket(connection), events: Int16(rest == 0 ? POLLIN : POLLIN | POLLOUT), revents: 0),
                pollfd(fd: bell.descriptor, events: Int16(POLLIN), revents: 0),
            ]
            let count = poll(&places, 2, patience.goesOn == nil ? patience.limit ?? -1 : 100)
            if count == 0 {
                if patience.goesOn?() == true { continue }
                throw PostgreSQLLoss(silence: "The database server has not answered in time.")
            }
            guard count > 0 else { continue }
            if places[1].revents != 0 {
                bell.answer()
                if !wasCancelled, isCancelled() {
                    wasCancelled = true
                    cancel()
                }
            }
            if places[0].revents & Int16(POLLIN | POLLHUP | POLLERR) != 0, PQconsumeInput(connection) == 0 {
                throw loss()
            }
        }
        return PQgetResult(connection)
    }

    /// Tells the server to stop the statement that it runs. It may also have ended it already.
    private func cancel() {
        guard let handle = PQgetCancel(connection) else { return }
        var message = [CChar](repeating: 0, count: 256)
        _ = PQcancel(handle, &message, Int32(message.count))
        PQfreeCancel(handle)
    }

    /// Why the connection cannot be used any more.
    private func loss(_ fault: PostgreSQLFault? = nil) -> PostgreSQLLoss {
        if let fault, !fault.state.isEmpty {
            return PostgreSQLLoss("PostgreSQL \(fault.state), \(fault.message)")
        }
        return PostgreSQLLoss("The connection to the database server is lost.")
    }
}

extension PostgreSQLAnswer {
    fileprivate var isFailure: Bool { if case .failed = self { true } else { false } }
}
#endif
