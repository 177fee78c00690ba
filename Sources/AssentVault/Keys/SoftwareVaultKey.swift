import AssentCore
import Crypto
import Foundation

/// A 256-bit wrapping key in this process's memory (AES-256-GCM).
struct SoftwareVaultKey: Sendable {
    static let length = 32
    private static let checkLength = 16

    private let key: SymmetricKey

    init(_ key: SymmetricKey) {
        self.key = key
    }

    /// Tells a wrong key from a changed blob; derived, so it says nothing about the key.
    private var check: [UInt8] {
        HKDF<SHA256>.deriveKey(
            inputKeyMaterial: key, info: Array("assent vault key check".utf8), outputByteCount: Self.checkLength
        ).withUnsafeBytes { Array($0) }
    }

    func seal(_ dataKey: Secret, context: [UInt8]) throws -> [UInt8] {
        let box = try dataKey.withUnsafeBytes {
            try AES.GCM.seal($0, using: key, authenticating: context)
        }
        return check + Array(box.nonce) + Array(box.ciphertext) + Array(box.tag)
    }

    func unseal(_ sealed: some Collection<UInt8>, context: [UInt8]) throws -> Secret {
        guard sealed.count == Self.checkLength + 12 + VaultSealer.dataKeyLength + 16 else {
            throw SecretStoreError.tampered("The vault's sealed key has another length.")
        }
        guard ConstantTime.equal(sealed.prefix(Self.checkLength), check) else {
            throw SecretStoreError(
                .wrongKey, "This key did not seal this vault. Use the key file or passphrase that it was made with.")
        }
        do {
            let box = try AES.GCM.SealedBox(combined: Array(sealed.dropFirst(Self.checkLength)))
            return Secret(SymmetricKey(data: try AES.GCM.open(box, using: key, authenticating: context)))
        } catch {
            throw SecretStoreError.tampered("The vault's header was changed.")
        }
    }
}
