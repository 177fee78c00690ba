import AssentCore
import Crypto
import Foundation

/// The content of a software key provider's file: named private keys, readable or sealed under a passphrase.
///
/// The sealed form binds the parameters of scrypt and the salt to what they seal, so that neither can be changed.
struct KeyFile: Sendable {
    enum Kind: UInt8, Sendable {
        case signing = 1
        case agreement = 2
    }

    struct Slot: Hashable, Sendable {
        let name: String
        let kind: Kind
    }

    /// How a file is sealed: the readable part of a file under a passphrase.
    struct Seal: Hashable, Sendable {
        let cost: ScryptCost
        let salt: [UInt8]

        static let saltLength = 32
    }

    static let magic = Array("AssentK\n".utf8)
    static let format: UInt16 = 1
    static let sizeLimit = 1 << 20
    static let keyLength = 32
    private static let checkLength = 16
    private static let olderMagic = Array("assent-vault-key:".utf8)

    /// The raw private keys (P-256 scalars).
    var keys: [Slot: Secret] = [:]

    /// What is to be read first: whether the file is sealed, and how.
    static func seal(of file: [UInt8]) throws -> Seal? {
        var reader = VaultReader(file)
        return try reading { () throws -> Seal? in try Self.readSeal(&reader) }
    }

    /// Reads a file. `key` is the passphrase's key when the file is sealed.
    init(decoding file: [UInt8], key: SymmetricKey?) throws {
        var reader = VaultReader(file)
        self = try Self.reading {
            let seal = try Self.readSeal(&reader)
            let body = reader.remainder()
            let prefix = Array(file.prefix(file.count - body.count))
            guard seal != nil else {
                let content = body.dropLast(SHA256.byteCount)
                let checksum = Array(body.suffix(SHA256.byteCount))
                guard body.count >= SHA256.byteCount,
                    ConstantTime.equal(checksum, Array(SHA256.hash(data: prefix + content)))
                else { throw KeyProviderError.damagedFile }
                return try KeyFile(entries: Array(content))
            }
            guard let key, body.count >= Self.checkLength + 28 else { throw KeyProviderError.damagedFile }
            guard ConstantTime.equal(Array(body.prefix(Self.checkLength)), Self.check(key)) else {
                throw KeyProviderError(
                    .wrongSecret, "The passphrase is wrong. Enter the one that the key file was made with.")
            }
            do {
                let box = try AES.GCM.SealedBox(combined: body.dropFirst(Self.checkLength))
                var content = try AES.GCM.open(box, using: key, authenticating: prefix)
                defer { Wipe.bytes(&content) }
                return try content.withUnsafeBytes { try KeyFile(entries: Array($0)) }
            } catch is CryptoKitError {
                throw KeyProviderError.damagedFile
            }
        }
    }

    init() {}

    func encoded(seal: Seal?, key: SymmetricKey?) throws -> [UInt8] {
        var writer = VaultWriter()
        writer.raw(Self.magic)
        writer.integer(Self.format)
        writer.integer(UInt8(seal == nil ? 0 : 1))
        guard let seal, let key else {
            writer.raw(entries)
            writer.raw(SHA256.hash(data: writer.bytes))
            return writer.bytes
        }
        writer.integer(seal.cost.logRounds)
        writer.integer(seal.cost.blockSize)
        writer.integer(seal.cost.parallelism)
        writer.raw(seal.salt)
        let box = try AES.GCM.seal(entries, using: key, authenticating: writer.bytes)
        writer.raw(Self.check(key))
        writer.raw(Array(box.nonce))
        writer.raw(box.ciphertext)
        writer.raw(box.tag)
        return writer.bytes
    }

    private var entries: [UInt8] {
        var writer = VaultWriter()
        for (slot, key) in keys.sorted(by: { ($0.key.name, $0.key.kind.rawValue) < ($1.key.name, $1.key.kind.rawValue) }
        ) {
            writer.counted(Array(slot.name.utf8))
            writer.integer(slot.kind.rawValue)
            key.withUnsafeBytes { writer.raw($0) }
        }
        return writer.bytes
    }

    private init(entries: [UInt8]) throws {
        var reader = VaultReader(entries)
        while !reader.isAtEnd {
            let name = String(decoding: try reader.counted(limit: 64), as: UTF8.self)
            try KeyName.check(name)
            guard let kind = Kind(rawValue: try reader.integer(UInt8.self)) else { throw VaultReader.Malformed() }
            let key = Secret(bytes: try reader.raw(Self.keyLength))
            guard keys.updateValue(key, forKey: Slot(name: name, kind: kind)) == nil else {
                throw VaultReader.Malformed()
            }
        }
    }

    private static func readSeal(_ reader: inout VaultReader) throws -> Seal? {
        let magic = try reader.raw(magic.count)
        guard magic == Self.magic else {
            guard magic == Array(olderMagic.prefix(magic.count)) else {
                throw KeyProviderError(
                    .tampered, "This is not a key file. Name the right one, or restore it from a backup.")
            }
            throw KeyProviderError(
                .olderFormat,
                "An early version of this library wrote this key file. Move it away together with its vault, and sign in again."
            )
        }
        let format = try reader.integer(UInt16.self)
        if format > Self.format {
            throw KeyProviderError(
                .newerFormat, "A newer version of this library wrote this key file. Update the application.")
        }
        let flag = try reader.integer(UInt8.self)
        guard format == Self.format, flag <= 1 else { throw VaultReader.Malformed() }
        guard flag == 1 else { return nil }
        let cost = ScryptCost(
            logRounds: try reader.integer(UInt8.self), blockSize: try reader.integer(UInt8.self),
            parallelism: try reader.integer(UInt8.self))
        guard let cost else {
            throw KeyProviderError(
                .tampered,
                "The key file asks for scrypt parameters below the minimum or above the maximum. Restore it from a backup."
            )
        }
        return Seal(cost: cost, salt: try reader.raw(Seal.saltLength))
    }

    /// Tells a wrong passphrase from a changed file; derived, so it says nothing about the key.
    private static func check(_ key: SymmetricKey) -> [UInt8] {
        HKDF<SHA256>.deriveKey(
            inputKeyMaterial: key, info: Array("assent key file check".utf8), outputByteCount: checkLength
        ).withUnsafeBytes { Array($0) }
    }

    private static func reading<Result>(_ body: () throws -> Result) throws -> Result {
        do { return try body() } catch is VaultReader.Malformed { throw KeyProviderError.damagedFile }
    }
}

extension KeyProviderError {
    static let damagedFile = KeyProviderError(
        .tampered, "The key file was cut off or changed. Restore it from a backup; nothing was changed.")
}
