#if PostgreSQL && os(Linux)
/// Until when calls wait for a connection, with one alarm for all of them: where more calls come than there are
/// connections, nearly each one waits, and a timer of its own would cost more than sending its statement.
struct PostgreSQLWaits: Sendable {
    /// When each call that has waited gives up, if it waits then. Calls that have their answer are not among them.
    private var ends: [UInt64: ContinuousClock.Instant] = [:]
    private var isAlarmSet = false

    /// A call begins to wait, perhaps once more: for as long as `limit` from now on, unless an earlier wait of it ends
    /// before.
    ///
    /// - Returns: when to ring; `nil` where an alarm is set that rings no later.
    mutating func begin(
        _ call: UInt64, now: ContinuousClock.Instant, limit: Duration
    ) -> ContinuousClock.Instant? {
        if ends[call].map({ $0 > now }) != true { ends[call] = now + limit }
        guard !isAlarmSet else { return nil }
        isAlarmSet = true
        return ends[call]
    }

    /// A call has its answer.
    mutating func forget(_ call: UInt64) { ends[call] = nil }

    /// The alarm has rung.
    ///
    /// - Returns: the calls whose time has ended, waiting or not, and when to ring again; `nil` when no call needs
    ///   that.
    mutating func ring(now: ContinuousClock.Instant) -> (over: [UInt64], next: ContinuousClock.Instant?) {
        let over = ends.filter { $0.value <= now }.map(\.key).sorted()
        for call in over { ends[call] = nil }
        let next = ends.values.min()
        isAlarmSet = next != nil
        return (over, next)
    }
}
#endif
