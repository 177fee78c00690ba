public import AssentCore

/// Counter-based one-time passwords (RFC 4226).
///
/// ```swift
/// let hotp = try HOTP(secret: secret)
/// guard let counter = hotp.matchingCounter(typed, from: next, lookAhead: 5) else { throw Refused() }
/// next = counter + 1
/// ```
public struct HOTP: Sendable {
    /// How many digits a code may have.
    public static let allowedDigits = 6...10

    static let secretLimit = 1024

    /// The shared secret.
    public let secret: Secret

    /// The hash under the HMAC.
    public let algorithm: OTPAlgorithm

    /// How many digits a code has.
    public let digits: Int

    /// A generator.
    ///
    /// - Throws: ``OTPError`` with `invalidSecret` when `secret` is empty or has more than 1024 bytes, or
    ///   `invalidDigits`.
    public init(secret: Secret, algorithm: OTPAlgorithm = .sha1, digits: Int = 6) throws(OTPError) {
        guard !secret.isEmpty, secret.count <= Self.secretLimit else { throw OTPError(.invalidSecret) }
        guard Self.allowedDigits.contains(digits) else {
            throw OTPError(.invalidDigits, "A code has 6 to 10 digits, not \(digits).")
        }
        self.secret = secret
        self.algorithm = algorithm
        self.digits = digits
    }

    /// The code for a counter value.
    public func code(counter: UInt64) -> String {
        truncated(algorithm.hmac(bigEndian(counter), key: secret), digits: digits)
    }

    /// The counter value that `code` belongs to, looking from `counter` to `lookAhead` values further (RFC 4226 §7.4).
    ///
    /// All of them are computed and compared, in constant time, whichever fits. Anyone who accepts the result must make
    /// the next counter the result plus one in the same step, so that the code works once.
    ///
    /// - Parameters:
    ///   - code: what the user typed.
    ///   - counter: the next counter value that was not used.
    ///   - lookAhead: how many unused codes may have been skipped; at most 100.
    /// - Returns: the counter value, or `nil` when none fits.
    public func matchingCounter(_ code: String, from counter: UInt64, lookAhead: Int) -> UInt64? {
        var found: UInt64?
        for distance in 0...UInt64(min(max(lookAhead, 0), 100)) {
            let (value, overflow) = counter.addingReportingOverflow(distance)
            if !overflow, ConstantTime.equal(self.code(counter: value), code) { found = value }
        }
        return found
    }
}
