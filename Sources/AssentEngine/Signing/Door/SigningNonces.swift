import AssentCore
import AssentSigningProtocol
import AssentStore
import Crypto

/// The nonces that devices put into their proofs: made and recognised without storage, by all nodes alike.
package struct SigningNonces: Sendable {
    /// Seconds for which a nonce counts.
    package static let lifetime: Int64 = 300

    /// For how many seconds a nonce may lie ahead.
    static let lead = NodeClocks.tolerance

    private let context: EngineContext
    private let issuer: SigningIssuer

    package init(_ context: EngineContext, issuer: SigningIssuer) {
        (self.context, self.issuer) = (context, issuer)
    }

    /// A new nonce.
    package func make() -> String {
        let time = UInt64(clamping: context.clock.epochSeconds)
        let random = context.random.bytes(8)
        return Base64URL.encode(Self.bytes(time) + random + tag(time: time, random: random))
    }

    /// Whether this is a nonce of this issuer that counts now.
    package func accepts(_ nonce: String) -> Bool { madeAt(nonce) != nil }

    /// When a nonce was made, in seconds since 1970; `nil` unless it is one of this issuer that counts now.
    package func madeAt(_ nonce: String) -> Int64? {
        guard let bytes = Base64URL.decode(nonce), bytes.count == 32 else { return nil }
        let time = bytes.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard ConstantTime.equal(tag(time: time, random: Array(bytes[8..<16])), Array(bytes[16...])) else {
            return nil
        }
        let age = context.clock.epochSeconds - Int64(clamping: time)
        return age >= -Self.lead && age < Self.lifetime ? Int64(clamping: time) : nil
    }

    /// The name under which the time of a restore stands among the spent proofs. No proof has it: ids have 22
    /// characters.
    private static let restored = "restored"

    /// For how many seconds after the latest nonce that is refused the time of a restore is remembered: for as long as
    /// any node takes that nonce, also when one whose clock is ahead deletes what is over.
    private static let memory = lifetime + NodeClocks.difference

    /// The statement that has nonces refused that may have been made before a restore, by whichever node: what was
    /// proved with them may have been done, and the backup does not know it.
    static func refusingEarlier(at now: Int64) -> SQLStatement {
        SQLStatement(
            """
            INSERT INTO signing_proofs (jti, did, expires_at)
            VALUES (\(restored), '', \(now + NodeClocks.difference + memory))
            ON CONFLICT (jti) DO UPDATE SET expires_at = excluded.expires_at RETURNING jti
            """)
    }

    /// The statement that finds, as a row, a restore before which a nonce may have been made.
    static func restore(after madeAt: Int64) -> SQL {
        "SELECT jti FROM signing_proofs WHERE jti = \(restored) AND expires_at - \(memory) >= \(madeAt)"
    }

    private func tag(time: UInt64, random: [UInt8]) -> [UInt8] {
        let key = context.masterKey.derivedSecret(for: .signingNonce).symmetricKey
        let frame = Frame("tsp/1 nonce", .text(issuer.name), .integer(time), .bytes(random))
        return Array(HMAC<SHA256>.authenticationCode(for: frame.bytes, using: key).prefix(16))
    }

    private static func bytes(_ value: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
    }
}
