public import AssentCore
import Crypto
public import Foundation

/// A vault's sealing key in a file of its own.
///
/// Software protection, and unprotected against whoever can read the file: keep it off backups that hold the vault. The
/// file is made at first use with mode 0600. It must be a regular file of the user who runs this, readable by nobody else,
/// in a directory that nobody else can write to.
public struct VaultKeyFile: VaultKeyProvider {
    private static let prefix = "assent-vault-key:"
    private static let format = "1:"
    private static let sizeLimit = 256

    private let name: String
    private let random: any RandomSource
    private let directory: @Sendable (_ creating: Bool) throws -> any VaultDirectory

    /// The key in the file `file`.
    public init(_ file: URL, random: any RandomSource = SystemRandom()) {
        let parent = file.deletingLastPathComponent().path(percentEncoded: false)
        self.init(name: file.lastPathComponent, random: random) { creating in
            try PosixDirectory(parent, creating: creating, privacy: .othersMustNotWrite)
        }
    }

    init(
        name: String, random: any RandomSource = SystemRandom(),
        directory: @escaping @Sendable (_ creating: Bool) throws -> any VaultDirectory
    ) {
        self.name = name
        self.random = random
        self.directory = directory
    }

    /// `file`
    public var kind: String { "file" }

    /// Always software.
    public var protection: KeyProtection { .software }

    /// Seals `dataKey`; makes the key file when there is none.
    public func seal(_ dataKey: Secret, context: [UInt8]) async throws -> [UInt8] {
        let directory = try guarded { try self.directory(true) }
        return try (try load(directory) ?? make(directory)).seal(dataKey, context: context)
    }

    /// Opens what this key sealed. A missing key file is `keyUnavailable`, never a new one.
    public func unseal(_ sealed: [UInt8], context: [UInt8]) async throws -> Secret {
        guard let key = try load(guarded { try self.directory(false) }) else {
            throw SecretStoreError(
                .keyUnavailable,
                "The key file is gone. Restore it from a backup; without it the vault cannot be read by anybody.")
        }
        return try key.unseal(sealed, context: context)
    }

    private func load(_ directory: any VaultDirectory) throws -> SoftwareVaultKey? {
        guard let content = try guarded({ try directory.read(name, limit: Self.sizeLimit, isPrivate: true) }) else {
            return nil
        }
        let text = String(decoding: content, as: UTF8.self)
        guard text.hasPrefix(Self.prefix), text.hasSuffix("\n") else { throw Self.notAKey }
        let body = text.dropFirst(Self.prefix.count).dropLast()
        guard body.hasPrefix(Self.format) else {
            throw body.first?.isNumber == true ? SecretStoreError.newerFormat : Self.notAKey
        }
        guard let key = Base64URL.decode(body.dropFirst(Self.format.count)), key.count == SoftwareVaultKey.length
        else { throw Self.notAKey }
        return SoftwareVaultKey(SymmetricKey(data: key))
    }

    private func make(_ directory: any VaultDirectory) throws -> SoftwareVaultKey {
        let text = Self.prefix + Self.format + Base64URL.encode(random.bytes(SoftwareVaultKey.length)) + "\n"
        return try guarded {
            let temporary = "\(name).\(Hex.encode(random.bytes(SealedFile.idLength))).tmp"
            try directory.writeDurably(Array(text.utf8), to: temporary)
            // A link, not a rename: when two processes make the key at once, the first one's key stays.
            _ = try directory.link(temporary, to: name)
            try directory.remove(temporary)
            try directory.syncDirectory()
            guard let key = try load(directory) else {
                throw SecretStoreError(.keyUnavailable, "The key file vanished while it was made. Try again.")
            }
            return key
        }
    }

    private func guarded<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let failure as FileFailure {
            throw SecretStoreError(.keyUnavailable, "The key file cannot be used. " + failure.advice)
        }
    }

    private static let notAKey = SecretStoreError(
        .wrongKey, "The key file does not hold a vault key, or was cut off. Restore it from a backup.")
}
