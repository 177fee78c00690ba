import AssentCore
import Crypto

/// The readable part of the vault's file: which vault, what guards it, and its sealed data key.
///
/// The key provider authenticates `context`, and the manifest behind the header is sealed with the whole header as
/// associated data. The checksum only tells damage from a wrong key; it protects from nobody.
struct VaultHeader: Hashable, Sendable {
    static let magic = Array("AssentV\n".utf8)
    static let format: UInt16 = 1
    static let identifierLength = 16

    let vaultID: [UInt8]
    let protection: KeyProtection
    let keyKind: String
    let sealedKey: [UInt8]

    static func context(vaultID: [UInt8], protection: KeyProtection, keyKind: String) -> [UInt8] {
        var writer = VaultWriter()
        writer.raw(magic)
        writer.integer(format)
        writer.raw(vaultID)
        writer.counted(Array(protection.rawValue.utf8))
        writer.counted(Array(keyKind.utf8))
        return writer.bytes
    }

    var context: [UInt8] {
        Self.context(vaultID: vaultID, protection: protection, keyKind: keyKind)
    }

    var encoded: [UInt8] {
        var writer = VaultWriter()
        writer.raw(context)
        writer.counted(sealedKey)
        writer.raw(SHA256.hash(data: writer.bytes))
        return writer.bytes
    }

    /// Splits the vault's file into header and sealed manifest.
    static func split(_ file: [UInt8]) throws -> (header: VaultHeader, sealedManifest: [UInt8]) {
        var reader = VaultReader(file)
        do {
            guard try reader.raw(magic.count) == magic else {
                throw SecretStoreError.tampered("This is not a vault's file.")
            }
            let format = try reader.integer(UInt16.self)
            if format > Self.format { throw SecretStoreError.newerFormat }
            let vaultID = try reader.raw(identifierLength)
            let protection = KeyProtection(rawValue: String(decoding: try reader.counted(limit: 32), as: UTF8.self))
            let keyKind = String(decoding: try reader.counted(limit: 64), as: UTF8.self)
            let sealedKey = try reader.counted(limit: 16_384)
            let checksum = try reader.raw(SHA256.byteCount)
            let manifest = reader.remainder()
            let covered = file.prefix(file.count - manifest.count - SHA256.byteCount)
            guard format == Self.format, let protection, ConstantTime.equal(checksum, Array(SHA256.hash(data: covered)))
            else { throw SecretStoreError.tampered("The vault's header was changed.") }
            let header = VaultHeader(
                vaultID: vaultID, protection: protection, keyKind: keyKind, sealedKey: sealedKey)
            return (header, manifest)
        } catch is VaultReader.Malformed {
            throw SecretStoreError.tampered("The vault's file was cut off.")
        }
    }
}
