public import AssentCore
import Crypto
import CryptoExtras
import Foundation

/// A rule that a password breaks.
public enum PasswordRule: Hashable, Sendable {
    /// It is not a text of 1 to 128 bytes.
    case unusable
    /// It has fewer characters than this.
    case minimumLength(Int)
    /// It has more characters than this.
    case maximumLength(Int)
    /// It has fewer characters of a kind than this.
    case minimum(PasswordCharacters, Int)
    /// It has more characters of a kind than this.
    case maximum(PasswordCharacters, Int)
    /// It is a run (up, down, or along a row of the keyboard), one character, or one piece again and again.
    case sequence
    /// It is one of the most common, or a date.
    case common
    /// It is the current one, or one of those before it.
    case history
    /// It is the password of the other keys.
    case other
}

/// Kinds of characters that a rule counts.
public enum PasswordCharacters: String, Hashable, Sendable, CaseIterable {
    /// Capital letters.
    case upper = "Upper"
    /// Small letters.
    case lower = "Lower"
    /// Letters.
    case alpha = "Alpha"
    /// Decimal digits.
    case numeric = "Numeric"
    /// Anything but letters.
    case nonAlpha = "NonAlpha"

    func includes(_ scalar: Unicode.Scalar) -> Bool {
        switch self {
        case .upper: scalar.properties.isUppercase
        case .lower: scalar.properties.isLowercase
        case .alpha: scalar.properties.isAlphabetic
        case .numeric: scalar.properties.numericType == .decimal
        case .nonAlpha: !scalar.properties.isAlphabetic
        }
    }
}

/// A password as the protocol takes it: UTF-8 after Unicode normalisation form C, 1 to 128 bytes.
package struct NormalizedPassword: Sendable {
    package let secret: Secret

    /// A password; `nil` when it is not one.
    package init?(_ password: Secret) {
        guard (1...1024).contains(password.count),
            let text = String(validating: password.revealBytes(), as: UTF8.self)
        else { return nil }
        let normalized = Array(text.precomposedStringWithCanonicalMapping.utf8)
        guard (1...128).contains(normalized.count) else { return nil }
        secret = Secret(bytes: normalized)
    }

    /// *s*: 32 bytes that cost `cost` for each guess.
    ///
    /// - Throws: ``SigningProtocolError``, most likely for want of memory.
    package func stretched(salt: [UInt8], cost: PasswordCost) throws(SigningProtocolError) -> Secret {
        do {
            return try secret.withUnsafeBytes { bytes in
                Secret(
                    try KDF.Scrypt.deriveKey(
                        from: bytes, salt: salt, outputByteCount: 32, rounds: 1 << cost.logN, blockSize: cost.r,
                        parallelism: cost.p))
            }
        } catch {
            throw SigningProtocolError(.malformed, "scrypt failed, most likely because memory is short.")
        }
    }
}

extension PasswordRules {
    /// The first rule that a new password breaks, to be shown while the user types. Whether it was used before is seen
    /// only when it is set.
    public func broken(by password: Secret) -> PasswordRule? {
        guard let password = NormalizedPassword(password) else { return .unusable }
        return broken(by: password)
    }

    /// The first rule that a password breaks; what came before it (`history`) is not looked at.
    package func broken(by password: NormalizedPassword) -> PasswordRule? {
        let scalars = Array(password.secret.reveal().unicodeScalars)
        guard scalars.count >= minLength else { return .minimumLength(minLength) }
        guard scalars.count <= maxLength else { return .maximumLength(maxLength) }
        for kind in PasswordCharacters.allCases {
            let count = scalars.count(where: kind.includes)
            if let least = least[kind], count < least { return .minimum(kind, least) }
            if let most = most[kind], count > most { return .maximum(kind, most) }
        }
        let lower = String(String.UnicodeScalarView(scalars)).lowercased()
        if !sequences, PasswordSequences.isOne(lower) { return .sequence }
        if !common, CommonPasswords.contains(lower) { return .common }
        return nil
    }
}

/// Passwords that are one run.
enum PasswordSequences {
    private static let rows = [
        "01234567890", "abcdefghijklmnopqrstuvwxyz", "qwertyuiop", "qwertzuiop", "asdfghjkl", "zxcvbnm", "yxcvbnm",
        "147258369", "azertyuiop",
    ]

    /// Whether a text in small letters is a part of a row, forwards or backwards, or a piece that is repeated.
    static func isOne(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        for row in rows {
            let row = Array(row.utf8)
            if row.contains(bytes) || row.contains(bytes.reversed() as [UInt8]) { return true }
        }
        // One character, or 1212, or 123123.
        return (1...max(1, bytes.count / 2)).contains { length in
            bytes.count > length && bytes.count.isMultiple(of: length)
                && bytes.indices.allSatisfy { bytes[$0] == bytes[$0 % length] }
        }
    }
}
