import AssentCore
import AssentEnforcement
import Logging

/// What became of forwarded requests, with a memory for each realm: what the engine of one does not hear keeps nothing
/// of another waiting, and drives nothing of it out. Half of the room is the realms' own, in equal parts. The other
/// half is for those that need more, so that many quiet realms take little from a busy one.
struct RealmOutcomes: Sendable {
    private let reports: [String: OutcomeReports]

    /// Empty memories.
    ///
    /// - Parameters:
    ///   - realms: the realms, as the file has them.
    ///   - capacity: how many reports are kept at most, and not less than one for each realm.
    ///   - clock: where the time comes from.
    ///   - logger: where they write.
    init(_ realms: some Sequence<String>, capacity: Int, clock: any WallClock, logger: Logger) {
        let names = Set(realms)
        let own = max(1, capacity / 2 / max(1, names.count))
        let shared = SharedRoom(capacity - own * names.count)
        var reports: [String: OutcomeReports] = [:]
        for name in names {
            reports[name] = OutcomeReports(capacity: own, sharing: shared, clock: clock, logger: logger)
        }
        self.reports = reports
    }

    /// The memory of a realm; `nil` for a realm that is not in the file.
    subscript(realm: String) -> OutcomeReports? { reports[realm] }

    /// How many the engines have not heard of.
    var count: Int {
        get async {
            var count = 0
            for one in reports.values { count += await one.count }
            return count
        }
    }

    /// Whether one of them waits before it tries again.
    var isPausing: Bool {
        get async {
            for one in reports.values {
                if await one.isPausing { return true }
            }
            return false
        }
    }

    /// Sends what there is, and what comes, until ``finish()``.
    func run() async {
        await withTaskGroup(of: Void.self) { group in
            for one in reports.values { group.addTask { await one.run() } }
        }
    }

    /// Ends ``run()`` after one more try for each.
    func finish() async {
        for one in reports.values { await one.finish() }
    }
}
