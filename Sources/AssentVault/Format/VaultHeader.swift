import AssentCore
import Crypto

/// The readable part of the vault's file: which vault, what guards it, and its wrapped data key.
///
/// The provider's key signs it together with the sealed manifest. Its checksum only tells damage from a wrong key; it
/// protects from nobody.
struct VaultHeader: Hashable, Sendable {
    static let identifierLength = 16
    private static let textLimit = 200
    private static let wrappedKeyLimit = 1_024

    let vaultID: [UInt8]
    /// Which of an app's stores it is.
    let store: String
    let level: ProtectionLevel
    let protection: KeyProtection
    /// The provider's kind.
    let kind: String
    /// Counts the changes of key.
    let epoch: UInt32
    /// How the provider makes its key from a passphrase; empty without one.
    let keyDerivation: String
    let hasCounter: Bool
    let fingerprint: [UInt8]
    let wrappedKey: [UInt8]

    static func check(store: String) throws {
        guard (1...textLimit).contains(store.utf8.count) else {
            throw SecretStoreError(.invalidInput, "A store's name has 1 to \(textLimit) bytes. Choose another.")
        }
    }

    var encoded: [UInt8] {
        var writer = VaultWriter()
        writer.raw(vaultID)
        writer.counted(Array(store.utf8))
        writer.counted(Array(level.rawValue.utf8))
        writer.counted(Array(protection.rawValue.utf8))
        writer.counted(Array(kind.utf8))
        writer.integer(epoch)
        writer.counted(Array(keyDerivation.utf8))
        writer.integer(UInt8(hasCounter ? 1 : 0))
        writer.raw(fingerprint)
        writer.counted(wrappedKey)
        writer.raw(SHA256.hash(data: writer.bytes))
        return writer.bytes
    }

    init(
        vaultID: [UInt8], store: String, level: ProtectionLevel, protection: KeyProtection, kind: String, epoch: UInt32,
        keyDerivation: String, hasCounter: Bool, fingerprint: [UInt8], wrappedKey: [UInt8]
    ) {
        self.vaultID = vaultID
        self.store = store
        self.level = level
        self.protection = protection
        self.kind = kind
        self.epoch = epoch
        self.keyDerivation = keyDerivation
        self.hasCounter = hasCounter
        self.fingerprint = fingerprint
        self.wrappedKey = wrappedKey
    }

    init(decoding bytes: [UInt8]) throws {
        var reader = VaultReader(bytes)
        do {
            vaultID = try reader.raw(Self.identifierLength)
            store = try Self.text(&reader)
            let level = ProtectionLevel(rawValue: try Self.text(&reader))
            let protection = KeyProtection(rawValue: try Self.text(&reader))
            kind = try Self.text(&reader)
            epoch = try reader.integer(UInt32.self)
            keyDerivation = try Self.text(&reader)
            let counter = try reader.integer(UInt8.self)
            fingerprint = try reader.raw(ProviderKeys.fingerprintLength)
            wrappedKey = try reader.counted(limit: Self.wrappedKeyLimit)
            let checksum = try reader.raw(SHA256.byteCount)
            let covered = bytes.dropLast(SHA256.byteCount)
            guard reader.isAtEnd, let level, let protection, counter <= 1,
                ConstantTime.equal(checksum, Array(SHA256.hash(data: covered)))
            else { throw VaultReader.Malformed() }
            self.level = level
            self.protection = protection
            hasCounter = counter == 1
        } catch is VaultReader.Malformed {
            throw SecretStoreError.tampered("The vault's header was changed.")
        }
        // A cost below the minimum is refused, no matter who signed it.
        if keyDerivation.hasPrefix("$scrypt$"), ScryptCost(description: keyDerivation) == nil {
            throw SecretStoreError.tampered(
                "The vault's header names scrypt parameters below the minimum or above the maximum.")
        }
    }

    private static func text(_ reader: inout VaultReader) throws(VaultReader.Malformed) -> String {
        let bytes = try reader.counted(limit: textLimit)
        guard let text = String(validating: bytes, as: UTF8.self) else { throw VaultReader.Malformed() }
        return text
    }
}
