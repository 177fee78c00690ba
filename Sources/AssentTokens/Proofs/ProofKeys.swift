import AssentCore
import Foundation

/// Finds, makes and removes the key that tokens are bound to. The name is noted in the store before the key is made, so
/// that a crash between the two leaves no key that nobody knows of.
actor ProofKeys {
    private let configuration: DPoPConfiguration
    private let storage: TokenStorage
    private let random: any RandomSource
    private var found: ProofKey?

    init(_ configuration: DPoPConfiguration, storage: TokenStorage, random: any RandomSource) {
        self.configuration = configuration.forOneManager
        self.storage = storage
        self.random = random
    }

    /// Says whose key the installation's is, where that is asked for.
    ///
    /// - Parameters:
    ///   - registration: has the key.
    ///   - keys: where it is.
    ///   - isOthers: whether it is another manager's registration.
    nonisolated func attach(_ registration: AppRegistration?, _ keys: (any KeyProvider)?, isOthers: Bool) {
        (configuration.keys as? InstallationKeys)?.attach(registration, keys, isOthers: isOthers)
    }

    /// The key for a sign-in that is about to begin, made when there is none; `nil` when nothing is bound to a key, and
    /// then nobody is waited for.
    ///
    /// - Parameter deadline: until when the lease is waited for.
    /// - Returns: the key.
    /// - Throws: ``TokenError``.
    func forSignIn(until deadline: Date) async throws -> ProofKey? {
        guard configuration.keys != nil else { return nil }
        return try await storeErrorsAsTokenErrors {
            try await storage.store.withExclusiveAccess(storage.leaseName, deadline: deadline) {
                try await forNewTokens()
            }
        }
    }

    /// The key for new tokens, made when there is none; `nil` when new tokens are not bound. The caller has the lease:
    /// processes that share the store must not make a key each.
    func forNewTokens() async throws -> ProofKey? {
        guard let provider = configuration.keys else { return nil }
        if !configuration.isOn, try await storage.notedKeyName() == nil { return nil }
        guard DPoPConfiguration.algorithms.contains(configuration.algorithm) else {
            throw TokenError(
                .invalidConfiguration, "\(configuration.algorithm) cannot sign proofs.",
                suggestion: "Use ES256, ES384, PS256 or EdDSA.")
        }
        return try await keyErrorsAsTokenErrors {
            let name = try await storage.keyName(random: random)
            let made: (name: String, key: any SigningKey)
            do {
                made = (name, try await key(named: name, at: provider))
            } catch let error as KeyProviderError where error.code == .keyLost {
                // What is left of it may keep its name from being used again.
                try? await provider.removeKey(named: name)
                let other = try await storage.newKeyName(random: random)
                made = (other, try await key(named: other, at: provider))
            }
            let key = try ProofKey(name: made.name, made.key)
            found = key
            return key
        }
    }

    private func key(named name: String, at provider: any KeyProvider) async throws -> any SigningKey {
        if let key = try await provider.signingKey(named: name) { return key }
        return try await provider.makeSigningKey(named: name, algorithm: configuration.algorithm)
    }

    /// The key of stored tokens.
    ///
    /// - Parameters:
    ///   - binding: from the tokens.
    ///   - isAnew: whether the provider is asked although the key was found before.
    /// - Returns: the key.
    /// - Throws: ``TokenError``: `signInNeeded` with `keyLost` when the provider does not have this key any more,
    ///   `keyUnavailable` when nobody can say.
    func key(of binding: KeyBinding, isAnew: Bool = false) async throws -> ProofKey {
        if let found, found.binding == binding, !isAnew { return found }
        guard let provider = configuration.keys else {
            throw TokenError(
                .keyUnavailable,
                "The stored tokens or the session are bound to a key, and the configuration names no key provider.",
                suggestion: "Set dpop in the configuration, or sign out and sign in again.")
        }
        found = nil
        let key = try await keyErrorsAsTokenErrors { try await provider.signingKey(named: binding.name) }
        guard let key else { throw TokenError.signInNeeded(.keyLost) }
        let proofKey = try ProofKey(name: binding.name, key)
        // Somebody put another key into its place: no server takes its proofs for these tokens.
        guard proofKey.binding == binding else { throw TokenError.signInNeeded(.keyLost) }
        found = proofKey
        return proofKey
    }

    /// Whether tokens are bound to a key that is gone for good.
    ///
    /// - Throws: ``TokenError`` when nobody can say.
    func isLost(_ binding: KeyBinding?, isAnew: Bool = false) async throws -> Bool {
        guard let binding else { return false }
        do {
            _ = try await key(of: binding, isAnew: isAnew)
            return false
        } catch let error as TokenError where error.signInReason == .keyLost {
            return true
        }
    }

    /// The name of the key for new tokens and sessions, where one is noted.
    func notedName() async throws -> String? { try await storage.notedKeyName() }

    /// Removes the keys of sessions that nobody needs to end any more, unless new tokens are bound to them again or
    /// another session is still to be ended by them.
    ///
    /// - Returns: of which entries the key is left, and why.
    func discardKeys(
        of entries: [PendingSignOuts.Entry], neededBy kept: [PendingSignOuts.Entry]
    ) async -> (left: Set<String>, failure: TokenError?) {
        var (left, failure): (Set<String>, TokenError?) = ([], nil)
        let needed = Set(kept.compactMap { $0.key?.name })
        for entry in entries {
            guard let provider = configuration.keys, let name = entry.key?.name, !needed.contains(name) else {
                continue
            }
            found = nil
            do {
                guard try await storage.notedKeyName() != name else { continue }
                try await keyErrorsAsTokenErrors { try await provider.removeKey(named: name) }
            } catch {
                left.insert(entry.id)
                failure = error as? TokenError ?? TokenError(.keyUnavailable, "The key of a session is left.")
            }
        }
        return (left, failure)
    }

    /// Forgets what was found, since using it failed.
    func forget() { found = nil }

    /// Removes the key, after the tokens that are bound to it were forgotten. What cannot be removed now stays noted
    /// and is used for the next tokens. Without a sign-out the name stays noted, for a new key: the next tokens of the
    /// session are bound as well. A key that is still needed stays: the session's.
    func remove(_ bindings: [KeyBinding?], except needed: KeyBinding?, isSignOut: Bool) async throws {
        found = nil
        guard let provider = configuration.keys else { return }
        let noted = try await storage.notedKeyName()
        for name in Set(([noted] + bindings.map { $0?.name }).compactMap(\.self)) where name != needed?.name {
            try await keyErrorsAsTokenErrors { try await provider.removeKey(named: name) }
        }
        if noted != nil, isSignOut { try await storage.forgetKeyName() }
    }
}
