public import AssentCore

/// How this installation of an app becomes a client of its own: by registering at the authorization server (RFC 7591)
/// with a key that never leaves its provider.
///
/// The id in ``TokenConfiguration/clientID`` is then the app's. The installation gets its own before the first tokens
/// are asked for, and authenticates with its key (`private_key_jwt`).
public struct RegistrationConfiguration: Sendable {
    /// Makes and holds the key: in software, in a PKCS#11 token, in a TPM. Give it the provider that guards the vault.
    public let keys: any KeyProvider

    /// What a new key signs with: ES256, PS256 or EdDSA. Every provider knows ES256.
    public var algorithm = SignatureAlgorithm.es256

    /// What lets an installation register, if the app demands it: the operator of the server has made it. It is needed
    /// until the installation has registered, and not for changes.
    public var initialAccessToken: Secret?

    /// A signed statement about the app (RFC 7591 §2.3), if the app demands one. A change of the redirect URI or the
    /// scopes needs it again.
    public var softwareStatement: Secret?

    /// What the server's operator reads in the list of installations, for example a machine's name.
    public var clientName: String?

    /// The app's version. The server's operator may serve some versions only, so an app that was updated tells the
    /// server before its next tokens.
    public var softwareVersion: String?

    /// On which platform the app runs, for the list of installations; `nil` to say nothing.
    public var platform: String? = HostPlatform.name

    /// What the user's device is called, for the same list. No name is sent unless the app sets it.
    public var deviceName: String?

    /// What access the installation itself may ask for, which is registered beside the user's scopes; see
    /// ``DeviceTokens``.
    public var deviceScopes: [String] = []

    /// Is asked before a new registration, and throws where the app may make none.
    package var admit: (@Sendable () async throws(HTTPTransportError) -> Void)?

    /// A configuration.
    ///
    /// - Parameters:
    ///   - keys: makes and holds the key.
    ///   - initialAccessToken: what lets an installation register.
    ///   - softwareStatement: a signed statement about the app.
    ///   - clientName: what the server's operator reads in the list of installations.
    public init(
        keys: any KeyProvider, initialAccessToken: Secret? = nil, softwareStatement: Secret? = nil,
        clientName: String? = nil
    ) {
        self.keys = keys
        self.initialAccessToken = initialAccessToken
        self.softwareStatement = softwareStatement
        self.clientName = clientName
    }
}
