import AssentCore
import Crypto

/// A vault's two keys at its provider: one signs what the vault's file says, the other opens the data key. And the
/// counter that notices an old copy of everything, where the provider has counters.
///
/// The public parts come from the provider only: a file that brings its own key along proves nothing.
struct ProviderKeys: Sendable {
    let provider: any KeyProvider
    let keyName: String
    let counter: (any RollbackCounter)?

    private let signer: any SigningKey
    private let agreement: any KeyAgreementKey
    private let verifier: P256.Signing.PublicKey

    static let fingerprintLength = 32
    static let signatureLength = 64
    private static let ecies = ECIES.cofactorVariableIVX963SHA256AESGCM
    private static let domain = Array("assent vault commit\n".utf8)

    /// `epoch` counts the changes of key.
    static func keyName(vaultID: [UInt8], epoch: UInt32) -> String {
        keyPrefix(vaultID: vaultID) + "\(epoch)"
    }

    static func keyPrefix(vaultID: [UInt8]) -> String { "vault-\(Hex.encode(vaultID))-" }

    private init(
        provider: any KeyProvider, keyName: String, signer: any SigningKey, agreement: any KeyAgreementKey,
        counter: (any RollbackCounter)?
    ) throws {
        self.provider = provider
        self.keyName = keyName
        self.signer = signer
        self.agreement = agreement
        self.counter = counter
        guard signer.algorithm == .es256,
            let verifier = try? P256.Signing.PublicKey(derRepresentation: signer.publicKeyInfo)
        else {
            throw SecretStoreError(
                .keyUnavailable, "The key provider's signing key is not a P-256 key. Check the device and its module.")
        }
        self.verifier = verifier
    }

    /// The keys of a vault that exists. Never makes one.
    static func find(_ header: VaultHeader, keys: VaultProviders) async throws -> ProviderKeys {
        let provider = try await keys.provider(for: header)
        let name = keyName(vaultID: header.vaultID, epoch: header.epoch)
        return try await asking {
            guard let signer = try await provider.signingKey(named: name),
                let agreement = try await provider.agreementKey(named: name)
            else {
                let others = try await provider.keyNames().contains { $0.hasPrefix("vault-") && $0 != name }
                throw SecretStoreError(
                    .keyLost,
                    "The key provider (\(provider.kind)) does not have this vault's key"
                        + (others
                            ? ", though it has those of other vaults: is this another user's vault, or an old copy? "
                            : ". ")
                        + "Put the right vault back, or restore the key; without it nobody can read the vault.")
            }
            let counter = try await provider.rollbackCounter(named: name)
            guard (counter != nil) == header.hasCounter else {
                throw SecretStoreError(
                    .keyLost,
                    header.hasCounter
                        ? "The counter against rollback is gone from the device. Restore it, or make the vault anew."
                        : "The device has a counter that this vault was made without. Put the right vault back.")
            }
            return try ProviderKeys(
                provider: provider, keyName: name, signer: signer, agreement: agreement, counter: counter)
        }
    }

    /// Makes the keys of a new vault, or of a new epoch. What an interrupted attempt left under this name is removed
    /// first.
    static func make(vaultID: [UInt8], epoch: UInt32, provider: any KeyProvider) async throws -> ProviderKeys {
        let name = keyName(vaultID: vaultID, epoch: epoch)
        return try await asking {
            try await provider.removeKey(named: name)
            do {
                return try ProviderKeys(
                    provider: provider, keyName: name,
                    signer: try await provider.makeSigningKey(named: name, algorithm: .es256),
                    agreement: try await provider.makeAgreementKey(named: name),
                    counter: try await provider.makeRollbackCounter(named: name))
            } catch {
                try? await provider.removeKey(named: name)
                throw error
            }
        }
    }

    /// Destroys the keys.
    func remove() async throws {
        try await Self.asking { try await provider.removeKey(named: keyName) }
    }

    /// Tells another key from a changed file; says nothing about who made the file.
    var fingerprint: [UInt8] { Array(SHA256.hash(data: signer.publicKeyInfo)) }

    func sign(_ content: [UInt8]) async throws -> [UInt8] {
        let signature = try await Self.asking { try await signer.signature(for: Self.domain + content) }
        // A device that answers with garbage must not make the vault unreadable.
        guard isSignature(signature, of: content) else {
            throw SecretStoreError(
                .keyUnavailable, "The key provider answered with something that is not a signature. Check the device.")
        }
        return signature
    }

    func isSignature(_ signature: [UInt8], of content: [UInt8]) -> Bool {
        guard let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signature) else { return false }
        return verifier.isValidSignature(signature, for: Self.domain + content)
    }

    /// Wraps `dataKey` for the agreement key, and proves that it opens again.
    func wrap(_ dataKey: Secret) async throws -> [UInt8] {
        let wrapped = try Self.ecies.seal(dataKey, to: agreement.publicPoint)
        guard try await unwrap(wrapped) == dataKey else { throw Self.notUnwrapped }
        return wrapped
    }

    func unwrap(_ wrapped: [UInt8]) async throws -> Secret {
        do {
            let dataKey = try await Self.asking { try await Self.ecies.open(wrapped, with: agreement) }
            guard dataKey.count == VaultSealer.dataKeyLength else { throw Self.notUnwrapped }
            return dataKey
        } catch let error as SecretStoreError where error == ECIES.notOpened {
            throw Self.notUnwrapped
        }
    }

    private static let notUnwrapped = SecretStoreError(
        .wrongKey, "The key provider's key does not open this vault's data key. Check the device, or restore the key.")

    /// The counter's number when it is where a vault left it at `expected`; one behind means that a commit was
    /// interrupted before its last step, which is made up for.
    static func counted(_ counter: any RollbackCounter, upTo expected: UInt64) async throws -> UInt64 {
        let value = try await asking { try await counter.value() }
        if value == expected { return value }
        guard value < expected, expected - value == 1 else { throw SecretStoreError.rolledBack }
        try await raise(counter, to: expected)
        return expected
    }

    static func raise(_ counter: any RollbackCounter, to expected: UInt64) async throws {
        guard try await asking({ try await counter.increment() }) == expected else {
            throw SecretStoreError(
                .keyUnavailable, "The counter against rollback did not grow as it should. Check the device.")
        }
    }

    /// Turns a provider's errors into the store's.
    static func asking<Result>(_ body: () async throws -> Result) async throws -> Result {
        do {
            return try await body()
        } catch let error as KeyProviderError {
            let code: SecretStoreError.Code =
                switch error.code {
                case .wrongSecret: .wrongKey
                case .lockedOut: .keyLocked
                case .keyLost: .keyLost
                case .tampered: .tampered
                case .newerFormat: .newerFormat
                case .olderFormat: .olderFormat
                default: .keyUnavailable
                }
            throw SecretStoreError(code, error.detail, suggestion: error.suggestion)
        }
    }
}
