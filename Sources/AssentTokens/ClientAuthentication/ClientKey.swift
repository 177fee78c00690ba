public import AssentCore
public import AssentJOSE

/// The key by which a client authenticates, at a key provider.
///
/// ```swift
/// let key = try await ClientKey.make(named: "bank-app", at: keys)
/// let forTheServer = key.keySet.json.serialized()
/// configuration.clientAuthentication = .privateKeyJWT(keys: keys, named: "bank-app")
/// ```
public struct ClientKey: Sendable, CustomStringConvertible, CustomReflectable {
    /// Its public half, as the server takes it. Its `kid` is the thumbprint (RFC 7638).
    public let publicKey: JWK

    /// A set with the public half alone.
    public var keySet: JWKSet { JWKSet([publicKey]) }

    /// What an assertion may be signed with: those of FAPI 2.0 §5.4.
    public static let algorithms: Set<SignatureAlgorithm> = [.es256, .ps256, .edDSA]

    /// What a key provider takes, without the beginning that these names get there.
    private static let nameLimit = 57

    let key: any SigningKey

    /// Proves that the client has the key.
    let prover: DPoPProver

    /// Where a key is.
    struct Place: Sendable {
        let provider: any KeyProvider
        let name: String

        /// The name at the provider. Its beginning keeps it apart from the vault's keys and the tokens', so that
        /// whatever name somebody gives here, replacing a key destroys none of those.
        var fullName: String { "client.\(name)" }
    }

    /// Makes a key.
    ///
    /// - Parameters:
    ///   - name: its name: 1 to 57 ASCII letters, digits, dots, underscores, colons and hyphens.
    ///   - algorithm: what it signs with: ES256, PS256 or EdDSA. Every provider knows ES256.
    ///   - provider: makes and holds it.
    ///   - replacing: whether a key of this name is destroyed first. The server then refuses the client until it has
    ///     the new key.
    /// - Returns: the key.
    /// - Throws: ``TokenError`` with `invalidConfiguration` for another algorithm; `KeyProviderError`, with `keyExists`
    ///   when there is a key of this name.
    public static func make(
        named name: String, algorithm: SignatureAlgorithm = .es256, at provider: any KeyProvider,
        replacing: Bool = false
    ) async throws -> ClientKey {
        guard algorithms.contains(algorithm) else {
            throw TokenError(
                .invalidConfiguration, "\(algorithm) cannot sign a client's assertions.", suggestion: advice)
        }
        try check(name: name)
        let place = Place(provider: provider, name: name)
        if replacing { try await provider.removeKey(named: place.fullName) }
        let key = try await provider.makeSigningKey(named: place.fullName, algorithm: algorithm)
        return try ClientKey(key, name: name)
    }

    /// Checks a key's name.
    ///
    /// - Throws: `KeyProviderError` with `invalidInput`.
    public static func check(name: String) throws(KeyProviderError) {
        guard name.utf8.count <= nameLimit, (try? KeyName.check(name)) != nil else {
            throw KeyProviderError(
                .invalidInput,
                "The name of a client key has 1 to \(nameLimit) ASCII letters, digits, dots, underscores, colons and hyphens."
            )
        }
    }

    /// Finds a key.
    ///
    /// - Parameters:
    ///   - name: its name.
    ///   - provider: holds it.
    /// - Returns: the key.
    /// - Throws: ``TokenError``: `clientKeyMissing` when the provider does not have it, or destroyed it;
    ///   `clientKeyUnavailable` when nobody can say, or it cannot sign assertions.
    public static func find(named name: String, at provider: any KeyProvider) async throws -> ClientKey {
        let place = Place(provider: provider, name: name)
        do {
            guard let key = try await provider.signingKey(named: place.fullName) else {
                throw TokenError(.clientKeyMissing, "The key provider has no client key \(shown(name)).")
            }
            return try ClientKey(key, name: name)
        } catch let error as KeyProviderError {
            throw TokenError(clientKey: name, error)
        }
    }

    init(_ key: any SigningKey, name: String) throws(TokenError) {
        guard Self.algorithms.contains(key.algorithm) else {
            throw TokenError(
                .clientKeyUnavailable,
                "The client key \(Self.shown(name)) signs with \(key.algorithm), which no assertion may have.",
                suggestion: Self.advice)
        }
        do throws(JOSEError) {
            let thumbprint = try JWK(publicKeyInfo: key.publicKeyInfo).thumbprint
            publicKey = try JWK(
                publicKeyInfo: key.publicKeyInfo, keyID: thumbprint, algorithm: key.algorithm, use: "sig")
            prover = try DPoPProver(key)
        } catch {
            throw TokenError(
                .clientKeyUnavailable, "The client key \(Self.shown(name)) cannot be used: \(error.explanation)")
        }
        self.key = key
    }

    /// The public half alone: what holds the private one may show more of it than anybody should see.
    public var description: String { "client key \(publicKey.thumbprint) (\(key.algorithm))" }

    /// The public half alone.
    public var customMirror: Mirror { Mirror(self, children: ["publicKey": publicKey]) }

    private static let advice = "Make a key for ES256, PS256 or EdDSA."

    /// A name in an error: anyone who wrote it may have written anything.
    static func shown(_ name: String) -> String {
        let isPlain = (try? KeyName.check(name)) != nil
        return isPlain ? name : "of this name"
    }
}
