#if PostgreSQL && os(Linux)
/// How a connection serves many calls in a row that write only what a crash may take: each is one statement then, as a
/// read is. Around a single one stand three more, by which it may write and waits for no disk.
extension PostgreSQLSession {
    /// So many come in a row before the connection is set up for them: to do that, and to undo it, is a round trip
    /// each.
    static let unloggedRun = 8

    /// Sets the connection up for a call, before each: for one of another kind it reads by default, and commits as all
    /// connections do.
    ///
    /// - Returns: whether the server was asked for that.
    /// - Throws: ``PostgreSQLLoss``: nobody knows how the connection commits, so it must not be used any more.
    func setUp(for kind: PostgreSQLWork.Kind) throws(PostgreSQLLoss) -> Bool {
        guard kind == .unlogged else {
            unloggedCalls = 0
            guard isForUnlogged else { return false }
            try set(Self.forOthers)
            isForUnlogged = false
            return true
        }
        guard !isForUnlogged else { return false }
        unloggedCalls += 1
        guard unloggedCalls > Self.unloggedRun else { return false }
        try set(Self.forUnlogged)
        isForUnlogged = true
        return true
    }

    private func set(_ commands: [PostgreSQLCommand]) throws(PostgreSQLLoss) {
        for answer in try exchange(commands) {
            switch answer {
            case .rows, .done: continue
            case .failed, .skipped: throw PostgreSQLLoss("The connection to the database server cannot be used.")
            }
        }
    }

    private static let forUnlogged = [
        PostgreSQLCommand(
            """
            SELECT set_config('synchronous_commit', 'off', false) AS commits,
                set_config('default_transaction_read_only', 'off', false) AS reading
            """, isKept: false)
    ]

    /// First as the server is configured: that says how connections commit.
    private static let forOthers = [
        PostgreSQLCommand("RESET synchronous_commit", isKept: false),
        PostgreSQLCommand("SELECT \(PostgreSQLOpening.commits), \(PostgreSQLOpening.reading)", isKept: false),
    ]
}
#endif
