import AssentCore

/// The vault's main file: `magic ‖ format ‖ length ‖ header ‖ sealed manifest ‖ signature`.
///
/// Replacing it is what commits an update. The length in front tells a file that was cut off from one that was changed.
struct VaultFile: Hashable, Sendable {
    static let magic = Array("AssentV\n".utf8)
    static let format: UInt16 = 2
    static let prefixLength = 14
    static let sizeLimit = 1 << 16

    let header: VaultHeader
    let sealedManifest: [UInt8]
    let signature: [UInt8]

    /// What is signed: everything in front of the signature.
    let signed: [UInt8]

    static func signedPart(header: VaultHeader, sealedManifest: [UInt8]) -> [UInt8] {
        var body = VaultWriter()
        body.counted(header.encoded)
        body.counted(sealedManifest)
        var writer = VaultWriter()
        writer.raw(magic)
        writer.integer(format)
        writer.integer(UInt32(clamping: prefixLength + body.bytes.count + ProviderKeys.signatureLength))
        writer.raw(body.bytes)
        return writer.bytes
    }

    init(decoding bytes: [UInt8]) throws {
        guard bytes.prefix(Self.magic.count).elementsEqual(Self.magic.prefix(bytes.count)) else {
            throw SecretStoreError.tampered("This is not a vault's file.")
        }
        var reader = VaultReader(bytes)
        do {
            _ = try reader.raw(Self.magic.count)
            let format = try reader.integer(UInt16.self)
            if format > Self.format { throw SecretStoreError.newerFormat }
            if format == 1 { throw SecretStoreError.olderFormat }
            guard format == Self.format else { throw SecretStoreError.tampered("The vault's format was changed.") }
            let length = try reader.integer(UInt32.self)
            guard bytes.count >= Int(length) else { throw VaultReader.Malformed() }
            guard bytes.count == Int(length) else { throw SecretStoreError.tampered("The vault's file was extended.") }
        } catch is VaultReader.Malformed {
            throw SecretStoreError.truncated(
                bytes.isEmpty ? "The vault's main file is empty." : "The vault's main file was cut off.")
        }
        do {
            let header = try reader.counted(limit: Self.sizeLimit)
            sealedManifest = try reader.counted(limit: Self.sizeLimit)
            signature = try reader.raw(ProviderKeys.signatureLength)
            guard reader.isAtEnd else { throw VaultReader.Malformed() }
            signed = Array(bytes.dropLast(ProviderKeys.signatureLength))
            self.header = try VaultHeader(decoding: header)
        } catch is VaultReader.Malformed {
            throw SecretStoreError.tampered("The vault's main file was changed.")
        }
    }
}
