package import AssentCore
import Crypto

/// The client's side of a handshake: it makes the request, and believes the reply only when the server has confirmed
/// the key that the client knew before.
package struct ClientHandshake: Sendable {
    package let request: HandshakeRequest
    private let peer: PayloadPeer
    private let serverKey: PayloadKey
    private let ephemeral: Curve25519.KeyAgreement.PrivateKey

    /// - Throws: ``PayloadError/malformedHandshake(_:)`` when `peer` cannot be said in a handshake.
    package init(_ peer: PayloadPeer, serverKey: PayloadKey, random: some RandomSource) throws(PayloadError) {
        ephemeral = try .ephemeral(random)
        request = try HandshakeRequest(peer, kid: serverKey.kid, ephemeral: PayloadKey(of: ephemeral))
        (self.peer, self.serverKey) = (peer, serverKey)
    }

    /// What was agreed on, and for how many seconds.
    ///
    /// - Throws: ``PayloadError/malformedHandshake(_:)``, ``PayloadError/badKey``, ``PayloadError/notConfirmed``:
    ///   nothing may be sent then.
    package func finish(_ body: [UInt8]) throws(PayloadError) -> (secrets: PayloadSecrets, expires: Int64) {
        let reply = try HandshakeReply(body: body)
        let secrets = try PayloadSecrets(
            peer: peer, ephemeral: ephemeral, serverKey: serverKey, serverEphemeral: reply.ephemeral,
            session: reply.session)
        guard ConstantTime.equal(secrets.confirmation, reply.confirmation) else { throw .notConfirmed }
        return (secrets, reply.expires)
    }
}

extension Curve25519.KeyAgreement.PrivateKey {
    /// A key for one handshake.
    static func ephemeral(_ random: some RandomSource) throws(PayloadError) -> Self {
        do { return try Self(rawRepresentation: random.bytes(32)) } catch { throw .badKey }
    }
}
