import AssentCore
import Foundation

/// Which of several services is asked next: a value without I/O, which is told what became of each attempt.
///
/// A service that could not be connected to several times in a row is left out for a while. Then one request tries it,
/// and the others only after that succeeded. One that fails its checks is left out until a check succeeds. Left out
/// means asked last, not never: when nothing else can be reached, an attempt costs nothing, since nothing was sent yet.
struct UpstreamPool: Sendable, Hashable {
    /// When a service is left out, and for how long.
    struct Rules: Sendable, Hashable {
        /// Connections that fail in a row.
        var failures = 3
        /// Seconds until one request tries it again.
        var pause: TimeInterval = 10
        /// Checks that fail in a row.
        var failedChecks = 2
        /// Seconds between two checks; `nil` without checks.
        var checkEvery: TimeInterval?
    }

    /// What became of an attempt.
    enum Event: Sendable, Hashable, CaseIterable {
        /// A connection was there, whatever was answered.
        case reached
        /// There was no connection.
        case notReached
        /// A check was answered as it should be.
        case checkPassed
        /// A check was not.
        case checkFailed
    }

    /// What an event has changed, for the log.
    enum Change: Sendable, Hashable {
        case leftOut
        case backAgain
    }

    fileprivate struct Member: Hashable {
        var failures = 0
        var pause: WaitingTime?
        var failedChecks = 0
        var isUnwell = false
        /// How long it is not asked again whether it is well.
        var checked: WaitingTime?

        var isInUse: Bool { pause == nil && !isUnwell }
    }

    private let rules: Rules
    private var members: [Member]
    private var turn = 0

    /// Every number of services that a route can have divides it, so that the turns go round evenly.
    private static let turns = 840

    /// Services, of which nothing bad is known yet.
    init(count: Int, rules: Rules = Rules()) {
        self.rules = rules
        members = Array(repeating: Member(), count: max(0, count))
    }

    /// All services in the order in which a request tries them: one whose pause is over, those in use by turns, the
    /// others.
    mutating func order(at now: Date) -> [Int] {
        let trial = members.indices.first { index in
            !members[index].isUnwell && members[index].pause?.isOver(at: now) == true
        }
        let inUse = members.indices.filter { members[$0].isInUse }
        let others = members.indices.filter { !members[$0].isInUse && $0 != trial }
        // The next request does not wait for the same attempt, and one that is never heard of blocks nothing.
        if let trial { members[trial].pause = WaitingTime(rules.pause, from: now) }
        let first = inUse.isEmpty ? 0 : turn % inUse.count
        turn = (turn + 1) % Self.turns
        var order = trial.map { [$0] } ?? []
        order += inUse[first...]
        order += inUse[..<first]
        order += others.filter { !members[$0].isUnwell }
        order += others.filter { members[$0].isUnwell }
        return order
    }

    /// Notes what became of an attempt at one of the services.
    mutating func note(_ event: Event, of index: Int, at now: Date) -> Change? {
        guard members.indices.contains(index) else { return nil }
        let wasInUse = members[index].isInUse
        members[index].note(event, rules, at: now)
        switch (wasInUse, members[index].isInUse) {
        case (true, false): return .leftOut
        case (false, true): return .backAgain
        default: return nil
        }
    }

    /// The services that are to be asked now whether they are well. Each is then asked again after the interval.
    mutating func due(at now: Date) -> [Int] {
        guard let interval = rules.checkEvery else { return [] }
        let due = members.indices.filter { members[$0].checked?.isOver(at: now) ?? true }
        for index in due { members[index].checked = WaitingTime(interval, from: now) }
        return due
    }
}

extension UpstreamPool.Member {
    fileprivate mutating func note(_ event: UpstreamPool.Event, _ rules: UpstreamPool.Rules, at now: Date) {
        switch event {
        case .reached:
            failures = 0
            pause = nil
        case .notReached:
            failures = min(failures + 1, rules.failures)
            if failures == rules.failures { pause = WaitingTime(rules.pause, from: now) }
        case .checkPassed:
            (failures, failedChecks) = (0, 0)
            (pause, isUnwell) = (nil, false)
        case .checkFailed:
            failedChecks = min(failedChecks + 1, rules.failedChecks)
            isUnwell = isUnwell || failedChecks == rules.failedChecks
        }
    }
}
