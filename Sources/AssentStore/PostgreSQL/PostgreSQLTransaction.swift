#if PostgreSQL && os(Linux)
/// What one call asks for.
struct PostgreSQLWork: Sendable {
    enum Kind: Sendable {
        /// One statement that reads: it needs no transaction around it.
        case read
        /// Several statements that read one state of the database.
        case snapshot
        case write
        /// One statement that writes what a crash may take.
        case unlogged
        /// It changes the schema.
        case definition
    }

    let statements: [SQLStatement]
    let kind: Kind

    var isWriting: Bool { kind == .write || kind == .unlogged || kind == .definition }

    init(_ statements: [SQLStatement]) {
        self.statements = statements
        if statements.allSatisfy(\.isRead) {
            kind = statements.count == 1 ? .read : .snapshot
        } else if statements.count == 1, statements.allSatisfy(\.isUnlogged) {
            kind = .unlogged
        } else {
            kind = statements.contains(where: \.sql.definesSchema) ? .definition : .write
        }
    }
}

/// One attempt to do a call's work over one connection, on that connection's thread.
struct PostgreSQLTransaction {
    let session: PostgreSQLSession
    let work: PostgreSQLWork
    let configuration: PostgreSQLConfiguration
    let isCancelled: () -> Bool
    /// Whether the connection's server is still the one that is believed.
    let isCurrent: () -> Bool

    /// A transaction whose connection was lost while it was committed.
    struct LostCommit: Error {
        /// The connection's id.
        let connection: String
        /// What tells later whether it took place.
        let evidence: PostgreSQLOutcome.Evidence
        /// What its statements have returned.
        let rows: [[SQLRow]]
        /// Whether the server was there and did not answer: it may wait for a standby.
        let isSilence: Bool
    }

    /// A conflict with other transactions or a change of the schema has ended it. Nothing of it has happened.
    struct Passing: Error {
        let fault: PostgreSQLFault
    }

    /// - Throws: ``PostgreSQLLoss``: the connection is lost and nothing has happened; ``LostCommit``: it is lost, and
    ///   the server has to be asked what has happened; ``Passing``; anything else: nothing has happened, and the
    ///   connection is fit for the next call.
    func run() throws -> [[SQLRow]] {
        // A cancellation that came meanwhile found nothing to interrupt.
        if try session.setUp(for: work.kind), isCancelled() { throw CancellationError() }
        return switch work.kind {
        case .read: try readOne()
        case .snapshot: try exchange(after: [.beginSnapshot])
        case .unlogged: try writeUnlogged()
        case .write, .definition: try write()
        }
    }

    private var commands: [PostgreSQLCommand] { work.statements.map { PostgreSQLCommand($0) } }

    /// One round trip. By the connection's default a transaction only reads.
    private func readOne() throws -> [[SQLRow]] {
        try checked(session.exchange(commands, isCancelled: isCancelled))
    }

    /// What it commits needs no evidence: a crash may take it, and it may be done a second time.
    private func writeUnlogged() throws -> [[SQLRow]] {
        let rows: [[SQLRow]]
        if session.isForUnlogged {
            // By itself: the server commits it before it answers that all has come.
            rows = try checked(session.exchange(commands, isCancelled: isCancelled))
        } else {
            // What it reads may let the server tidy a logged table up, and the commit would then wait for the disk.
            rows = try exchange(after: [.begin, .withoutWaiting], before: .commitUnlogged)
        }
        // Meanwhile another server has taken over, where the table is empty: it has to be asked.
        guard isCurrent() else { throw PostgreSQLLoss("Another database server was chosen meanwhile.") }
        return rows
    }

    /// One round trip.
    private func exchange(
        after opening: [PostgreSQLCommand], before end: PostgreSQLCommand = .commit
    ) throws -> [[SQLRow]] {
        let answers = try session.exchange(opening + commands + [end], isCancelled: isCancelled)
        do {
            for answer in answers.prefix(opening.count) { try require(answer) }
            let rows = try checked(Array(answers.dropFirst(opening.count).dropLast()))
            try require(answers.last)
            return rows
        } catch {
            if answers.contains(where: \.isMissing) { try takeBack() }
            throw error
        }
    }

    /// Two round trips: `COMMIT` is sent when the row counts are what they must be, and when that is written by which
    /// to ask what became of the transaction.
    private func write() throws -> [[SQLRow]] {
        let isDefinition = work.kind == .definition
        let opening = [.begin] + demands + (isDefinition ? PostgreSQLCommand.beginDefinition : [])
        let commands = commands
        let evidence = evidence(commands)
        let answers = try session.exchange(
            opening + commands + evidence.commands(session.id), isPatient: isDefinition, isCancelled: isCancelled)
        let own = answers.dropFirst(opening.count)
        let rows: [[SQLRow]]
        do {
            for answer in answers.prefix(opening.count) { try require(answer) }
            if configuration.requiresStandby, PostgreSQLLook.replication(answers[1])?.isDemanded != true {
                throw StoreError(
                    .unavailable, "No synchronous standby is named any more. Nothing has changed.",
                    obstacle: .standbyNotNamed)
            }
            rows = try checked(Array(own.prefix(commands.count)))
            for answer in own.dropFirst(commands.count) { try require(answer) }
            if isCancelled() { throw CancellationError() }
        } catch {
            try takeBack()
            throw error
        }
        let hasWritten = if case .number = evidence { answers.last?.rows.isEmpty == false } else { true }
        try commit(evidence, rows, hasWritten: hasWritten, under: answers[1])
        return rows
    }

    /// Ends the transaction, so that the connection is fit for the next one.
    private func takeBack() throws {
        guard case .failed? = try session.exchange([.rollback]).first else { return }
        // It is not prepared any more, and has not run either.
        session.forgetPrepared()
        _ = try session.exchange([.rollback])
    }

    /// What is asked before the statements and again behind `COMMIT`: whether a standby had to confirm it.
    private var demands: [PostgreSQLCommand] {
        configuration.requiresStandby ? [PostgreSQLLook.replicationSettings] : []
    }

    /// The second round trip. `settings` is the answer to ``demands`` in the first.
    private func commit(
        _ evidence: PostgreSQLOutcome.Evidence, _ rows: [[SQLRow]], hasWritten: Bool, under settings: PostgreSQLAnswer
    ) throws {
        let lost = { isSilence in
            LostCommit(connection: session.id, evidence: evidence, rows: rows, isSilence: isSilence)
        }
        let answers: [PostgreSQLAnswer]
        do {
            answers = try session.commit(limit: configuration.commitLimit, asking: demands)
        } catch {
            // What has written nothing is the same whether it was committed or not.
            if !hasWritten { return }
            throw lost(error.isSilence)
        }
        // The server has said no: it has taken everything back.
        if case .failed(let fault) = answers.first { throw failure(fault) }
        // Meanwhile another server has taken over: this commit may be on the old one alone.
        guard isCurrent() else { throw lost(false) }
        guard configuration.requiresStandby, hasWritten else { return }
        // Meanwhile somebody has let it wait no longer: the server then says nothing about it.
        let replication = answers.dropFirst().first.map(PostgreSQLLook.replication) ?? nil
        guard replication != nil, replication == PostgreSQLLook.replication(settings) else { throw lost(false) }
    }

    /// A record of its own, if it has one. Others get a number.
    private func evidence(_ commands: [PostgreSQLCommand]) -> PostgreSQLOutcome.Evidence {
        if let index = work.statements.firstIndex(where: \.isRecord) { return .record(commands[index]) }
        return .number(session.numberTransaction())
    }

    // MARK: - Answers

    private func checked(_ answers: [PostgreSQLAnswer]) throws -> [[SQLRow]] {
        for (index, (answer, statement)) in zip(answers, work.statements).enumerated() {
            try require(answer, statement: index)
            guard statement.expected.matches(answer.count) else {
                throw StoreError(.unexpectedCount, "\(answer.count) rows", statement: index)
            }
        }
        return answers.map(\.rows)
    }

    private func require(_ answer: PostgreSQLAnswer?, statement: Int? = nil) throws {
        if case .failed(let fault) = answer { throw failure(fault, statement: statement) }
    }

    private func failure(_ fault: PostgreSQLFault, statement: Int? = nil) -> any Error {
        if fault.isPassing { return Passing(fault: fault) }
        if fault.isCancellation, isCancelled() { return CancellationError() }
        if fault.isStandby {
            // A statement that only says that it reads, or a server that became a standby: then another one is wanted.
            return work.isWriting
                ? PostgreSQLLoss(fault.error(statement: statement))
                : StoreError(.statement, "the statement writes, and says that it only reads", statement: statement)
        }
        return fault.error(statement: statement)
    }
}

extension PostgreSQLAnswer {
    /// Whether there is no result.
    fileprivate var isMissing: Bool {
        switch self {
        case .failed, .skipped: true
        case .rows, .done: false
        }
    }
}
#endif
