import AssentCore

/// The key of this installation's registration as the one key that tokens and sessions belong to, whatever name it is
/// asked for by. It is never removed here: it ends with the registration.
final class InstallationKeys: KeyProvider {
    private struct Place {
        weak var registration: AppRegistration?
        /// The same registration, where another manager has it. One that proves by these keys itself would keep them,
        /// and they it, for ever.
        let others: AppRegistration?
        let keys: any KeyProvider
    }

    private let place = Locked<Place?>(nil)

    /// Says whose key it is, before anything is asked for.
    ///
    /// - Parameters:
    ///   - registration: has the key. It is kept if it is another manager's.
    ///   - keys: where the key is.
    ///   - isOthers: whether it is another manager's, which does not use this.
    func attach(_ registration: AppRegistration?, _ keys: (any KeyProvider)?, isOthers: Bool) {
        guard let registration, let keys else { return }
        place.withLock { $0 = Place(registration: registration, others: isOthers ? registration : nil, keys: keys) }
    }

    private var registration: AppRegistration {
        get throws(KeyProviderError) {
            guard let registration = place.withLock({ $0?.registration }) else {
                throw KeyProviderError(.unsupported, "The configuration has no registration whose key this could be.")
            }
            return registration
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
        try await registration.proofKey(registering: false)
    }

    func makeSigningKey(named name: String, algorithm: SignatureAlgorithm) async throws -> any SigningKey {
        guard let key = try await registration.proofKey(registering: true) else {
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
