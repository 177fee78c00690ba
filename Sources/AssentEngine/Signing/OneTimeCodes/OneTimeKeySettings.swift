import AssentCore
package import AssentOTP
import AssentSigningProtocol

/// A key for one-time codes that each new device gets. Its secret is the server's.
package struct OneTimeKeySettings: Sendable, Hashable {
    /// How a code is made.
    package enum Kind: Sendable, Hashable {
        /// TOTP with a time step of so many seconds.
        case time(period: Int)
        /// HOTP.
        case counter
        /// OCRA: the answer to a challenge.
        case challenge(OCRASuite)
    }

    package let label: String
    package let kind: Kind
    /// The hash under the HMAC; for OCRA the suite says it.
    package var algorithm = OTPAlgorithm.sha1
    /// How many digits a code has; for OCRA the suite says it.
    package var digits = 6

    /// Bytes of a secret: as many as the longest hash of them has.
    private static let secretBytes = 32

    package init(label: String, kind: Kind) {
        (self.label, self.kind) = (label, kind)
    }

    /// What is wrong, one sentence each; empty when nothing is.
    func faults() -> [String] {
        var faults: [String] = []
        if !SigningLabel.isValid(label) { faults.append("a label has 1 to 32 of a–z, 0–9 and -") }
        if !HOTP.allowedDigits.contains(digits) { faults.append("\(label): a code has 6 to 10 digits") }
        switch kind {
        case .time(let period) where !TOTP.allowedPeriods.contains(period):
            faults.append("\(label): a time step has 1 to 300 seconds")
        case .challenge(let suite) where suite.pinAlgorithm != nil || suite.sessionLength != nil:
            faults.append("\(label): the suite must take no PIN and no session information")
        default: break
        }
        return faults
    }

    /// A new key as the device gets it: an `otpauth` URI, with the container's number in the place of the user's name
    /// (`account`) when it would be too long, or the name could be markup, which is not read out of a URI.
    ///
    /// - Throws: `OTPError` for settings that ``faults()`` names.
    func makeURI(issuer: String, account: String, serial: String, random: any RandomSource) throws -> Secret {
        let secret = Secret(bytes: random.bytes(Self.secretBytes))
        if let named = try? uri(issuer: issuer, account: account, secret: secret),
            named.count <= OneTimeKey.uriLimit, isReadable(named)
        {
            return named
        }
        return try uri(issuer: issuer, account: serial, secret: secret)
    }

    private func isReadable(_ uri: Secret) -> Bool {
        switch kind {
        case .time, .counter: (try? OTPAuthURI(uri.reveal())) != nil
        case .challenge: (try? OCRAAuthURI(uri.reveal())) != nil
        }
    }

    private func uri(issuer: String, account: String, secret: Secret) throws -> Secret {
        let moving: OTPAuthURI.Moving
        switch kind {
        case .time(let period): moving = .time(period: period)
        case .counter: moving = .counter(0)
        case .challenge(let suite):
            return try OCRAAuthURI(issuer: issuer, account: account, secret: secret, suite: suite).uri()
        }
        return try OTPAuthURI(
            issuer: issuer, account: account, secret: secret, moving: moving, algorithm: algorithm, digits: digits
        ).uri()
    }
}
