import AssentCore
import Crypto

/// A server that gives nonces. Each knows its own only, since a nonce belongs to the server that gave it (RFC 9449
/// §8.2, §9).
package enum ProofServer: Sendable, Hashable, CaseIterable {
    /// The authorization server, with its token and userinfo endpoints.
    case authorizationServer
    /// The gateway before the protected services.
    case gateway

    fileprivate var purpose: MasterKey.Purpose {
        switch self {
        case .authorizationServer: .serverNonce
        case .gateway: .gatewayNonce
        }
    }
}

/// The nonces that clients put into their proofs (RFC 9449 §8): a time and its authentication code under the master
/// key. They are made and recognised without storage, by all nodes alike, and may be used many times.
struct DPoPNonces: Sendable {
    /// Milliseconds for which a nonce is valid. With the difference of two nodes' clocks that is 3 to 5 minutes.
    static let lifetime: Int64 = 240_000

    /// How far a node's clock may differ from the database server's, in milliseconds.
    static let tolerance = 1000 * NodeClocks.tolerance

    /// How far the clocks of two nodes may differ, in milliseconds.
    static let difference = 1000 * NodeClocks.difference

    private let clock: any WallClock
    /// It has taken the key in already, which is half of what it hashes for a time: a nonce comes with each proof.
    private let code: HMAC<SHA256>
    private static let tagLength = 16
    private static let textLength = Base64URL.length(of: 8 + tagLength)

    /// The times at which recent nonces were made: a client sends the same nonce with each proof until it gets another.
    /// Only nonces of this server are remembered.
    private let known = Locked(RecentValues<String, Int64>(generation: 1024))

    init(_ context: EngineContext, of server: ProofServer) {
        clock = context.clock
        code = HMAC<SHA256>(key: context.masterKey.derivedSecret(for: server.purpose).symmetricKey)
    }

    /// A new nonce: of now or, where `since` lies ahead by no more than the clocks of two nodes may differ, of that
    /// time, in milliseconds since 1970.
    func make(since: Int64 = 0) -> String {
        let now = clock.epochMilliseconds
        let time = Self.bytes(max(now, min(since, now + Self.difference)))
        return Base64URL.encode(time + tag(time))
    }

    /// When a nonce was made, in milliseconds since 1970; `nil` unless it is one of this server that is valid now.
    func madeAt(_ nonce: String) -> Int64? {
        guard let madeAt = time(in: nonce) else { return nil }
        let age = clock.epochMilliseconds - madeAt
        return age >= -Self.difference && age < Self.lifetime ? madeAt : nil
    }

    /// The time in a nonce of this server, however old it is.
    private func time(in nonce: String) -> Int64? {
        // A text that is equal to a remembered one, but written with other code points, is longer.
        guard nonce.utf8.count == Self.textLength else { return nil }
        if let madeAt = known.withLock({ $0.find(nonce) }) { return madeAt }
        guard let bytes = Base64URL.decode(nonce) else { return nil }
        let time = Array(bytes.prefix(8))
        guard ConstantTime.equal(tag(time), Array(bytes.dropFirst(8))) else { return nil }
        let madeAt = Int64(clamping: time.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
        known.withLock { $0.keep(madeAt, for: nonce) }
        return madeAt
    }

    /// Whether more than half of a nonce's life has passed: then a reply carries a new one.
    func isAging(madeAt: Int64) -> Bool { clock.epochMilliseconds - madeAt >= Self.lifetime / 2 }

    private func tag(_ time: [UInt8]) -> [UInt8] {
        var code = code
        code.update(data: time)
        return code.finalize().withUnsafeBytes { Array($0.prefix(Self.tagLength)) }
    }

    private static func bytes(_ value: Int64) -> [UInt8] {
        let value = UInt64(clamping: value)
        return (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
    }
}
