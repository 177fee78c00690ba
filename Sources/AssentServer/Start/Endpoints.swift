public import AssentCore

/// What clients of a running server must know.
public struct Endpoints: Sendable {
    /// The server's URL, for example `https://localhost:8443/am`.
    public let server: String

    /// The gateway's URL, when there is a gateway.
    public let gateway: String?

    /// The PEM file of the CA to trust, when it is a generated one.
    public let authorityFile: String?

    /// The pins of the certificate's key and of its issuer's; one alone when the issuer's certificate is not in the
    /// chain's file.
    public let pins: [Pin]

    /// The name of the session cookie.
    public let cookieName: String

    /// The accounts that this start has made with random credentials. Show them to the operator once.
    public let accounts: [GeneratedAccount]

    /// The file with the one-time token that makes the first administrator, while there is none.
    public let bootstrapFile: String?
}
