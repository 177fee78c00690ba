#if PostgreSQL && os(Linux)
import CPQ
import Foundation

/// Finds out what became of a transaction whose connection was lost while it was committed. It is never guessed.
///
/// Each transaction that writes also writes its number into the row of its connection, in the table `latest_commits`.
/// The row therefore has this number if and only if the transaction took place, also after a crash and on a standby
/// that has become the primary. PostgreSQL's own numbers of transactions do not say that: after a crash it may give a
/// number out again that had not reached the disk.
struct PostgreSQLOutcome {
    enum Outcome {
        case committed
        /// Nothing of it has happened, and nothing will.
        case takenBack
        case unknown
    }

    static let unknown = StoreError(
        .outcomeUnknown,
        """
        The connection to the database server was lost while a transaction was committed, and whether it took place \
        could not be found out in time.
        """)

    static let takenBack = StoreError(
        .unavailable, "The connection to the database server was lost again and again. Nothing has changed.")

    let lost: PostgreSQLTransaction.LostCommit
    let configuration: PostgreSQLConfiguration
    let bell: PostgreSQLBell

    /// Opens a connection and asks over it, again and again until there is an answer or the time is over. Returns the
    /// connection as well if it is fit for the next call.
    func find() -> (Outcome, PostgreSQLSession?) {
        let end = ContinuousClock.now + .milliseconds(configuration.outcomeLimit)
        var session: PostgreSQLSession?
        while ContinuousClock.now < end {
            do {
                let open = try session ?? PostgreSQLOpening(configuration: configuration).open(bell: bell)
                session = open
                if let number = try ask(open) { return (number == lost.number ? .committed : .takenBack, open) }
                open.pause(milliseconds: 20)
            } catch {
                session = nil
                _ = poll(nil, 0, 200)
            }
        }
        return (.unknown, session)
    }

    /// The number of the latest transaction that the lost connection has committed; `nil` while one is open.
    private func ask(_ session: PostgreSQLSession) throws -> Int64? {
        let answers = try session.exchange([.begin, Self.end(lost.connection), Self.ask(lost.connection), .commit])
        guard case .rows(let rows) = answers.dropLast().last else {
            _ = try session.exchange([.rollback])
            return nil
        }
        return try rows.first?.integer("number")
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

    /// Writes a transaction's number, unless the transaction has written nothing: then it returns no row.
    static func record(_ number: Int64, of connection: String) -> PostgreSQLCommand {
        PostgreSQLCommand(
            """
            INSERT INTO latest_commits (connection, number, at)
            SELECT $1, $2, \(now) WHERE pg_current_xact_id_if_assigned() IS NOT NULL
            ON CONFLICT (connection) DO UPDATE SET number = excluded.number, at = excluded.at RETURNING number
            """, [.text(connection), .integer(number)])
    }

    /// Ends a connection that the server still believes in: nobody is there any more who could commit its transaction.
    private static func end(_ connection: String) -> PostgreSQLCommand {
        PostgreSQLCommand(
            """
            SELECT count(pg_terminate_backend(pid)) AS ended FROM pg_stat_activity
            WHERE application_name = $1 AND usename = current_user AND pid <> pg_backend_pid()
            """, [.text(PostgreSQLSession.applicationName(connection))])
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
