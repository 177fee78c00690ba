public import AssentCore
import Crypto
public import Foundation

/// Challenge-response and signature codes (RFC 6287).
///
/// ```swift
/// let ocra = try OCRA(suite: OCRASuite("OCRA-1:HOTP-SHA256-8:QN08"), secret: secret)
/// let isRight = try ocra.matches(typed, .init(challenges: [challenge]))
/// ```
public struct OCRA: Sendable {
    /// What goes in besides the secret. Exactly what the suite names must be given.
    public struct Input: Sendable {
        /// The challenges: one, or for mutual authentication both in the order that the side computing uses.
        public var challenges: [String]

        /// The counter.
        public var counter: UInt64?

        /// The PIN itself; its hash goes in.
        public var pin: Secret?

        /// The session information.
        public var session: [UInt8]?

        /// The time.
        public var time: Date?

        /// The inputs for one computation.
        public init(
            challenges: [String], counter: UInt64? = nil, pin: Secret? = nil, session: [UInt8]? = nil,
            time: Date? = nil
        ) {
            self.challenges = challenges
            self.counter = counter
            self.pin = pin
            self.session = session
            self.time = time
        }
    }

    private static let challengeBytes = 128

    /// What is computed.
    public let suite: OCRASuite

    /// The shared secret.
    public let secret: Secret

    /// A generator.
    ///
    /// - Throws: ``OTPError`` with `invalidSecret` when `secret` is empty or has more than 1024 bytes.
    public init(suite: OCRASuite, secret: Secret) throws(OTPError) {
        guard !secret.isEmpty, secret.count <= HOTP.secretLimit else { throw OTPError(.invalidSecret) }
        self.suite = suite
        self.secret = secret
    }

    /// The response to `input`.
    ///
    /// - Throws: ``OTPError`` with `invalidInput` when something that the suite names is absent or has the wrong form,
    ///   or something is there that it does not name.
    public func code(_ input: Input) throws(OTPError) -> String {
        let code = suite.algorithm.hmac(try message(input), key: secret)
        return suite.digits == 0 ? Hex.encode(code) : truncated(code, digits: suite.digits)
    }

    /// Whether `code` is the response to `input`, compared in constant time.
    ///
    /// - Throws: ``OTPError`` with `invalidInput`, as ``code(_:)``.
    public func matches(_ code: String, _ input: Input) throws(OTPError) -> Bool {
        ConstantTime.equal(try self.code(input), code)
    }

    private func message(_ input: Input) throws(OTPError) -> [UInt8] {
        guard suite.usesCounter == (input.counter != nil), (suite.pinAlgorithm != nil) == (input.pin != nil),
            (suite.sessionLength != nil) == (input.session != nil), (suite.period != nil) == (input.time != nil)
        else {
            throw OTPError(.invalidInput, "The suite \(suite) takes other inputs than those that were given.")
        }
        var message = Array(suite.description.utf8) + [0]
        if let counter = input.counter { message += bigEndian(counter) }
        message += try challenge(input.challenges)
        if let algorithm = suite.pinAlgorithm, let pin = input.pin { message += Self.hash(pin, algorithm) }
        if let length = suite.sessionLength, let session = input.session {
            guard session.count <= length else {
                throw OTPError(.invalidInput, "The session information has more than \(length) bytes.")
            }
            message += [UInt8](repeating: 0, count: length - session.count) + session
        }
        if let period = suite.period, let time = input.time {
            let steps = (time.timeIntervalSince1970 / Double(period)).rounded(.down)
            message += bigEndian(UInt64(min(max(steps, 0), 1e15)))
        }
        return message
    }

    /// The challenges as 128 bytes: left-justified, zeros after (RFC 6287 §5.1).
    private func challenge(_ challenges: [String]) throws(OTPError) -> [UInt8] {
        guard (1...2).contains(challenges.count),
            challenges.allSatisfy({ (1...suite.challengeLength).contains($0.utf8.count) })
        else {
            throw OTPError(
                .invalidInput,
                "The suite \(suite) takes one or two challenges of at most \(suite.challengeLength) characters.")
        }
        let characters = challenges.flatMap { Array($0.utf8) }
        let bytes: [UInt8]?
        switch suite.challengeFormat {
        case .alphanumeric: bytes = characters.allSatisfy(\.isASCIIAlphanumeric) ? characters : nil
        case .hexadecimal: bytes = Self.leftJustified(hex: String(decoding: characters, as: UTF8.self))
        case .numeric: bytes = Self.hexadecimal(decimal: characters).flatMap(Self.leftJustified(hex:))
        }
        guard let bytes, bytes.count <= Self.challengeBytes else {
            throw OTPError(.invalidInput, "The challenge has characters that the suite \(suite) does not allow.")
        }
        return bytes + [UInt8](repeating: 0, count: Self.challengeBytes - bytes.count)
    }

    private static func leftJustified(hex: String) -> [UInt8]? {
        Hex.decode(hex.utf8.count.isMultiple(of: 2) ? hex : hex + "0")
    }

    /// A decimal number of any length in hexadecimal digits without leading zeros. RFC 6287's numeric challenges are
    /// encoded this way.
    private static func hexadecimal(decimal characters: [UInt8]) -> String? {
        var digits: [UInt8] = [0]
        for character in characters {
            guard character >= UInt8(ascii: "0"), character <= UInt8(ascii: "9") else { return nil }
            var carry = Int(character - UInt8(ascii: "0"))
            for index in digits.indices.reversed() {
                let value = Int(digits[index]) * 10 + carry
                digits[index] = UInt8(value % 16)
                carry = value / 16
            }
            if carry > 0 { digits.insert(UInt8(carry), at: 0) }
        }
        return digits.map { String($0, radix: 16) }.joined()
    }

    private static func hash(_ pin: Secret, _ algorithm: OTPAlgorithm) -> [UInt8] {
        let bytes = pin.revealBytes()
        return switch algorithm {
        case .sha1: Array(Insecure.SHA1.hash(data: bytes))
        case .sha256: Array(SHA256.hash(data: bytes))
        case .sha512: Array(SHA512.hash(data: bytes))
        }
    }
}
