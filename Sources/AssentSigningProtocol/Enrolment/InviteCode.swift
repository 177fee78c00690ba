package import AssentCore
import AssentOTP
import Crypto

/// The secret of an invite, as people type it: 10 random bytes and their CRC-16/ARC in Base32, 20 characters.
package struct InviteCode: Hashable, Sendable, CustomStringConvertible {
    package static let byteCount = 10

    /// The canonical form: 20 characters `A`–`Z`, `2`–`7`, without hyphens.
    package let canonical: Secret

    package var description: String { "InviteCode" }

    /// The code of 10 random bytes; `nil` for another number of them.
    package init?(bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        canonical = Secret(Base32.encode(bytes + Frame.bigEndian(Self.crc(bytes))))
    }

    /// A new code.
    package init(random: any RandomSource) {
        let bytes = Array(random.bytes(Self.byteCount))
        canonical = Secret(Base32.encode(bytes + Frame.bigEndian(Self.crc(bytes))))
    }

    /// Reads the canonical form; `nil` when it is another one, or when the check sum is wrong.
    package init?(canonical text: String) {
        let isCanonical = text.utf8.allSatisfy {
            ($0.isASCIILetter && $0 != $0.asciiLowercased) || (UInt8(ascii: "2")...UInt8(ascii: "7")).contains($0)
        }
        guard text.utf8.count == 20, isCanonical, let bytes = Base32.decode(text), bytes.count == Self.byteCount + 2,
            Frame.bigEndian(Self.crc(Array(bytes.prefix(Self.byteCount)))) == Array(bytes.suffix(2))
        else { return nil }
        canonical = Secret(text)
    }

    /// Reads what a person typed: small letters, blanks and hyphens are taken, and 0, 1 and 8 are read as O, I and B.
    /// `nil` when the check sum is wrong: the server need not be asked.
    package init?(typed text: String) {
        guard text.utf8.count <= 100 else { return nil }
        var canonical = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "-", " ": continue
            case "0": canonical += "O"
            case "1": canonical += "I"
            case "8": canonical += "B"
            case "a"..."z": canonical.unicodeScalars.append(Unicode.Scalar(UInt8(scalar.value) & 0xDF))
            default: canonical.unicodeScalars.append(scalar)
            }
        }
        self.init(canonical: canonical)
    }

    /// The code in four groups of five, as it is shown to the user.
    package var shown: Secret {
        let bytes = canonical.revealBytes()
        let groups = stride(from: 0, to: bytes.count, by: 5).map {
            String(decoding: bytes[$0..<min($0 + 5, bytes.count)], as: UTF8.self)
        }
        return Secret(groups.joined(separator: "-"))
    }

    /// What a server keeps of a code, under a key from outside of the database: 32 bytes.
    package func lookup(key: Secret, issuer: String) -> [UInt8] {
        let frame = Frame("tsp/1 code", .text(issuer), .bytes(canonical.revealBytes()))
        return Array(HMAC<SHA256>.authenticationCode(for: frame.bytes, using: key.symmetricKey))
    }

    /// CRC-16/ARC, against mistyping; it protects from nothing else.
    static func crc(_ bytes: [UInt8]) -> UInt16 {
        var crc: UInt16 = 0
        for byte in bytes {
            crc ^= UInt16(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xA001 : crc >> 1 }
        }
        return crc
    }

    /// Hashes the code's bytes.
    package func hash(into hasher: inout Hasher) { hasher.combine(canonical.revealBytes()) }
}
