import AssentCore

/// The settings of an OCRA computation, as their name tells them (RFC 6287 §6), for example
/// `OCRA-1:HOTP-SHA256-8:C-QN08-PSHA1`.
public struct OCRASuite: Hashable, Sendable, CustomStringConvertible {
    /// The form of a challenge (RFC 6287 §5.1).
    public enum ChallengeFormat: Character, Hashable, Sendable {
        /// Letters and digits.
        case alphanumeric = "A"
        /// Decimal digits.
        case numeric = "N"
        /// Hexadecimal digits.
        case hexadecimal = "H"
    }

    /// The suite's name.
    public let description: String

    /// The hash under the HMAC.
    public let algorithm: OTPAlgorithm

    /// How many digits a response has: 4 to 10, or 0 for the whole authentication code in hexadecimal.
    public let digits: Int

    /// Whether a counter goes in.
    public let usesCounter: Bool

    /// The form of a challenge.
    public let challengeFormat: ChallengeFormat

    /// The greatest length of one challenge, 4 to 64.
    public let challengeLength: Int

    /// The hash of the PIN that goes in, if one does.
    public let pinAlgorithm: OTPAlgorithm?

    /// The bytes of session information that go in, 1 to 512, if any do.
    public let sessionLength: Int?

    /// The seconds of a time step, if the time goes in.
    public let period: Int?

    /// Reads a suite's name.
    ///
    /// - Throws: ``OTPError`` with `invalidSuite`.
    public init(_ name: String) throws(OTPError) {
        let error = OTPError(.invalidSuite)
        guard name.utf8.count <= 64, name.utf8.allSatisfy(\.isASCIIVisible) else { throw error }
        let parts = name.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == "OCRA-1" else { throw error }

        let function = parts[1].split(separator: "-", omittingEmptySubsequences: false)
        guard function.count == 3, function[0] == "HOTP", let algorithm = OTPAlgorithm(rawValue: String(function[1])),
            let digits = Int(function[2]), String(digits) == function[2], digits == 0 || (4...10).contains(digits)
        else { throw error }

        var inputs = parts[2].split(separator: "-", omittingEmptySubsequences: false)[...]
        let usesCounter = inputs.first == "C"
        if usesCounter { inputs.removeFirst() }
        guard let question = inputs.popFirst(), question.utf8.count == 4, question.first == "Q",
            let format = question.dropFirst().first.flatMap(ChallengeFormat.init(rawValue:)),
            let length = Self.number(question.dropFirst(2)), (4...64).contains(length)
        else { throw error }

        var pin: OTPAlgorithm?
        var session: Int?
        var period: Int?
        if let input = inputs.first, input.first == "P" {
            guard let algorithm = OTPAlgorithm(rawValue: String(input.dropFirst())) else { throw error }
            pin = algorithm
            inputs.removeFirst()
        }
        if let input = inputs.first, input.first == "S" {
            guard input.utf8.count == 4, let length = Self.number(input.dropFirst()), (1...512).contains(length) else {
                throw error
            }
            session = length
            inputs.removeFirst()
        }
        if let input = inputs.first, input.first == "T" {
            guard let seconds = Self.seconds(input.dropFirst()) else { throw error }
            period = seconds
            inputs.removeFirst()
        }
        guard inputs.isEmpty else { throw error }

        description = name
        self.algorithm = algorithm
        self.digits = digits
        self.usesCounter = usesCounter
        challengeFormat = format
        challengeLength = length
        pinAlgorithm = pin
        sessionLength = session
        self.period = period
    }

    private static func number(_ text: Substring) -> Int? {
        guard text.utf8.allSatisfy(\.isASCIIDigit) else { return nil }
        return Int(text)
    }

    private static func seconds(_ text: Substring) -> Int? {
        guard let unit = text.last, let count = number(text.dropLast()), String(count) == text.dropLast() else {
            return nil
        }
        switch unit {
        case "S" where (1...59).contains(count): return count
        case "M" where (1...59).contains(count): return count * 60
        case "H" where (1...48).contains(count): return count * 3600
        default: return nil
        }
    }
}
