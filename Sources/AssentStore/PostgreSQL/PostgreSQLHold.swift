#if PostgreSQL && os(Linux)
import AssentCore
import CPQ
import Foundation

/// A name that one process at a time has on a database server, by an advisory lock of a connection of its own: it is
/// free again when that process has ended, however it has.
final class PostgreSQLHold: NodeHold {
    private enum State: Sendable { case held, lost }

    private let bell: PostgreSQLBell
    private let state = Locked(State.held)

    private init() throws { bell = try PostgreSQLBell() }

    deinit { bell.ring() }

    /// Whether this process has it still.
    var isHeld: Bool { state.withLock { $0 == .held } }

    /// Gives it up.
    func release() { bell.ring() }

    /// Takes a name.
    ///
    /// - Returns: `nil` when another process has it.
    /// - Throws: ``StoreError`` when no server can be asked.
    static func take(_ name: String, _ configuration: PostgreSQLConfiguration) async throws -> PostgreSQLHold? {
        let hold = try PostgreSQLHold()
        let (bell, state) = (hold.bell, hold.state)
        let isHeld: Bool = try await withCheckedThrowingContinuation { continuation in
            // It blocks as long as the name is held.
            Thread.detachNewThread {
                do {
                    let session = try open(configuration, bell)
                    let limit = Duration.milliseconds(configuration.holdLimit)
                    guard try lock(name, session, limit) else { return continuation.resume(returning: false) }
                    continuation.resume(returning: true)
                    _ = session.waitForBell()
                    state.withLock { $0 = .lost }
                } catch let loss as PostgreSQLLoss {
                    continuation.resume(throwing: loss.error)
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
        return isHeld ? hold : nil
    }

    /// A connection to the server that has everything, where the other nodes ask, too.
    private static func open(_ configuration: PostgreSQLConfiguration, _ bell: PostgreSQLBell) throws
        -> PostgreSQLSession
    {
        let host = try PostgreSQLSurvey.host(of: configuration)
        return try PostgreSQLOpening(configuration: configuration).open(host, bell: bell)
    }

    private static func lock(_ name: String, _ session: PostgreSQLSession, _ limit: Duration) throws -> Bool {
        let key = SHA2.sha256(Array("assent node \(name)".utf8)).prefix(8).reduce(Int64(0)) { $0 << 8 | Int64($1) }
        // A machine that has lost its power does not end its connections: the server then finds out within a minute.
        let watch = PostgreSQLCommand(
            """
            SELECT set_config('tcp_keepalives_idle', '30', false), set_config('tcp_keepalives_interval', '10', false),
                set_config('tcp_keepalives_count', '3', false)
            """, isKept: false)
        let ask = PostgreSQLCommand("SELECT pg_try_advisory_lock(\(key)) AS held", isKept: false)
        let end = ContinuousClock.now + limit
        _ = try session.exchange([watch])
        while true {
            let answer = try session.exchange([ask]).first
            if case .failed(let fault) = answer { throw fault.error() }
            if try answer?.rows.first?.bool("held") == true { return true }
            if ContinuousClock.now >= end { return false }
            session.pause(milliseconds: 100)
        }
    }
}
#endif
