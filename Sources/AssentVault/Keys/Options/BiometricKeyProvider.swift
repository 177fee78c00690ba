public import AssentCore
import Crypto
import Foundation

/// Keys of another provider that a user must be there for, and that are lost when another finger or face is enrolled.
///
/// Each key comes with a mark at the same provider, made from its name and what was enrolled then. A key whose mark
/// does not fit what is enrolled now is destroyed at the next attempt to find or use it, with the error `keyLost`; it
/// does not come back when the old enrollment does. Keys that were made without this are left alone.
public struct BiometricKeyProvider: KeyProvider {
    private static let markPrefix = "enrolled."

    private let keys: any KeyProvider
    private let biometrics: any BiometricProvider
    private let reason: String

    /// Guards `keys` with `biometrics`. `reason` is shown to the user.
    public init(_ keys: any KeyProvider, biometrics: any BiometricProvider, reason: String) {
        self.keys = keys
        self.biometrics = biometrics
        self.reason = reason
    }

    /// The other provider's kind with `+biometry`, so that a vault made with this never opens without it.
    public var kind: String { keys.kind + "+biometry" }

    /// What guards the private parts: the other provider.
    public var protection: KeyProtection { keys.protection }

    /// Whether the other provider is available and something is enrolled.
    public var availability: KeyAvailability {
        get async {
            do {
                _ = try await enrolled()
                return await keys.availability
            } catch let error as KeyProviderError {
                return .unavailable(reason: error.detail)
            } catch {
                return .unavailable(reason: "The biometric reader does not answer. Check it.")
            }
        }
    }

    /// How the other provider makes its key from a passphrase.
    public var keyDerivation: String? {
        get async throws { try await keys.keyDerivation }
    }

    /// The names of the keys made here, whether they are lost by now or not.
    public func keyNames() async throws -> [String] {
        try await keys.keyNames().filter { !$0.hasPrefix(Self.markPrefix) }
    }

    /// The signing key called `name`. It asks for the user at each use.
    ///
    /// - Throws: ``/AssentCore/KeyProviderError`` with code `keyLost` when something else was enrolled since it was
    ///   made.
    public func signingKey(named name: String) async throws -> (any SigningKey)? {
        guard let key = try await keys.signingKey(named: name) else { return nil }
        try await check(name)
        return GuardedSigner(key: key, name: name, provider: self)
    }

    /// Makes a signing key, bound to what is enrolled now.
    public func makeSigningKey(named name: String, algorithm: SignatureAlgorithm) async throws -> any SigningKey {
        let made = try await bind(name) { try await keys.makeSigningKey(named: name, algorithm: algorithm) }
        return GuardedSigner(key: made, name: name, provider: self)
    }

    /// The key agreement key called `name`. It asks for the user at each use.
    ///
    /// - Throws: ``/AssentCore/KeyProviderError`` with code `keyLost` when something else was enrolled since it was
    ///   made.
    public func agreementKey(named name: String) async throws -> (any KeyAgreementKey)? {
        guard let key = try await keys.agreementKey(named: name) else { return nil }
        try await check(name)
        return GuardedAgreement(key: key, name: name, provider: self)
    }

    /// Makes a key agreement key, bound to what is enrolled now.
    public func makeAgreementKey(named name: String) async throws -> any KeyAgreementKey {
        let made = try await bind(name) { try await keys.makeAgreementKey(named: name) }
        return GuardedAgreement(key: made, name: name, provider: self)
    }

    /// Destroys both kinds of key, the counter and the mark called `name`.
    public func removeKey(named name: String) async throws {
        try Self.check(name)
        try await keys.removeKey(named: name)
        try await sweep()
    }

    /// The other provider's counter called `name`.
    public func rollbackCounter(named name: String) async throws -> (any RollbackCounter)? {
        try await keys.rollbackCounter(named: name)
    }

    /// Makes a counter at the other provider.
    public func makeRollbackCounter(named name: String) async throws -> (any RollbackCounter)? {
        try await keys.makeRollbackCounter(named: name)
    }

    /// Asks the user, for a key that is still good.
    fileprivate func confirm(_ name: String) async throws {
        try await check(name)
        try await biometrics.confirm(reason)
        // Somebody may have been enrolled while the question stood.
        try await check(name)
    }

    private func check(_ name: String) async throws {
        if try await keys.signingKey(named: mark(name)) != nil { return }
        try await keys.removeKey(named: name)
        try await sweep()
        throw KeyProviderError(
            .keyLost, "Another finger or face was enrolled since this key was made, so it was destroyed. Sign in again."
        )
    }

    private func bind<Key>(_ name: String, _ make: () async throws -> Key) async throws -> Key {
        try Self.check(name)
        let mark = try await mark(name)
        let isMarked = try await keys.signingKey(named: mark) != nil
        // A key of this name that was lost without anybody noticing must not pass as new.
        if !isMarked, try await keyNames().contains(name) { try await check(name) }
        if !isMarked { _ = try await keys.makeSigningKey(named: mark, algorithm: .es256) }
        return try await make()
    }

    private func mark(_ name: String) async throws -> String {
        let digest = SHA256.hash(data: Array(name.utf8) + [0] + (try await enrolled()))
        return Self.markPrefix + Hex.encode(digest.prefix(24))
    }

    /// Removes marks that belong to no key. While nothing is enrolled nobody can tell.
    private func sweep() async throws {
        guard try await biometrics.enrollment() != nil else { return }
        var marks: Set<String> = []
        for name in try await keyNames() { marks.insert(try await mark(name)) }
        for name in try await keys.keyNames() where name.hasPrefix(Self.markPrefix) && !marks.contains(name) {
            try await keys.removeKey(named: name)
        }
    }

    private func enrolled() async throws -> [UInt8] {
        guard let enrolled = try await biometrics.enrollment() else {
            throw KeyProviderError(.userAbsent, "No finger and no face is enrolled. Enroll one, and try again.")
        }
        return enrolled
    }

    private static func check(_ name: String) throws {
        guard !name.hasPrefix(markPrefix) else {
            throw KeyProviderError(.invalidInput, "Names that begin with \(markPrefix) are taken. Choose another.")
        }
        try KeyName.check(name)
    }
}

private struct GuardedSigner: SigningKey {
    let key: any SigningKey
    let name: String
    let provider: BiometricKeyProvider

    var algorithm: SignatureAlgorithm { key.algorithm }
    var publicKeyInfo: [UInt8] { key.publicKeyInfo }

    func signature(for message: [UInt8]) async throws -> [UInt8] {
        try await provider.confirm(name)
        return try await key.signature(for: message)
    }
}

private struct GuardedAgreement: KeyAgreementKey {
    let key: any KeyAgreementKey
    let name: String
    let provider: BiometricKeyProvider

    var publicPoint: [UInt8] { key.publicPoint }

    func sharedSecret(with peer: [UInt8]) async throws -> Secret {
        try await provider.confirm(name)
        return try await key.sharedSecret(with: peer)
    }
}
