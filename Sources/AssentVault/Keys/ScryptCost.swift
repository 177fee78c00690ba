import AssentCore
import Crypto
import CryptoExtras
import Foundation

/// What one guess at a passphrase costs under scrypt (RFC 7914 §2). Memory is `128 · 2^logRounds · blockSize` bytes.
///
/// There is a least and a greatest cost: less would make guessing cheap, more would let a changed file take all memory.
public struct ScryptCost: Hashable, Sendable, CustomStringConvertible {
    /// The binary logarithm of N: 14 to 18.
    public let logRounds: UInt8
    /// r: 8 to 16.
    public let blockSize: UInt8
    /// p: 1 to 4.
    public let parallelism: UInt8

    /// N = 2^15, r = 8, p = 1: 32 MiB and well under a tenth of a second on a current machine.
    public static let standard = ScryptCost(unchecked: 15, blockSize: 8, parallelism: 1)

    /// A cost, or `nil` outside of the limits above.
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

    /// The PHC form without salt and hash: `$scrypt$ln=15,r=8,p=1`.
    public var description: String { "$scrypt$ln=\(logRounds),r=\(blockSize),p=\(parallelism)" }

    /// Reads ``description`` back; `nil` for anything else and for a cost outside of the limits.
    public init?(description text: String) {
        guard let match = text.wholeMatch(of: /\$scrypt\$ln=([0-9]{1,3}),r=([0-9]{1,3}),p=([0-9]{1,3})/),
            let logRounds = UInt8(match.1), let blockSize = UInt8(match.2), let parallelism = UInt8(match.3)
        else { return nil }
        self.init(logRounds: logRounds, blockSize: blockSize, parallelism: parallelism)
        // One spelling for each cost: no leading zeros.
        guard description == text else { return nil }
    }

    func key(_ passphrase: Secret, salt: [UInt8]) throws -> SymmetricKey {
        do {
            return try passphrase.withUnsafeBytes { bytes in
                try KDF.Scrypt.deriveKey(
                    from: bytes, salt: salt, outputByteCount: 32, rounds: 1 << Int(logRounds),
                    blockSize: Int(blockSize), parallelism: Int(parallelism))
            }
        } catch {
            throw KeyProviderError(
                .failed, "scrypt failed, most likely because memory is short. Free some memory and try again.")
        }
    }
}
