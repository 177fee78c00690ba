public import AssentCore

/// What a vault is and what guards it.
public struct VaultInfo: Hashable, Sendable {
    /// The vault's id, in hexadecimal.
    public let vaultID: String

    /// Which of an app's stores it is.
    public let store: String

    /// What was insisted on when the vault was made, or at the last change of key.
    public let level: ProtectionLevel

    /// What keeps the key.
    public let protection: KeyProtection

    /// The provider's kind: `software`, `pkcs11`, `tpm2`, …
    public let provider: String

    /// How the provider makes its key from a passphrase; `nil` without one.
    public let keyDerivation: String?

    /// Whether an old copy of the whole vault would be noticed.
    public let isRollbackProtected: Bool

    /// How often the vault's keys were changed: one more with each ``FileVault/rekey(to:)``.
    public let keyChanges: UInt32

    init(_ header: VaultHeader) {
        vaultID = Hex.encode(header.vaultID)
        store = header.store
        level = header.level
        protection = header.protection
        provider = header.kind
        keyDerivation = header.keyDerivation.isEmpty ? nil : header.keyDerivation
        isRollbackProtected = header.hasCounter
        keyChanges = header.epoch
    }
}

/// What a vault's file says of itself to somebody without its key: good for a hint, and no reason to trust it.
public struct UnverifiedVaultInfo: Hashable, Sendable {
    /// What the file claims.
    public let claimed: VaultInfo
}

/// One secret of a vault, without its value.
public struct VaultEntry: Hashable, Sendable {
    /// The name.
    public let name: String

    /// Counts the updates of this name.
    public let version: UInt64

    /// The value's length in bytes.
    public let size: Int
}

/// What ``FileVault/check(removingDamaged:)`` found.
public struct VaultReport: Hashable, Sendable {
    /// One thing that is wrong.
    public struct Finding: Hashable, Sendable {
        /// The secret, or `nil` when a whole list of names is damaged.
        public let name: String?

        /// What is wrong and what to do.
        public let error: SecretStoreError

        /// Whether it was removed just now.
        public let isRemoved: Bool
    }

    /// How many secrets were opened and are in order.
    public var intact = 0

    /// What is wrong.
    public var findings: [Finding] = []

    /// How many files of interrupted updates were removed.
    public var removedLeftovers = 0

    /// How many keys of interrupted changes of key were destroyed at the provider.
    public var removedKeys = 0

    /// Whether nothing is wrong, or nothing any more.
    public var isInOrder: Bool { findings.allSatisfy(\.isRemoved) }
}
