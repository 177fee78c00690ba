import AssentCore
import Crypto
import Foundation

/// Seals and opens a vault's files with its data key (AES-256-GCM, NIST SP 800-38D).
///
/// Nonces come from swift-crypto and never from an injected generator: a repeated one would give the key away.
struct VaultSealer: Sendable {
    enum Purpose: UInt8 {
        case manifest = 1
        case shard = 2
        case record = 3
    }

    static let dataKeyLength = 32
    static let overhead = 12 + 16

    let vaultID: [UInt8]
    private let store: [UInt8]
    private let dataKey: SymmetricKey
    private let shardKey: SymmetricKey

    init(vaultID: [UInt8], store: String, dataKey: Secret) {
        self.vaultID = vaultID
        self.store = Array(store.utf8)
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

    func seal(_ plaintext: some DataProtocol, as purpose: Purpose, bound context: [UInt8]) throws -> [UInt8] {
        let box = try AES.GCM.seal(
            plaintext, using: dataKey, authenticating: associatedData(purpose, context))
        var sealed = Array(box.nonce)
        sealed.append(contentsOf: box.ciphertext)
        sealed.append(contentsOf: box.tag)
        return sealed
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
        var writer = VaultWriter()
        writer.raw(file)
        writer.integer(version)
        writer.raw(Array(name.utf8))
        return writer.bytes
    }

    func shardContext(index: UInt8, file: [UInt8]) -> [UInt8] {
        [index] + file
    }

    private func associatedData(_ purpose: Purpose, _ context: [UInt8]) -> [UInt8] {
        var writer = VaultWriter()
        writer.raw(Array("assent vault".utf8))
        writer.integer(VaultFile.format)
        writer.integer(purpose.rawValue)
        writer.raw(vaultID)
        writer.counted(store)
        writer.raw(context)
        return writer.bytes
    }
}
