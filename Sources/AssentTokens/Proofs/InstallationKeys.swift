import AssentCore

/// The key of this installation's registration as the one key that tokens and sessions belong to, whatever name it is
/// asked for by. It is never removed here: it ends with the registration.
final class InstallationKeys: KeyProvider {
    private struct Place {
        let registration: AppRegistration
        let keys: any KeyProvider
    }

    private let place = Locked<Place?>(nil)

    /// Says whose key it is, before anything is asked for.
    func attach(_ registration: AppRegistration?, _ keys: (any KeyProvider)?) {
        guard let registration, let keys else { return }
        place.withLock { $0 = Place(registration: registration, keys: keys) }
    }

    private var known: Place {
        get throws(KeyProviderError) {
            guard let place = place.withLock({ $0 }) else {
                throw KeyProviderError(.unsupported, "The configuration has no registration whose key this could be.")
            }
            return place
        }
    }

    private var keys: (any KeyProvider)? { place.withLock { $0?.keys } }

    var kind: String { keys?.kind ?? "installation" }

    var protection: KeyProtection { keys?.protection ?? .unprotected }

    var availability: KeyAvailability {
        get async {
            guard let keys else { return .unavailable(reason: "The configuration has no registration.") }
            return await keys.availability
        }
    }

    var keyDerivation: String? { get async throws { try await keys?.keyDerivation } }

    func keyNames() async throws -> [String] { [] }

    func signingKey(named name: String) async throws -> (any SigningKey)? {
        try await known.registration.proofKey(registering: false)
    }

    func makeSigningKey(named name: String, algorithm: SignatureAlgorithm) async throws -> any SigningKey {
        guard let key = try await known.registration.proofKey(registering: true) else {
            throw KeyProviderError(.keyLost, "The key of this installation is gone.")
        }
        return key
    }

    func agreementKey(named name: String) async throws -> (any KeyAgreementKey)? { nil }

    func makeAgreementKey(named name: String) async throws -> any KeyAgreementKey {
        throw KeyProviderError(.unsupported, "The key of an installation agrees on no secrets.")
    }

    func removeKey(named name: String) async throws {}

    func rollbackCounter(named name: String) async throws -> (any RollbackCounter)? { nil }

    func makeRollbackCounter(named name: String) async throws -> (any RollbackCounter)? { nil }
}

extension AppRegistration {
    /// The key of the registration, for proofs; `nil` when there is none.
    ///
    /// - Parameter registering: whether an installation that is not registered registers now.
    /// - Returns: the key.
    /// - Throws: ``TokenError``, as ``register()``.
    fileprivate func proofKey(registering: Bool) async throws -> (any SigningKey)? {
        do {
            let instance = registering ? try await register() : try await current()
            guard let instance else { return nil }
            return try await key(of: instance).key
        } catch let error as TokenError where error.code == .clientKeyMissing {
            return nil
        }
    }
}
