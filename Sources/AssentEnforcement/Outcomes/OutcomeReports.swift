package import AssentCore
import Foundation
package import Logging

/// What became of approved requests of one realm, until its engine has heard of it. It is kept in memory alone: what a
/// crash takes away is unknown at the engine after ten minutes.
package actor OutcomeReports {
    /// What became of one request, and how the engine hears of it.
    package struct Report: Sendable {
        package let transaction: String
        let mayBeEarly: WaitingTime?
        package let send: @Sendable () async throws(EnforcementError) -> Void

        /// A report.
        ///
        /// - Parameters:
        ///   - transaction: the transaction that was taken for the request.
        ///   - mayBeEarly: how long the engine may not know the transaction as taken though it comes to be: the
        ///     question that takes it is still on its way.
        ///   - send: tells the engine.
        package init(
            _ transaction: String, mayBeEarly: WaitingTime? = nil,
            send: @escaping @Sendable () async throws(EnforcementError) -> Void
        ) {
            self.transaction = transaction
            self.mayBeEarly = mayBeEarly
            self.send = send
        }

        /// A statement to an engine that is asked on Assent's own wire.
        package init(_ statement: OutcomeStatement, to engine: EnforcementClient, mayBeEarly: WaitingTime? = nil) {
            self.init(statement.transaction, mayBeEarly: mayBeEarly) { () async throws(EnforcementError) in
                try await engine.report(statement)
            }
        }
    }

    /// How many are kept, unless something else is said; then the oldest one goes.
    package static let usualCapacity = 10_000

    /// How many are sent at once.
    private static let atOnce = 16

    /// The longest time between two tries, in seconds.
    private static let longestPause: TimeInterval = 30

    private let capacity: Int
    private let shared: SharedRoom?
    private let clock: any WallClock
    private let logger: Logger
    private let wakes: AsyncStream<Void>
    private let wake: AsyncStream<Void>.Continuation
    private var waiting: [Report] = []
    /// How many of the first in `waiting` are being sent, and are dropped neither way.
    private var sending = 0
    /// How many of `waiting` have room that is shared with other memories.
    private var borrowed = 0
    private var pause: Task<Void, Never>?
    private var waitingTime: WaitingTime?
    private var isFinishing = false

    /// How a try to tell the engine ended.
    private enum Hearing {
        /// It was heard, or never will be.
        case over
        /// The engine knows no such transaction yet.
        case early
        /// The engine has not heard it.
        case failed
    }

    /// An empty memory. Nothing is sent before ``run()``. What does not fit into its own capacity has room in `shared`
    /// as long as there is any.
    package init(
        capacity: Int = OutcomeReports.usualCapacity, sharing shared: SharedRoom? = nil, clock: any WallClock,
        logger: Logger
    ) {
        self.capacity = max(1, capacity)
        self.shared = shared
        self.clock = clock
        self.logger = logger
        (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// How many the engine has not heard of.
    package var count: Int { waiting.count }

    /// Whether it waits before it tries again.
    package var isPausing: Bool { waitingTime?.isOver(at: clock.now) == false }

    /// Takes a report over. It is sent at once if the engine answers, else again and again.
    package func add(_ report: Report) {
        if waiting.count >= capacity + borrowed, shared?.take() == true {
            borrowed += 1
        } else if waiting.count >= capacity + borrowed, waiting.count > sending {
            let dropped = waiting.remove(at: sending)
            logger.error(
                "an outcome is forgotten, since too many wait for the engine: it will say that it is unknown",
                metadata: ["transaction": "\(dropped.transaction)"])
        }
        waiting.append(report)
        wake.yield()
    }

    /// Sends what there is, and what comes, until ``finish()``.
    package func run() async {
        for await _ in wakes { await sendAll() }
        // Once more, without waiting for an engine that does not answer.
        await sendAll()
        for report in waiting {
            logger.error(
                "the engine was not told what became of a request: it will say that it is unknown",
                metadata: ["transaction": "\(report.transaction)"])
        }
    }

    /// Ends ``run()`` after one more try.
    package func finish() {
        isFinishing = true
        pause?.cancel()
        wake.finish()
    }

    private func sendAll() async {
        var seconds: TimeInterval = 1
        var untried = waiting.count
        while !waiting.isEmpty, !Task.isCancelled {
            let batch = Array(waiting.prefix(Self.atOnce))
            sending = batch.count
            let (kept, isHeard) = await unheard(batch)
            // Behind the others: the engine may hear everything but these.
            waiting.removeFirst(sending)
            waiting += kept
            sending = 0
            giveRoomBack()
            untried -= batch.count
            guard !kept.isEmpty else {
                seconds = 1
                continue
            }
            guard !isFinishing else {
                guard untried > 0 else { return }
                continue
            }
            await sleep(seconds)
            // An engine that answers does not keep others waiting.
            seconds = isHeard ? 1 : min(seconds * 2, Self.longestPause)
        }
    }

    private func giveRoomBack() {
        let unneeded = borrowed - max(0, waiting.count - capacity)
        guard unneeded > 0 else { return }
        borrowed -= unneeded
        shared?.giveBack(unneeded)
    }

    private func sleep(_ seconds: TimeInterval) async {
        let time = WaitingTime(seconds, from: clock.now)
        let task = Task { [clock] in _ = try? await clock.sleep(until: time.end) }
        (pause, waitingTime) = (task, time)
        await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
        (pause, waitingTime) = (nil, nil)
    }

    /// Those that must be sent again, in their order, and whether the engine has answered all.
    private func unheard(_ batch: [Report]) async -> (kept: [Report], isHeard: Bool) {
        let now = clock.now
        return await withTaskGroup(of: (Int, Hearing).self) { [logger] group in
            for (index, report) in batch.enumerated() {
                group.addTask { (index, await Self.tell(report, at: now, logger: logger)) }
            }
            var hearings: [Int: Hearing] = [:]
            for await (index, hearing) in group { hearings[index] = hearing }
            return (
                batch.indices.filter { hearings[$0] != .over }.map { batch[$0] },
                !hearings.values.contains(.failed)
            )
        }
    }

    private static func tell(_ report: Report, at now: Date, logger: Logger) async -> Hearing {
        do throws(EnforcementError) {
            try await report.send()
            return .over
        } catch {
            let metadata: Logger.Metadata = [
                "transaction": "\(report.transaction)", "error": "\(error.code.rawValue)",
            ]
            guard error.isLasting else {
                logger.warning("the engine has not heard yet what became of a request", metadata: metadata)
                return .failed
            }
            guard error.status == 404, let time = report.mayBeEarly else {
                logger.error("the engine refuses what became of a request", metadata: metadata)
                return .over
            }
            guard time.isOver(at: now) else { return .early }
            logger.info("the transaction of a request that was not forwarded was not taken for it", metadata: metadata)
            return .over
        }
    }
}
