package import AssentCore
import CryptoExtras
import Foundation

/// A stored password: `$scrypt$ln=17,r=8,p=1$salt$hash`, salt and hash in base64 without padding (the PHC string
/// format).
package struct PasswordHash: Sendable, Hashable {
    /// scrypt's parameters (RFC 7914 §2).
    package struct Cost: Sendable, Hashable {
        /// The logarithm of N.
        package let logN: Int
        /// The block size.
        package let r: Int
        /// The parallelism.
        package let p: Int

        /// A cost with the block size and the parallelism that are usual.
        package init(logN: Int, r: Int = 8, p: Int = 1) {
            self.logN = logN
            self.r = r
            self.p = p
        }

        /// Reads the cost with which a hash begins; `nil` for another format, and for a cost that is not accepted.
        init?(startOf text: String) {
            let parts = text.split(separator: "$", maxSplits: 3, omittingEmptySubsequences: false)
            guard parts.count == 4, parts[0].isEmpty, parts[1] == "scrypt" else { return nil }
            let settings = parts[2].split(separator: ",", omittingEmptySubsequences: false)
            guard settings.count == 3, settings[0].hasPrefix("ln="), settings[1].hasPrefix("r="),
                settings[2].hasPrefix("p="), let logN = Int(settings[0].dropFirst(3)),
                let r = Int(settings[1].dropFirst(2)), let p = Int(settings[2].dropFirst(2)),
                PasswordHash.acceptedLogN.contains(logN), (1...16).contains(r), (1...4).contains(p)
            else { return nil }
            self.init(logN: logN, r: r, p: p)
        }

        /// The cost as a hash says it: `ln=17,r=8,p=1`.
        package var text: String { "ln=\(logN),r=\(r),p=\(p)" }
    }

    /// What it cost.
    package let cost: Cost

    /// What makes equal passwords differ.
    package let salt: [UInt8]

    /// What the password derives to.
    package let hash: [UInt8]

    /// Costs that are computed at all: 2^20 needs a gibibyte.
    package static let acceptedLogN = 4...20

    static let saltBytes = 16
    static let hashBytes = 32

    /// A hash from its parts.
    package init(cost: Cost, salt: [UInt8], hash: [UInt8]) {
        self.cost = cost
        self.salt = salt
        self.hash = hash
    }

    /// The hash of a password, at a cost, with a salt of its own. It takes long and blocks.
    package static func make(
        _ password: Secret, cost: Cost, random: any RandomSource,
        derivation: any PasswordDerivation = ScryptDerivation()
    ) throws -> PasswordHash {
        let salt = random.bytes(saltBytes)
        let hash = try derivation.derive(password, salt: salt, cost: cost, byteCount: hashBytes)
        return PasswordHash(cost: cost, salt: salt, hash: hash)
    }

    /// Reads the text; `nil` for another format, and for a cost that is not accepted.
    package init?(_ text: String) {
        guard text.utf8.count <= 512 else { return nil }
        let parts = text.split(separator: "$", omittingEmptySubsequences: false)
        guard parts.count == 5, let cost = Cost(startOf: text), let salt = Self.bytes(parts[3]),
            let hash = Self.bytes(parts[4]), (8...64).contains(salt.count), (16...64).contains(hash.count)
        else { return nil }
        self.init(cost: cost, salt: salt, hash: hash)
    }

    /// The text.
    package var text: String {
        "$scrypt$\(cost.text)$\(Self.base64(salt))$\(Self.base64(hash))"
    }

    private static func base64(_ bytes: [UInt8]) -> String {
        Data(bytes).base64EncodedString().replacing("=", with: "")
    }

    private static func bytes(_ text: Substring) -> [UInt8]? {
        guard !text.contains("=") else { return nil }
        return Data(base64Encoded: text + String(repeating: "=", count: (4 - text.utf8.count % 4) % 4))
            .map { [UInt8]($0) }
    }
}

/// Derives a key from a password: a seam, so that tests can count.
package protocol PasswordDerivation: Sendable {
    /// The derived bytes. It may take long and block.
    func derive(_ password: Secret, salt: [UInt8], cost: PasswordHash.Cost, byteCount: Int) throws -> [UInt8]
}

/// scrypt (RFC 7914).
package struct ScryptDerivation: PasswordDerivation {
    /// scrypt.
    package init() {}

    /// The derived bytes.
    package func derive(
        _ password: Secret, salt: [UInt8], cost: PasswordHash.Cost, byteCount: Int
    ) throws -> [UInt8] {
        let key = try KDF.Scrypt.deriveKey(
            from: password.revealBytes(), salt: salt, outputByteCount: byteCount, rounds: 1 << cost.logN,
            blockSize: cost.r, parallelism: cost.p)
        return Secret(key).revealBytes()
    }
}
