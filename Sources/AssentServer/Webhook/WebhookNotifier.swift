import AssentCore
import AssentEngine
import Foundation
import Logging

/// Sends what concerns users' devices to the operator's service, which brings it to them. Messages wait in memory alone
/// and are given up after some attempts: a device hears the same when it asks, so a crash costs nobody a transaction.
actor WebhookNotifier: Notifier {
    /// How many wait, unless a test says otherwise; then the first of them goes.
    static let usualCapacity = 1000

    /// How many are sent at once, each over a connection of its own.
    static let atOnce = 8

    private let settings: WebhookSettings
    private let calls: OutboundCalls
    private let capacity: Int
    private let clock: any WallClock
    private let random: any RandomSource
    private let logger: Logger
    private let wakes: AsyncStream<Void>
    private let wake: AsyncStream<Void>.Continuation
    private var waiting: [WebhookMessage] = []
    private var alarm: Task<Void, Never>?

    /// Nothing is sent before ``run()``.
    init(
        _ settings: WebhookSettings, calls: OutboundCalls, capacity: Int = WebhookNotifier.usualCapacity,
        clock: any WallClock, random: any RandomSource = SystemRandom(), logger: Logger
    ) {
        self.settings = settings
        self.calls = calls
        self.capacity = capacity
        self.clock = clock
        self.random = random
        self.logger = logger
        (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// How many wait to be sent, for the first time or again.
    var count: Int { waiting.count }

    func notify(_ news: DeviceNews) { add(WebhookMessage(news, id: random.uuid())) }

    func notify(_ news: TransactionNews) { add(WebhookMessage(news, id: random.uuid(), at: clock.epochSeconds)) }

    private func add(_ message: WebhookMessage) {
        if waiting.count >= capacity {
            let dropped = waiting.removeFirst()
            logger.warning(
                "a message to the address of notify is dropped, since too many wait",
                metadata: ["message": "\(dropped.id)"])
        }
        waiting.append(message)
        wake.yield()
    }

    /// Sends what there is, and what comes, until ``finish()``.
    func run() async {
        for await _ in wakes {
            await sendDue()
            setAlarm()
        }
        alarm?.cancel()
        // What has come meanwhile. What fails is not due again so soon.
        await sendDue()
        guard !waiting.isEmpty else { return }
        logger.warning(
            "the server stops, and messages to the address of notify were not delivered",
            metadata: ["messages": "\(waiting.count)"])
    }

    /// Ends ``run()`` when each message that is due was tried once.
    func finish() { wake.finish() }

    private func sendDue() async {
        while !Task.isCancelled {
            let now = clock.now
            dropExpired(at: now)
            let batch = Array(waiting.filter { $0.isDue(at: now) }.prefix(Self.atOnce))
            guard !batch.isEmpty else { return }
            let ids = Set(batch.map(\.id))
            waiting.removeAll { ids.contains($0.id) }
            for (index, failure) in await failures(of: batch) { putBack(batch[index], after: failure) }
        }
    }

    /// If these were sent as well, a slow service would keep the others waiting until they have expired, too.
    private func dropExpired(at now: Date) {
        let count = waiting.count { $0.isExpired(at: now) }
        guard count > 0 else { return }
        waiting.removeAll { $0.isExpired(at: now) }
        logger.warning(
            "messages to the address of notify are given up, since their transactions have expired",
            metadata: ["messages": "\(count)"])
    }

    /// Has ``run()`` look again when the first of those that wait is due.
    private func setAlarm() {
        alarm?.cancel()
        guard let end = waiting.compactMap({ $0.pause?.end }).min() else { return }
        alarm = Task { [clock, wake] in
            do { try await clock.sleep(until: end) } catch { return }
            wake.yield()
        }
    }

    /// The message may have arrived all the same. Then its id tells the service that this is a repetition.
    private func putBack(_ message: WebhookMessage, after failure: OutboundCalls.Failure) {
        let metadata: Logger.Metadata = ["message": "\(message.id)", "error": "\(failure)"]
        guard let later = message.afterFailure(at: clock.now) else {
            return logger.warning("a message to the address of notify is given up", metadata: metadata)
        }
        logger.log(
            level: message.failures == 0 ? .warning : .info,
            "a message to the address of notify was not delivered, and is sent again", metadata: metadata)
        waiting.append(later)
    }

    /// Sends these at once. Says which have failed, by their place, and why.
    private func failures(of batch: [WebhookMessage]) async -> [(Int, OutboundCalls.Failure)] {
        let now = clock.epochSeconds
        return await withTaskGroup(of: (Int, OutboundCalls.Failure?).self) { [settings, calls] group in
            for (index, message) in batch.enumerated() {
                group.addTask { (index, await Self.send(message, to: settings, by: calls, at: now)) }
            }
            var failures: [(Int, OutboundCalls.Failure)] = []
            for await (index, failure) in group {
                if let failure { failures.append((index, failure)) }
            }
            return failures
        }
    }

    private static func send(
        _ message: WebhookMessage, to settings: WebhookSettings, by calls: OutboundCalls, at now: Int64
    ) async -> OutboundCalls.Failure? {
        do throws(OutboundCalls.Failure) {
            try await calls.post(
                message.body, to: settings.url, fields: message.fields(signedWith: settings.key, at: now))
            return nil
        } catch {
            return error
        }
    }
}

extension ServerConfiguration {
    /// What sends messages to the address of `notify`; `nil` when the file names none.
    ///
    /// - Throws: `NIOTransportError` when the authorities cannot be read.
    func webhookNotifier(
        clock: any WallClock, random: any RandomSource, logger: Logger
    ) throws -> WebhookNotifier? {
        guard let webhook else { return nil }
        let calls = try OutboundCalls(
            to: [webhook.url], settings: outbound, connections: WebhookNotifier.atOnce, clock: clock, logger: logger)
        return WebhookNotifier(webhook, calls: calls, clock: clock, random: random, logger: logger)
    }
}
