import AssentCore
import AssentVault
import Crypto
import Foundation

/// A record, sealed by the vault's own sealer and by hand. Both also make and check the digest that the list of names
/// has.
struct RecordWorld {
    let value: Secret
    private let name = "tokens of https://am.example.com/am and its client"
    private let fileID = SystemRandom().bytes(16)
    private let sealer: VaultSealer
    private let key: SymmetricKey
    private let associatedData: [UInt8]

    init(length: Int) {
        value = Secret(bytes: SystemRandom().bytes(length))
        key = SymmetricKey(size: .bits256)
        sealer = VaultSealer(vaultID: SystemRandom().bytes(16), store: "default", dataKey: Secret(key))
        // As long as the vault's own.
        associatedData = SystemRandom().bytes(42 + 16 + 8 + name.utf8.count)
    }

    func seal() throws -> (bytes: [UInt8], file: SealedFile) {
        let bytes = try sealer.seal(value, name: name, version: 7, file: fileID)
        return (bytes, SealedFile(id: fileID, content: bytes))
    }

    func open(_ record: (bytes: [UInt8], file: SealedFile)) throws -> Secret {
        guard record.file.has(record.bytes) else { throw BenchFailure("changed") }
        return try sealer.open(record.bytes, name: name, version: 7, file: fileID)
    }

    /// What a caller would write who keeps the sealed bytes in a file and their digest elsewhere.
    func sealByHand() throws -> (bytes: [UInt8], digest: [UInt8]) {
        let box = try value.withUnsafeBytes { try AES.GCM.seal($0, using: key, authenticating: associatedData) }
        guard let combined = box.combined else { throw BenchFailure("the nonce has not 12 bytes") }
        let bytes = Array(combined)
        return (bytes, SHA256.hash(data: bytes).withUnsafeBytes { [UInt8]($0) })
    }

    func openByHand(_ sealed: (bytes: [UInt8], digest: [UInt8])) throws -> Secret {
        // `==` of a digest is slower than the hash itself.
        let digest = SHA256.hash(data: sealed.bytes).withUnsafeBytes { [UInt8]($0) }
        guard ConstantTime.equal(digest, sealed.digest) else { throw BenchFailure("changed") }
        let box = try AES.GCM.SealedBox(combined: sealed.bytes)
        return Secret(SymmetricKey(data: try AES.GCM.open(box, using: key, authenticating: associatedData)))
    }
}
