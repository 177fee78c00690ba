public import AssentCore

/// What an `otpauth://ocra/` URI says: an account that answers challenges (RFC 6287). The form is that of
/// ``OTPAuthURI``, with the suite's name as `suite`.
///
/// ```swift
/// let account = try OCRAAuthURI("otpauth://ocra/Bank:ana?secret=…&suite=OCRA-1%3AHOTP-SHA256-8%3AQN08")
/// let answer = try account.ocra().code(.init(challenges: [challenge]))
/// ```
public struct OCRAAuthURI: Sendable {
    /// Who issued the account.
    public let issuer: String

    /// The account's name at the issuer.
    public let account: String

    /// The shared secret.
    public let secret: Secret

    /// What is computed.
    public let suite: OCRASuite

    private static let scheme = "otpauth://ocra/"

    /// An account.
    ///
    /// - Throws: ``OTPError`` with `missingName`, `invalidSecret` or `invalidURI`.
    public init(issuer: String, account: String, secret: Secret, suite: OCRASuite) throws(OTPError) {
        guard !issuer.isEmpty || !account.isEmpty else { throw OTPError(.missingName) }
        _ = try OCRA(suite: suite, secret: secret)
        for text in [issuer, account] { try OTPAuthText.check(text) }
        self.issuer = issuer.isEmpty ? account : issuer
        self.account = account
        self.secret = secret
        self.suite = suite
    }

    /// Reads a URI. A parameter that occurs twice and characters that deceive on a screen are refused; unknown
    /// parameters are not looked at.
    ///
    /// - Throws: ``OTPError`` with the code of what is wrong.
    public init(_ uri: String) throws(OTPError) {
        guard uri.utf8.count <= OTPAuthText.uriLimit else { throw OTPError.longURI }
        guard uri.prefix(Self.scheme.count).lowercased() == Self.scheme else { throw OTPError(.wrongScheme) }
        let rest = uri.dropFirst(Self.scheme.count).prefix { $0 != "#" }
        let label = rest.prefix { $0 != "?" }
        let parameters = try OTPAuthURI.parameters(rest.dropFirst(label.count).dropFirst())
        guard let secret = parameters["secret"].flatMap({ Base32.decodeLeniently($0) }) else {
            throw OTPError(.invalidSecret, "The URI has no secret in base 32.")
        }
        var (issuer, account) = try OTPAuthURI.label(label)
        if let given = parameters["issuer"], !given.isEmpty { issuer = given }
        try self.init(
            issuer: issuer, account: account, secret: Secret(bytes: secret),
            suite: OCRASuite(parameters["suite"] ?? ""))
    }

    /// The generator.
    ///
    /// - Throws: ``OTPError`` with `invalidSecret`.
    public func ocra() throws(OTPError) -> OCRA { try OCRA(suite: suite, secret: secret) }

    /// The URI. It is a secret, because the account's is in it.
    ///
    /// - Throws: ``OTPError`` with `tooLarge`.
    public func uri() throws(OTPError) -> Secret {
        let parameters = [
            ("secret", Base32.encode(secret.revealBytes())), ("issuer", issuer), ("suite", suite.description),
        ]
        let query = parameters.map { "\($0)=\(OTPAuthText.percentEncoded($1))" }.joined(separator: "&")
        let label = "\(OTPAuthText.percentEncoded(issuer)):\(OTPAuthText.percentEncoded(account))"
        let uri = "\(Self.scheme)\(label)?\(query)"
        guard uri.utf8.count <= OTPAuthText.uriLimit else { throw OTPError.longURI }
        return Secret(uri)
    }
}
