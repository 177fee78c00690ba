#if PostgreSQL && os(Linux)
import CPQ
import Foundation

/// Finds out what became of a transaction whose connection was lost while it was committed, as ``CommitSearch`` says.
/// It is never guessed.
///
/// Most transactions that write have a record of their own (``SQLStatement/record(_:)``). The others write a number
/// into the row of their connection, in the table `latest_commits`. The record or the number is there if and only if
/// the transaction took place, also after a crash and on a standby that has become the primary. PostgreSQL's own
/// numbers of transactions do not say that: after a crash it may give a number out again that had not reached the disk.
///
/// Nothing is ended for that. A transaction whose `COMMIT` has not come there the server ends by itself
/// (``PostgreSQLConfiguration/idleLimit``). One whose `COMMIT` has come waits for a standby; to end it then makes it
/// visible without one.
struct PostgreSQLOutcome {
    /// What is in the database if a transaction took place.
    enum Evidence {
        /// The row that this command inserts.
        case record(PostgreSQLCommand)
        /// The number in its connection's row.
        case number(Int64)

        /// What has to run in the transaction besides its statements.
        func commands(_ connection: String) -> [PostgreSQLCommand] {
            switch self {
            case .record: []
            case .number(let number): [PostgreSQLOutcome.number(number, of: connection)]
            }
        }
    }

    static let unknown = StoreError(
        .outcomeUnknown,
        """
        The connection to the database server was lost while a transaction was committed, or a standby did not confirm \
        it, and whether it took place could not be found out in time.
        """)

    static let takenBack = StoreError(
        .unavailable, "The connection to the database server was lost again and again. Nothing has changed.")

    let lost: PostgreSQLTransaction.LostCommit
    let configuration: PostgreSQLConfiguration
    let keeper: PostgreSQLKeeper
    let bell: PostgreSQLBell

    /// Opens a connection and asks over it, again and again until there is an answer or the time is over. Returns the
    /// connection as well if it is fit for the next call.
    func find() -> (CommitSearch.Outcome, PostgreSQLSession?) {
        let end = ContinuousClock.now + .milliseconds(configuration.outcomeLimit)
        let search = CommitSearch(requiresStandby: configuration.requiresStandby)
        var opening = keeper.opening
        opening.end = end
        var step = search.start
        var session: PostgreSQLSession?
        /// Where it was seen, but not confirmed yet.
        var seen: PostgreSQLSession?
        while ContinuousClock.now < end {
            do {
                let open = try session ?? opening.open(bell: bell)
                session = open
                step = try follow(step, of: search, over: open, until: end)
                if step == .fence { seen = open }
                if case .end(.unknown) = step { break }
                if case .end(let outcome) = step { return (outcome, open) }
                // What was seen there says nothing of the server that the next connection leads to.
                if !keeper.isCurrent(open) { (session, step) = (nil, search.lost()) }
            } catch {
                session = nil
                step = search.lost()
                _ = poll(nil, 0, 200)
            }
        }
        // Others must not see it either.
        if let seen { keeper.doubt(seen, isVisible: true) }
        return (.unknown, session)
    }

    /// Does what a step asks for. Returns the next one.
    private func follow(
        _ step: CommitSearch.Step, of search: CommitSearch, over session: PostgreSQLSession,
        until end: ContinuousClock.Instant
    ) throws -> CommitSearch.Step {
        switch step {
        case .look:
            let finding = try look(over: session)
            if finding == .open { session.pause(milliseconds: 20) }
            return keeper.isCurrent(session) ? search.found(finding) : search.lost()
        case .fence:
            let isConfirmed = try keeper.fence(session, until: end)
            guard keeper.isCurrent(session) else { return search.lost() }
            return search.fenced(isConfirmed: isConfirmed)
        case .end: return step
        }
    }

    private func look(over session: PostgreSQLSession) throws -> CommitSearch.Finding {
        let tookPlace =
            switch lost.evidence {
            case .record(let record): try ask(session, record)
            case .number(let number): try ask(session, number)
            }
        guard let tookPlace else { return .open }
        guard tookPlace else { return .absent }
        return .present(isReplicated: try PostgreSQLLook(session: session).replication().isDemanded)
    }

    /// Inserts the record again, and takes that back. The lost transaction had inserted it before its `COMMIT` was
    /// sent, so this waits for its end; `nil` if that takes too long.
    private func ask(_ session: PostgreSQLSession, _ record: PostgreSQLCommand) throws -> Bool? {
        let answers = try session.exchange([.begin, Self.shortWait, record])
        _ = try session.exchange([.rollback])
        return switch answers.last {
        case .failed(let fault) where fault.isDuplicate: true
        case .done(1): false
        default: nil
        }
    }

    /// Reads the number in its connection's row, and takes back what that changes. The lost transaction had locked the
    /// row before its `COMMIT` was sent.
    private func ask(_ session: PostgreSQLSession, _ number: Int64) throws -> Bool? {
        let answers = try session.exchange([.begin, Self.shortWait, Self.ask(lost.connection)])
        _ = try session.exchange([.rollback])
        guard case .rows(let rows) = answers.last else { return nil }
        return try rows.first.map { try $0.integer("number") == number }
    }

    // MARK: - Commands

    private static let now = "extract(epoch FROM now())::bigint"

    /// Makes the table, and forgets connections that have ended long ago.
    static let definition: [PostgreSQLCommand] = [
        """
        CREATE TABLE IF NOT EXISTS latest_commits (
            connection TEXT COLLATE "C" PRIMARY KEY, number BIGINT NOT NULL, at BIGINT NOT NULL)
        """,
        """
        DELETE FROM latest_commits WHERE connection IN (
            SELECT connection FROM latest_commits WHERE at < \(now) - 86400 FOR UPDATE SKIP LOCKED)
        """,
    ].map { PostgreSQLCommand($0, isKept: false) }

    /// A `COMMIT` that waits for a standby holds its locks.
    private static let shortWait = PostgreSQLCommand("SET LOCAL lock_timeout = 700", isKept: false)

    /// Writes a transaction's number, unless the transaction has written nothing: then it returns no row.
    private static func number(_ number: Int64, of connection: String) -> PostgreSQLCommand {
        PostgreSQLCommand(
            """
            INSERT INTO latest_commits (connection, number, at)
            SELECT $1, $2, \(now) WHERE pg_current_xact_id_if_assigned() IS NOT NULL
            ON CONFLICT (connection) DO UPDATE SET number = excluded.number, at = excluded.at RETURNING number
            """, [.text(connection), .integer(number)])
    }

    /// Reads the number in a connection's row. It locks the row, and makes it if it is missing: so it waits for a
    /// transaction that is open, and afterwards none can come.
    private static func ask(_ connection: String) -> PostgreSQLCommand {
        PostgreSQLCommand(
            """
            INSERT INTO latest_commits (connection, number, at) SELECT $1, 0, \(now)
            ON CONFLICT (connection) DO UPDATE SET at = excluded.at RETURNING number
            """, [.text(connection)])
    }
}
#endif
