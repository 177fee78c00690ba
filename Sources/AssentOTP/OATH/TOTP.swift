public import AssentCore
public import Foundation

/// Time-based one-time passwords (RFC 6238).
///
/// A server accepts each step once, and stores it in the same step in which it accepts it:
///
/// ```swift
/// let totp = try TOTP(secret: secret)
/// guard let step = totp.matchingStep(typed, at: clock.now, after: lastStep) else { throw Refused() }
/// ```
public struct TOTP: Sendable {
    /// How many seconds a time step may have.
    public static let allowedPeriods = 1...300

    /// The codes as a function of the time step.
    public let hotp: HOTP

    /// Seconds of a time step.
    public let period: Int

    /// When time step 0 begins (`T0`).
    public let start: Date

    /// A generator.
    ///
    /// - Throws: ``OTPError`` with `invalidSecret`, `invalidDigits`, or `invalidPeriod` outside of ``allowedPeriods``.
    public init(
        secret: Secret, algorithm: OTPAlgorithm = .sha1, digits: Int = 6, period: Int = 30,
        start: Date = Date(timeIntervalSince1970: 0)
    ) throws(OTPError) {
        guard Self.allowedPeriods.contains(period) else {
            throw OTPError(.invalidPeriod, "A time step has 1 to 300 seconds, not \(period).")
        }
        hotp = try HOTP(secret: secret, algorithm: algorithm, digits: digits)
        self.period = period
        self.start = start
    }

    /// The time step at a time; 0 for times before ``start``.
    public func step(at time: Date) -> Int64 {
        let steps = (time.timeIntervalSince(start) / Double(period)).rounded(.down)
        // Far outside of any calendar, but inside of Int64.
        return Int64(min(max(steps, 0), 1e15))
    }

    /// The code at a time.
    public func code(at time: Date) -> String {
        hotp.code(counter: UInt64(step(at: time)))
    }

    /// When the time step at a time ends.
    public func end(ofStepAt time: Date) -> Date {
        start + Double(step(at: time) + 1) * Double(period)
    }

    /// The time step that `code` belongs to, if it is near `time` and newer than the last one that was accepted.
    ///
    /// All steps of the window are computed and compared, in constant time, whichever fits. Anyone who accepts the
    /// result must store it as the last accepted step in the same step, so that a code works once (RFC 6238 §5.2).
    ///
    /// - Parameters:
    ///   - code: what the user typed.
    ///   - time: now.
    ///   - window: how many steps before and after now are good; at most 10.
    ///   - lastAcceptedStep: the step of the last code that was accepted.
    /// - Returns: the newest step that fits, or `nil` when none does.
    public func matchingStep(
        _ code: String, at time: Date, window: Int = 1, after lastAcceptedStep: Int64? = nil
    ) -> Int64? {
        let now = step(at: time)
        let width = Int64(min(max(window, 0), 10))
        var found: Int64?
        for step in (now - width)...(now + width) {
            let matches = ConstantTime.equal(hotp.code(counter: UInt64(max(step, 0))), code)
            let isNew = lastAcceptedStep.map { step > $0 } ?? true
            if matches, isNew, step >= 0 { found = step }
        }
        return found
    }
}
