package import AssentCore
package import Crypto

/// The ids of sessions: 8 random bytes and 8 of a code that only the nodes can make, so that a guess costs a node no
/// look at the database.
package struct SessionName: Sendable {
    private static let randomLength = 8
    private let key: SymmetricKey

    /// - Parameter key: the one of all nodes.
    package init(key: SymmetricKey) { self.key = key }

    package func make(random: some RandomSource) -> [UInt8] {
        let bytes = random.bytes(Self.randomLength)
        return bytes + code(bytes)
    }

    /// Whether a node has made this id.
    package func isOurs(_ session: [UInt8]) -> Bool {
        guard session.count == PayloadSecrets.sessionLength else { return false }
        return ConstantTime.equal(code(session.prefix(Self.randomLength)), session.dropFirst(Self.randomLength))
    }

    private func code(_ bytes: some Collection<UInt8>) -> [UInt8] {
        let framed = Frame("assent pe1 session", .bytes(Array(bytes))).bytes
        return Array(HMAC<SHA256>.authenticationCode(for: framed, using: key).prefix(8))
    }
}
