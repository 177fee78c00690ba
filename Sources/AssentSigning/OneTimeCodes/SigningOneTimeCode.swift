public import AssentCore
import AssentOTP
import AssentSigningProtocol
public import Foundation

/// A key of a container that makes one-time codes.
public struct SigningOneTimeKey: Sendable, Hashable, Identifiable {
    /// How its codes are made.
    public enum Kind: String, Sendable, Hashable {
        /// From the time (TOTP).
        case time
        /// From a counter (HOTP).
        case counter
        /// From a challenge that somebody else gives (OCRA).
        case challenge
    }

    /// Its name, which is unique in the container.
    public let label: String

    /// How its codes are made.
    public let kind: Kind

    /// The name.
    public var id: String { label }
}

/// A code that proves once that somebody has the container.
public struct SigningOneTimeCode: Sendable {
    /// The key's name.
    public let label: String

    /// The code.
    public let code: Secret

    /// When the next code takes its place, by this device's clock; `nil` for a code that does not come from the time.
    public let expiresAt: Date?
}

extension SigningContainer {
    /// The keys for one-time codes, sorted by label.
    ///
    /// - Throws: ``SigningError`` with code `secureData`.
    public func oneTimeKeys() async throws -> [SigningOneTimeKey] {
        try await OneTimeCodes(parts: device.parts).keys(of: record)
    }

    /// Makes a code. Nothing is sent.
    ///
    /// A code from the time is good only where this device's clock is right within about half a minute. A code from a
    /// counter takes that counter's value for good.
    ///
    /// - Parameters:
    ///   - label: the key's name; without one the container's only key.
    ///   - challenge: what somebody else asks, for a key that answers challenges.
    /// - Returns: the code.
    /// - Throws: ``SigningError`` with code `invalidArgument` when there is no such key, or it takes a challenge that
    ///   is not given, or none and one is given; `credentialsLost` when the container was deleted.
    public func oneTimeCode(label: String? = nil, challenge: String? = nil) async throws -> SigningOneTimeCode {
        try await OneTimeCodes(parts: device.parts).code(record, label: label, challenge: challenge)
    }
}
