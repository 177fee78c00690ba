public import AssentCore
import AssentEnforcement
import Foundation
public import Logging
public import ServiceLifecycle

/// Tells the server what became of approved requests: again and again, where it has not heard it the first time. What
/// waits is in memory alone, and bounded.
///
/// Each ``PolicyMiddleware`` has one of its own. One that is also a service of the application tells what is left when
/// that stops:
///
/// ```swift
/// let reporting = OutcomeReporting()
/// let protected = try PolicyMiddleware<BasicEnforcedContext>(
///     policies, origin: "https://pay.bank.example", binding: .json, reporting: reporting)
/// router.group("transfers").add(middleware: protected).post { _, context in
///     try context.allowed().transactionID ?? "nothing"
/// }
/// let application = Application(router: router, services: [reporting])
/// ```
public actor OutcomeReporting: Service {
    private let reports: OutcomeReports
    private let drainSeconds: TimeInterval
    private let clock: any WallClock
    private let logger: Logger
    private var running: Task<Void, Never>?
    private var isFinished = false

    /// Nothing to tell yet.
    ///
    /// - Parameters:
    ///   - capacity: how many outcomes wait at most; the oldest one goes then, and is unknown to the server.
    ///   - drainSeconds: how long the server is told what is left when the application stops.
    ///   - clock: measures the pauses: one second, and twice as long after each try, up to half a minute.
    ///   - logger: where it says what the server has not heard.
    public init(
        capacity: Int = 10_000, drainSeconds: Int = 5, clock: any WallClock = SystemClock(),
        logger: Logger = Logger(label: "assent.enforcement", factory: { _ in SwiftLogNoOpLogHandler() })
    ) {
        reports = OutcomeReports(capacity: capacity, clock: clock, logger: logger)
        self.drainSeconds = TimeInterval(max(0, drainSeconds))
        self.clock = clock
        self.logger = logger
    }

    deinit { running?.cancel() }

    /// Waits until the application stops, and then tells the server once more what it has not heard.
    public func run() async throws {
        // It throws when the stop is cut short: nobody waits for the server then.
        try? await gracefulShutdown()
        await finish()
    }

    /// Tells the server what became of a request. What it does not hear at once it is told later.
    func tell(_ report: OutcomeReports.Report) async {
        do throws(EnforcementError) {
            try await report.send()
        } catch {
            let metadata: Logger.Metadata = ["transaction": "\(report.transaction)", "error": "\(error)"]
            guard !error.isLasting else {
                logger.error("an outcome could not be reported", metadata: metadata)
                return
            }
            logger.warning("the server has not heard yet what became of a request", metadata: metadata)
            await add(report)
        }
    }

    /// Tells the server what became of a request, without a wait for that.
    func add(_ report: OutcomeReports.Report) async {
        guard !isFinished else {
            logger.error(
                "an outcome is forgotten, since the service stops: the server will say that it is unknown",
                metadata: ["transaction": "\(report.transaction)"])
            return
        }
        // It is known here before anything waits, so that a stop ends it.
        if running == nil { running = Task { [reports] in await reports.run() } }
        await reports.add(report)
    }

    /// Reports what is left once more, for `drainSeconds` at most.
    func finish() async {
        isFinished = true
        await reports.finish()
        guard let running else { return }
        let end = clock.now.addingTimeInterval(drainSeconds)
        let limit = Task { [clock] in
            guard (try? await clock.sleep(until: end)) != nil else { return }
            running.cancel()
        }
        await withTaskCancellationHandler {
            await running.value
        } onCancel: {
            running.cancel()
        }
        limit.cancel()
    }
}
