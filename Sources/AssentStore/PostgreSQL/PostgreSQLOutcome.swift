#if PostgreSQL && os(Linux)
import CPQ
import Foundation

/// Finds out what became of a transaction whose connection was lost while it was committed. It is never guessed.
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

    private let id: String
    private let identity: PostgreSQLSession.Identity?
    private let configuration: PostgreSQLConfiguration
    private let bell: PostgreSQLBell

    init(
        of id: String, in identity: PostgreSQLSession.Identity?, configuration: PostgreSQLConfiguration,
        bell: PostgreSQLBell
    ) {
        self.id = id
        self.identity = identity
        self.configuration = configuration
        self.bell = bell
    }

    /// Opens a connection and asks over it, again and again until there is an answer or the time is over. Returns the
    /// connection as well if it is fit for the next call.
    func find() -> (Outcome, PostgreSQLSession?) {
        let end = ContinuousClock.now + .milliseconds(configuration.outcomeLimit)
        var session: PostgreSQLSession?
        while ContinuousClock.now < end {
            do {
                let open = try session ?? PostgreSQLOpening(configuration: configuration).open(bell: bell)
                session = open
                // On another history the number may be that of another transaction.
                guard let identity, open.identity == identity else { return (.unknown, open) }
                if let outcome = try ask(open) { return (outcome, open) }
                pause(milliseconds: 20)
            } catch {
                session = nil
                pause(milliseconds: 200)
            }
        }
        return (.unknown, session)
    }

    /// `nil` while the transaction is open.
    private func ask(_ session: PostgreSQLSession) throws -> Outcome? {
        let answer = try session.exchange([.outcome(of: id)]).first
        // The server has forgotten so old a number, or never gave it to anybody.
        guard let row = answer?.rows.first, let status = try row.optionalText("status") else { return .unknown }
        switch status {
        case "committed": return .committed
        case "aborted": return .takenBack
        default: return nil
        }
    }

    private func pause(milliseconds: Int32) {
        _ = poll(nil, 0, milliseconds)
    }
}
#endif
