public import AssentCore

/// How this client proves to the authorization server that it is this client, and which provider holds its key.
///
/// The proof goes along wherever the client speaks for itself: with codes, refreshes and revocations. A key of a
/// hardware provider never leaves it, so who copies the app's files is not this client.
public struct ClientAuthentication: Sendable {
    /// The client is public: it says its id and proves nothing.
    public static let none = ClientAuthentication(key: nil)

    /// The client signs an assertion for each request (`private_key_jwt`, OpenID Connect Core §9, RFC 7523 §3).
    ///
    /// The key is there already, and the server knows its public half: `assent clients key` makes it, or
    /// ``ClientKey/make(named:algorithm:at:replacing:)``. Nothing makes a key while tokens are asked for, since the
    /// server would not know it. All processes that speak for the client need the provider.
    ///
    /// - Parameters:
    ///   - keys: holds the key: in software, in a PKCS#11 token, in a TPM.
    ///   - name: the key's name, as it was given when the key was made.
    /// - Returns: the setting.
    public static func privateKeyJWT(keys: any KeyProvider, named name: String) -> ClientAuthentication {
        ClientAuthentication(key: ClientKey.Place(provider: keys, name: name))
    }

    /// Whether the client proves anything.
    public var isOn: Bool { key != nil }

    let key: ClientKey.Place?

    private init(key: ClientKey.Place?) { self.key = key }
}
