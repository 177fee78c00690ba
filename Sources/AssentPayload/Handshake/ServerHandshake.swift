package import AssentCore
package import Crypto
package import Foundation

/// A static key of the server.
package struct ServerPayloadKey: Sendable {
    package let key: Curve25519.KeyAgreement.PrivateKey
    /// From when on no handshake takes it.
    package let notAfter: Date
    /// The public half, and its name, which is a hash. They are the same in each handshake, so they are made once.
    package let publicKey: PayloadKey
    package let kid: String

    package init(_ key: Curve25519.KeyAgreement.PrivateKey, notAfter: Date) {
        (self.key, self.notAfter) = (key, notAfter)
        publicKey = PayloadKey(of: key)
        kid = publicKey.kid
    }
}

/// The server's side of a handshake. Between its two steps the caller verifies and spends the proof of a device, so
/// that nobody makes the server agree on keys, or store a session, with somebody else's name.
package struct ServerHandshake: Sendable {
    package let request: HandshakeRequest
    private let key: ServerPayloadKey

    /// The first step: whether the server has the key.
    ///
    /// - Throws: ``PayloadRefusal/unknownKey``, also for a key whose time is over.
    package init(_ request: HandshakeRequest, keys: [ServerPayloadKey], now: Date) throws(PayloadRefusal) {
        guard let key = keys.first(where: { $0.kid == request.kid && now < $0.notAfter }) else { throw .unknownKey }
        (self.request, self.key) = (request, key)
    }

    /// The second step.
    ///
    /// - Parameters:
    ///   - prover: the client id whose registered key has made the proof beside ``HandshakeRequest/body``, with its
    ///     ``HandshakeRequest/claim``, and whose proof is spent; `nil` when no proof was verified.
    ///   - origin: the listener's.
    ///   - session: ``SessionName/make(random:)``.
    ///   - random: of the ephemeral key.
    /// - Returns: what is sent, and what the node keeps.
    /// - Throws: ``PayloadRefusal/badProof`` for a device that has not proved its key, ``PayloadRefusal/malformed`` for
    ///   a key that agrees on nothing.
    package func finish(
        prover: String?, origin: String, session: [UInt8], random: some RandomSource
    ) throws(PayloadRefusal) -> (reply: HandshakeReply, secrets: PayloadSecrets) {
        guard prover == request.client else { throw .badProof }
        do throws(PayloadError) {
            let ephemeral = try Curve25519.KeyAgreement.PrivateKey.ephemeral(random)
            let secrets = try PayloadSecrets(
                peer: request.peer(at: origin), staticKey: key, ephemeral: ephemeral,
                clientEphemeral: request.ephemeral, session: session)
            return (HandshakeReply(secrets, ephemeral: PayloadKey(of: ephemeral)), secrets)
        } catch {
            throw error.refusal
        }
    }
}
