/// A handle of a private key that agrees on secrets (ECDH on P-256).
public protocol KeyAgreementKey: Sendable {
    /// The public part as an uncompressed point (X9.63: `04 ‖ x ‖ y`, 65 bytes).
    var publicPoint: [UInt8] { get }

    /// The x coordinate of the shared point with the peer's uncompressed public point: 32 bytes, leading zeros kept.
    ///
    /// A key of a ``KeyProvider`` throws ``KeyProviderError``, with code `invalidInput` when `peer` is not a point of
    /// the curve in this form.
    func sharedSecret(with peer: [UInt8]) async throws -> Secret
}

/// Makes, finds and removes private keys by name: in a PKCS#11 token, a TPM, a Secure Enclave, or a sealed file.
///
/// The private parts never leave a hardware provider, and the public parts come from the provider, so that nobody who
/// can write files can put a key of their own in a key's place. A provider never makes a key except by
/// ``makeSigningKey(named:algorithm:)`` and ``makeAgreementKey(named:)``, and never falls back to another kind of key:
/// what it cannot do is an error.
///
/// Names are those that ``KeyName`` accepts. A name may have one signing key, one agreement key and one rollback
/// counter, independent of each other. Handles stay valid while the provider does. Everything may be called from many
/// tasks at once.
///
/// Every method throws ``KeyProviderError``, and `CancellationError` when the task was cancelled while a person was
/// asked. `AssentTesting` publishes the contract as tests (`KeyProviderContract`).
public protocol KeyProvider: Sendable {
    /// Which kind of provider this is: a stable name of 1 to 32 ASCII characters, such as `software`, `pkcs11`, `tpm2`,
    /// `secure-enclave`. A vault is written down as being guarded by a kind, and opens with no other. A device that
    /// signs transactions tells the server its kind, which has only a–z, 0–9 and - then, and which a server whose
    /// `keystores` do not name it refuses.
    var kind: String { get }

    /// What guards the private parts.
    var protection: KeyProtection { get }

    /// Whether keys can be made and used now, and why not. It asks nobody and changes nothing.
    var availability: KeyAvailability { get async }

    /// How the key that guards the private parts is made from a passphrase, in PHC form without salt and hash
    /// (`$scrypt$ln=15,r=8,p=1`); `nil` where no passphrase is involved. A vault keeps it in its authenticated header.
    var keyDerivation: String? { get async throws }

    /// The names that have a signing or an agreement key here, sorted, each once. What is not ours is left out.
    func keyNames() async throws -> [String]

    /// The signing key called `name`, or `nil` when there is none.
    func signingKey(named name: String) async throws -> (any SigningKey)?

    /// Makes a signing key, which is there for good when this returns. Every provider knows ES256.
    ///
    /// - Throws: ``KeyProviderError`` with code `keyExists` when there is one of that name, `unsupported` when this
    ///   provider does not know `algorithm`.
    func makeSigningKey(named name: String, algorithm: SignatureAlgorithm) async throws -> any SigningKey

    /// The key agreement key called `name`, or `nil` when there is none.
    func agreementKey(named name: String) async throws -> (any KeyAgreementKey)?

    /// Makes a P-256 key agreement key, which is there for good when this returns.
    ///
    /// - Throws: ``KeyProviderError`` with code `keyExists` when there is one of that name, `unsupported` when this
    ///   provider cannot agree on secrets.
    func makeAgreementKey(named name: String) async throws -> any KeyAgreementKey

    /// Destroys both kinds of key and the counter called `name`; nothing happens when there is none.
    func removeKey(named name: String) async throws

    /// The rollback counter called `name`, or `nil` when there is none or this provider has no counters.
    func rollbackCounter(named name: String) async throws -> (any RollbackCounter)?

    /// Makes a rollback counter, or returns `nil` when this provider has no counters. It never fakes one in a file.
    ///
    /// - Throws: ``KeyProviderError`` with code `keyExists` when there is one of that name.
    func makeRollbackCounter(named name: String) async throws -> (any RollbackCounter)?
}

extension KeyProvider {
    /// Whether keys can be made and used now; ``availability`` says why not.
    public var isAvailable: Bool {
        get async { await availability == .available }
    }

    /// No passphrase is involved.
    public var keyDerivation: String? {
        get async throws { nil }
    }

    /// There are no counters here.
    public func rollbackCounter(named name: String) async throws -> (any RollbackCounter)? { nil }

    /// There are no counters here.
    public func makeRollbackCounter(named name: String) async throws -> (any RollbackCounter)? { nil }
}

/// Whether a key provider can be used.
public enum KeyAvailability: Hashable, Sendable {
    /// It can.
    case available
    /// It cannot, for a reason that the user can act on.
    case unavailable(reason: String)
    /// It is there, and refuses every PIN or passphrase for now.
    case lockedOut(reason: String)

    /// What a failure to ask comes to.
    public init(_ error: KeyProviderError) {
        self = error.code == .lockedOut ? .lockedOut(reason: error.detail) : .unavailable(reason: error.detail)
    }
}

/// What guards a private key.
public enum KeyProtection: String, Hashable, Sendable, CaseIterable {
    /// A device that never gives the key out.
    case hardware
    /// Software, under a passphrase or another secret that is not beside the key.
    case software
    /// A file in plain sight of anyone who can read this user's files.
    case unprotected
}

/// What a key may be called, at every provider.
public enum KeyName {
    /// Checks a name: 1 to 64 of `a`–`z`, `A`–`Z`, `0`–`9`, `.`, `_`, `:` and `-`.
    ///
    /// - Throws: ``KeyProviderError`` with code `invalidInput`.
    public static func check(_ name: String) throws(KeyProviderError) {
        let isFine = name.utf8.allSatisfy { $0.isASCIIAlphanumeric || "._:-".utf8.contains($0) }
        guard isFine, (1...64).contains(name.utf8.count) else {
            throw KeyProviderError(
                .invalidInput, "A key's name has 1 to 64 ASCII letters, digits, dots, underscores, colons and hyphens.")
        }
    }
}
