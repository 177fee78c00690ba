public import AssentCore
import Crypto
import CryptoExtras
import Foundation

/// A vault's sealing key made from a passphrase by scrypt (RFC 7914).
///
/// Software protection: who reads the vault's files can try passphrases offline, each at the cost below.
public struct VaultPassphrase: VaultKeyProvider {
    /// What one guess costs (RFC 7914 §2). Memory is `128 · 2^logRounds · blockSize` bytes.
    public struct Cost: Hashable, Sendable {
        /// The binary logarithm of N: 14 to 18.
        public let logRounds: UInt8
        /// r: 8 to 16.
        public let blockSize: UInt8
        /// p: 1 to 4.
        public let parallelism: UInt8

        /// N = 2^15, r = 8, p = 1: 32 MiB and well under a tenth of a second on a current machine.
        public static let standard = Cost(unchecked: 15, blockSize: 8, parallelism: 1)

        /// A cost, or `nil` outside of the limits above. A vault whose header asks for another is refused.
        public init?(logRounds: UInt8, blockSize: UInt8, parallelism: UInt8) {
            guard (14...18).contains(logRounds), (8...16).contains(blockSize), (1...4).contains(parallelism) else {
                return nil
            }
            self.init(unchecked: logRounds, blockSize: blockSize, parallelism: parallelism)
        }

        private init(unchecked logRounds: UInt8, blockSize: UInt8, parallelism: UInt8) {
            self.logRounds = logRounds
            self.blockSize = blockSize
            self.parallelism = parallelism
        }
    }

    private static let saltLength = 32

    private let passphrase: Secret
    private let cost: Cost
    private let random: any RandomSource

    /// Seals with `passphrase`. `cost` is for new vaults; a vault that exists has its own.
    ///
    /// - Throws: ``AssentCore/SecretStoreError`` with code `invalidInput` when the passphrase is empty or longer than
    ///   1,024 bytes.
    public init(_ passphrase: Secret, cost: Cost = .standard, random: any RandomSource = SystemRandom()) throws {
        guard (1...1_024).contains(passphrase.count) else {
            throw SecretStoreError(.invalidInput, "A passphrase has 1 to 1,024 bytes. Enter another.")
        }
        self.passphrase = passphrase
        self.cost = cost
        self.random = random
    }

    /// `passphrase`
    public var kind: String { "passphrase" }

    /// Always software.
    public var protection: KeyProtection { .software }

    /// Seals `dataKey` under a fresh salt.
    public func seal(_ dataKey: Secret, context: [UInt8]) async throws -> [UInt8] {
        var writer = VaultWriter()
        writer.integer(cost.logRounds)
        writer.integer(cost.blockSize)
        writer.integer(cost.parallelism)
        let salt = random.bytes(Self.saltLength)
        writer.raw(salt)
        let sealed = try key(salt: salt, cost: cost).seal(dataKey, context: context + writer.bytes)
        writer.raw(sealed)
        return writer.bytes
    }

    /// Opens what a passphrase sealed. Parameters outside of ``Cost``'s limits are refused before any work is done.
    public func unseal(_ sealed: [UInt8], context: [UInt8]) async throws -> Secret {
        var reader = VaultReader(sealed)
        do {
            let cost = Cost(
                logRounds: try reader.integer(UInt8.self), blockSize: try reader.integer(UInt8.self),
                parallelism: try reader.integer(UInt8.self))
            let salt = try reader.raw(Self.saltLength)
            guard let cost else {
                throw SecretStoreError.tampered("The vault asks for scrypt parameters outside of the limits.")
            }
            let box = reader.remainder()
            return try key(salt: salt, cost: cost)
                .unseal(box, context: context + sealed.prefix(sealed.count - box.count))
        } catch is VaultReader.Malformed {
            throw SecretStoreError.tampered("The vault's sealed key was cut off.")
        }
    }

    private func key(salt: [UInt8], cost: Cost) throws -> SoftwareVaultKey {
        do {
            return SoftwareVaultKey(
                try KDF.Scrypt.deriveKey(
                    from: passphrase.revealBytes(), salt: salt, outputByteCount: SoftwareVaultKey.length,
                    rounds: 1 << Int(cost.logRounds), blockSize: Int(cost.blockSize),
                    parallelism: Int(cost.parallelism)))
        } catch {
            throw SecretStoreError(
                .keyUnavailable, "scrypt failed, most likely for want of memory. Free some memory and try again.")
        }
    }
}
