package import AssentCore
import Crypto
import Foundation

/// Seals and opens a vault's files with its data key (AES-256-GCM, NIST SP 800-38D).
///
/// Nonces come from swift-crypto and never from an injected generator: a repeated one would give the key away.
package struct VaultSealer: Sendable {
    enum Purpose: UInt8 {
        case manifest = 1
        case shard = 2
        case record = 3
    }

    static let dataKeyLength = 32
    static let overhead = 12 + 16

    let vaultID: [UInt8]
    /// The associated data up to what differs: a record costs little more than its cipher.
    private let binding: [UInt8]
    private let dataKey: SymmetricKey
    private let shardKey: SymmetricKey

    private static let domain = Array("assent vault".utf8)
    private static let purposeIndex = domain.count + MemoryLayout.size(ofValue: VaultFile.format)

    package init(vaultID: [UInt8], store: String, dataKey: Secret) {
        self.vaultID = vaultID
        var writer = VaultWriter()
        writer.raw(Self.domain)
        writer.integer(VaultFile.format)
        writer.integer(UInt8(0))
        writer.raw(vaultID)
        writer.counted(Array(store.utf8))
        binding = writer.bytes
        self.dataKey = dataKey.symmetricKey
        shardKey = HKDF<SHA256>.deriveKey(
            inputKeyMaterial: dataKey.symmetricKey, salt: vaultID, info: Array("assent vault shard".utf8),
            outputByteCount: 32)
    }

    /// Which shard lists `name`. Keyed, so that sizes of shards say nothing about names.
    func shardIndex(of name: String) -> UInt8 {
        let code = HMAC<SHA256>.authenticationCode(for: Array(name.utf8), using: shardKey)
        return (code.first { _ in true } ?? 0) % VaultManifest.shardCount
    }

    func seal(_ plaintext: some ContiguousBytes, as purpose: Purpose, bound context: [UInt8]) throws -> [UInt8] {
        try plaintext.withUnsafeBytes { try seal($0, authenticating: associatedData(purpose, context)) }
    }

    /// Seals the value of a record.
    package func seal(_ value: Secret, name: String, version: UInt64, file: [UInt8]) throws -> [UInt8] {
        let associated = associatedData(.record, recordContext(name: name, version: version, file: file))
        return try value.withUnsafeBytes { try seal($0, authenticating: associated) }
    }

    // Not generic: the compiler would leave the cipher's own generics as they are, which costs as much as the cipher.
    private func seal(_ plaintext: UnsafeRawBufferPointer, authenticating associated: [UInt8]) throws -> [UInt8] {
        let box = try AES.GCM.seal(plaintext, using: dataKey, authenticating: associated)
        // Nonce, ciphertext and tag in one piece, which there is for nonces of 12 bytes.
        guard let combined = box.combined else { throw CryptoKitError.incorrectParameterSize }
        return Array(combined)
    }

    /// Opens the value of a record.
    package func open(_ sealed: [UInt8], name: String, version: UInt64, file: [UInt8]) throws -> Secret {
        try openValue(sealed, bound: recordContext(name: name, version: version, file: file))
    }

    func open(_ sealed: [UInt8], as purpose: Purpose, bound context: [UInt8]) throws -> Data {
        guard sealed.count >= Self.overhead else {
            throw SecretStoreError.tampered("A file of the vault was cut off.")
        }
        do {
            return try AES.GCM.open(
                AES.GCM.SealedBox(combined: sealed), using: dataKey, authenticating: associatedData(purpose, context))
        } catch {
            throw SecretStoreError.tampered("A file of the vault was changed.")
        }
    }

    /// Opens a value. The cipher's own buffer is wiped.
    func openValue(_ sealed: [UInt8], bound context: [UInt8]) throws -> Secret {
        var plaintext = try open(sealed, as: .record, bound: context)
        defer { Wipe.bytes(&plaintext) }
        return Secret(SymmetricKey(data: plaintext))
    }

    func recordContext(name: String, version: UInt64, file: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(file.count + 8 + name.utf8.count)
        bytes += file
        withUnsafeBytes(of: version.bigEndian) { bytes += $0 }
        bytes += name.utf8
        return bytes
    }

    func shardContext(index: UInt8, file: [UInt8]) -> [UInt8] {
        [index] + file
    }

    private func associatedData(_ purpose: Purpose, _ context: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(binding.count + context.count)
        bytes += binding
        bytes[Self.purposeIndex] = purpose.rawValue
        bytes += context
        return bytes
    }
}
