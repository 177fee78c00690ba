public import AssentCore

/// What an `otpauth` URI says: an account and its one-time passwords (the Key URI format, and what AM adds to it).
///
/// ```swift
/// let account = try OTPAuthURI(issuer: "Bank", account: "ana", secret: secret)
/// let shown = try account.uri()
/// ```
///
/// AM writes `otpauth://` for OATH alone and `mfauth://` for OATH with push in one; only the OATH part is read here.
public struct OTPAuthURI: Sendable {
    /// What makes a new code.
    public enum Moving: Hashable, Sendable {
        /// TOTP with a time step of so many seconds.
        case time(period: Int)
        /// HOTP; the next counter value.
        case counter(UInt64)
    }

    /// Who issued the account. AM's clients take the account's name when there is none.
    public var issuer: String

    /// The account's name at the issuer.
    public var account: String

    /// The shared secret.
    public var secret: Secret

    /// TOTP or HOTP.
    public var moving: Moving

    /// The hash under the HMAC.
    public var algorithm: OTPAlgorithm

    /// How many digits a code has.
    public var digits: Int

    /// AM's identifier of the user (`uid`).
    public var userID: String?

    /// AM's identifier of the device (`oid`).
    public var resourceID: String?

    /// AM's policies for the device that holds the account: an object by policy name.
    public var policies: JSONObject?

    /// An `https` or `http` URL of the issuer's logo.
    public var image: String?

    /// The logo's background colour as six hexadecimal digits.
    public var color: String?

    /// An account and its one-time passwords.
    ///
    /// - Throws: ``OTPError`` as ``TOTP`` or ``HOTP`` would, or `missingName` when both names are empty.
    public init(
        issuer: String, account: String, secret: Secret, moving: Moving = .time(period: 30),
        algorithm: OTPAlgorithm = .sha1, digits: Int = 6
    ) throws(OTPError) {
        guard !issuer.isEmpty || !account.isEmpty else { throw OTPError(.missingName) }
        self.issuer = issuer.isEmpty ? account : issuer
        self.account = account.isEmpty ? "Untitled" : account
        self.secret = secret
        self.moving = moving
        self.algorithm = algorithm
        self.digits = digits
        try check()
    }

    private func check() throws(OTPError) {
        switch moving {
        case .time(let period):
            _ = try TOTP(secret: secret, algorithm: algorithm, digits: digits, period: period)
        case .counter(let counter):
            _ = try HOTP(secret: secret, algorithm: algorithm, digits: digits)
            guard counter <= UInt64(Int64.max) else { throw OTPError(.invalidCounter) }
        }
        // A user may be called so; in the URI it is encoded. What a URI from elsewhere says is held to more.
        for name in [issuer, account] { try OTPAuthText.check(name, allowsMarkup: true) }
        for text in [userID ?? "", resourceID ?? "", image ?? "", color ?? ""] { try OTPAuthText.check(text) }
    }

    /// The generator, when this is TOTP.
    ///
    /// - Throws: ``OTPError`` with `invalidSecret`, `invalidDigits` or `invalidPeriod`.
    public func totp() throws(OTPError) -> TOTP? {
        guard case .time(let period) = moving else { return nil }
        return try TOTP(secret: secret, algorithm: algorithm, digits: digits, period: period)
    }

    /// The generator, when this is HOTP.
    ///
    /// - Throws: ``OTPError`` with `invalidSecret` or `invalidDigits`.
    public func hotp() throws(OTPError) -> HOTP? {
        guard case .counter = moving else { return nil }
        return try HOTP(secret: secret, algorithm: algorithm, digits: digits)
    }

    /// The `otpauth` URI, to be shown as a QR code once. It is a secret, because the account's is in it.
    ///
    /// What has its default value is left out, except HOTP's counter.
    /// - Throws: ``OTPError`` when a value is not allowed.
    public func uri() throws(OTPError) -> Secret {
        try check()
        var type = "totp"
        var parameters = [("secret", Base32.encode(secret.revealBytes())), ("issuer", issuer)]
        if algorithm != .sha1 { parameters.append(("algorithm", algorithm.rawValue)) }
        if digits != 6 { parameters.append(("digits", String(digits))) }
        switch moving {
        case .time(let period):
            if period != 30 { parameters.append(("period", String(period))) }
        case .counter(let counter):
            type = "hotp"
            parameters.append(("counter", String(counter)))
        }
        for (name, value) in [("uid", userID), ("oid", resourceID)] {
            if let value { parameters.append((name, Base64URL.encode(Array(value.utf8)))) }
        }
        if let policies {
            parameters.append(("policies", Base64URL.encode(JSONValue.object(policies).serializedBytes())))
        }
        if let image { parameters.append(("image", image)) }
        if let color { parameters.append(("b", color)) }
        let query = parameters.map { "\($0)=\(OTPAuthText.percentEncoded($1))" }.joined(separator: "&")
        let label = "\(OTPAuthText.percentEncoded(issuer)):\(OTPAuthText.percentEncoded(account))"
        let uri = "otpauth://\(type)/\(label)?\(query)"
        guard uri.utf8.count <= OTPAuthText.uriLimit else { throw OTPError.longURI }
        return Secret(uri)
    }
}
