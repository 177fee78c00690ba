import AssentCore
import AssentJOSE

/// A key provider in memory, as several processes share one: it counts the keys that it made, and fails as it is told.
final class KeyRing: KeyProvider {
    struct State: Sendable {
        var keys: [String: SoftwareSigningKey] = [:]
        var made = 0
        /// What every call throws.
        var failure: KeyProviderError?
        /// What signing throws.
        var signingFailure: KeyProviderError?
        /// Names of keys that cannot be removed.
        var stuck: Set<String> = []
    }

    let state = Locked(State())

    /// A key whose signing may fail.
    private struct Key: SigningKey {
        let key: SoftwareSigningKey
        let ring: KeyRing

        var algorithm: SignatureAlgorithm { key.algorithm }
        var publicKeyInfo: [UInt8] { key.publicKeyInfo }

        func signature(for message: [UInt8]) async throws -> [UInt8] {
            if let failure = ring.state.withLock({ $0.signingFailure }) { throw failure }
            return try await key.signature(for: message)
        }
    }

    var names: [String] { state.withLock { $0.keys.keys.sorted() } }
    var made: Int { state.withLock { $0.made } }

    func change(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }

    private func check() throws {
        if let failure = state.withLock({ $0.failure }) { throw failure }
    }

    let kind = "software"
    let protection = KeyProtection.software
    var availability: KeyAvailability { .available }

    func keyNames() async throws -> [String] { names }

    func signingKey(named name: String) async throws -> (any SigningKey)? {
        try check()
        // Another process may come between look-up and making.
        await Task.yield()
        return state.withLock { $0.keys[name] }.map { Key(key: $0, ring: self) }
    }

    func makeSigningKey(named name: String, algorithm: SignatureAlgorithm) async throws -> any SigningKey {
        try check()
        try KeyName.check(name)
        let key = try SoftwareSigningKey.generate(algorithm)
        try state.withLock { state in
            guard state.keys[name] == nil else { throw KeyProviderError(.keyExists, "It exists.") }
            state.keys[name] = key
            state.made += 1
        }
        return Key(key: key, ring: self)
    }

    func agreementKey(named name: String) async throws -> (any KeyAgreementKey)? { nil }

    func makeAgreementKey(named name: String) async throws -> any KeyAgreementKey {
        throw KeyProviderError(.unsupported, "It makes none.")
    }

    func removeKey(named name: String) async throws {
        try check()
        let isStuck = state.withLock { $0.stuck.contains(name) }
        guard !isStuck else { throw KeyProviderError(.unavailable, "It cannot be removed.") }
        state.withLock { $0.keys[name] = nil }
    }
}
