import AssentCore
import Foundation
import Logging
import ServiceLifecycle
import X509

/// Says in the log that the server's certificate expires, once a day. A running server shows the one that it has read
/// at its start, so a renewed file alone helps nobody.
final class CertificateWatch: Sendable {
    /// What is said, and how urgent it is.
    struct Warning: Sendable, Equatable {
        let level: Logger.Level
        let text: String
    }

    private static let day: TimeInterval = 86_400

    /// Seconds between two looks of a server that has nothing else to look at: a machine that was asleep is late by no
    /// more than that.
    private static let interval: TimeInterval = 3600

    private let begin: Date
    private let end: Date
    /// Seconds before its end from which on it is a warning, and from which on it is an error: of one that is valid for
    /// days alone, a part of them.
    private let (warned, urgent): (TimeInterval, TimeInterval)
    private let isGenerated: Bool
    private let clock: any WallClock
    private let logger: Logger
    private let pause = Locked<WaitingTime?>(nil)

    /// A watch of what clients see.
    ///
    /// - Parameters:
    ///   - credentials: have the certificate.
    ///   - isGenerated: whether a start makes another one when it is old.
    ///   - clock: where the time comes from.
    ///   - logger: is told.
    /// - Throws: an error of the certificate's encoding.
    init(_ credentials: ServerCredentials, isGenerated: Bool, clock: any WallClock, logger: Logger) throws {
        let leaf = try credentials.leaf
        begin = leaf?.notValidBefore ?? .distantPast
        end = leaf?.notValidAfter ?? .distantFuture
        let life = end.timeIntervalSince(begin)
        (warned, urgent) = (min(30 * Self.day, life / 2), min(3 * Self.day, life / 10))
        self.isGenerated = isGenerated
        self.clock = clock
        self.logger = logger
    }

    /// What is to be said about the certificate now; `nil` while it is valid for long enough.
    var warning: Warning? {
        let now = clock.now
        guard begin <= now else {
            return Warning(level: .warning, text: "the certificate is not valid yet: check the clock")
        }
        let left = end.timeIntervalSince(now)
        guard !isGenerated else {
            // A start makes another one in the last day, and not before.
            guard left <= Self.day else { return nil }
            let state = left > 0 ? "expires within a day" : "has expired"
            return Warning(
                level: .warning,
                text: "the generated certificate \(state): start the server again, which makes another one")
        }
        guard left <= warned else { return nil }
        let days = Int(abs(left) / Self.day)
        let time = days == 1 ? "1 day" : "\(days) days"
        let state =
            left > 0
            ? days == 0 ? "expires within a day" : "expires in \(time)"
            : "has expired\(days == 0 ? "" : " \(time) ago"), and clients refuse it"
        return Warning(
            level: left <= urgent ? .error : .warning,
            text: "the certificate \(state): renew it, and start the server again")
    }

    /// Logs the warning, if there is one, unless it did so less than a day ago.
    func look() {
        guard let warning else { return }
        let now = clock.now
        let isDue = pause.withLock { pause -> Bool in
            guard pause?.isOver(at: now) ?? true else { return false }
            pause = WaitingTime(Self.day, from: now)
            return true
        }
        guard isDue else { return }
        logger.log(level: warning.level, "\(warning.text)", metadata: ["expires": "\(end)"])
    }
}

extension CertificateWatch: Service {
    /// Looks until the service group shuts down.
    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                self.look()
                let next = self.clock.now.addingTimeInterval(Self.interval)
                do { try await self.clock.sleep(until: next) } catch { return }
            }
        }
    }
}
