import AssentCore
import AssentJOSE

/// The key that tokens are bound to, as the stored tokens name it.
struct KeyBinding: Sendable, Equatable {
    /// Its name at the key provider.
    let name: String

    /// Its thumbprint (RFC 7638): another key of the same name is not the key of these tokens.
    let thumbprint: String

    var json: JSONValue { ["key": .string(name), "jkt": .string(thumbprint)] }

    init(name: String, thumbprint: String) {
        self.name = name
        self.thumbprint = thumbprint
    }

    init?(_ json: JSONValue) {
        guard let name = json["key"]?.string, let thumbprint = json["jkt"]?.string else { return nil }
        self.init(name: name, thumbprint: thumbprint)
    }
}

/// A key that signs proofs, found at its provider.
struct ProofKey: Sendable {
    let binding: KeyBinding
    let prover: DPoPProver

    /// Whether it is the key by which the client authenticates, and no token is bound to it.
    private let isClientKey: Bool

    init(name: String, _ key: any SigningKey) throws {
        guard DPoPConfiguration.algorithms.contains(key.algorithm) else {
            throw TokenError(
                .keyUnavailable, "The key for proofs signs with \(key.algorithm), which no proof may have.",
                suggestion: "Use ES256, ES384, PS256 or EdDSA.")
        }
        do throws(JOSEError) {
            binding = KeyBinding(name: name, thumbprint: try JWK(publicKeyInfo: key.publicKeyInfo).thumbprint)
            prover = try DPoPProver(key)
        } catch {
            throw TokenError(.keyUnavailable, "The key for proofs cannot be used: \(error.explanation)")
        }
        isClientKey = false
    }

    /// The key of a client, which also proves its registration.
    init(client: ClientKey, name: String) {
        binding = KeyBinding(name: name, thumbprint: client.publicKey.thumbprint)
        prover = client.prover
        isClientKey = true
    }

    /// What a failure of its provider means.
    func failure(_ error: KeyProviderError) -> TokenError {
        isClientKey ? TokenError(clientKey: binding.name, error) : TokenError(error: error)
    }
}

extension TokenError {
    /// What a key provider's failure means: a key that is gone does not come back, everything else may pass.
    init(error: KeyProviderError) {
        if error.code == .keyLost {
            self = .signInNeeded(.keyLost)
        } else {
            self.init(
                .keyUnavailable, "The key that the tokens are bound to cannot be used now. \(error.detail)",
                suggestion: error.suggestion)
        }
    }
}

/// Runs `body`, and throws what a key provider throws as a ``TokenError``.
func keyErrorsAsTokenErrors<Result>(_ body: () async throws -> Result) async throws -> Result {
    do {
        return try await body()
    } catch let error as KeyProviderError {
        throw TokenError(error: error)
    }
}
