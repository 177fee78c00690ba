import AssentCore
package import Crypto

/// The keys of one session (docs/payload-encryption.md, "Keys"): one for each direction, and the server's confirmation.
package struct PayloadSecrets: Sendable {
    /// The bytes of a session's id.
    package static let sessionLength = 16

    package let session: [UInt8]
    package let request: SymmetricKey
    package let reply: SymmetricKey
    package let confirmation: [UInt8]

    /// The client's, from its ephemeral key.
    ///
    /// - Throws: ``PayloadError/badKey``.
    package init(
        peer: PayloadPeer, ephemeral: Curve25519.KeyAgreement.PrivateKey, serverKey: PayloadKey,
        serverEphemeral: PayloadKey, session: [UInt8]
    ) throws(PayloadError) {
        let shared = try serverKey.agree(with: ephemeral) + serverEphemeral.agree(with: ephemeral)
        self.init(
            peer: peer, static: (key: serverKey, kid: serverKey.kid), client: PayloadKey(of: ephemeral),
            server: serverEphemeral, session: session, shared: shared)
    }

    /// The server's, from its static and its ephemeral key.
    ///
    /// - Throws: ``PayloadError/badKey``.
    package init(
        peer: PayloadPeer, staticKey: ServerPayloadKey, ephemeral: Curve25519.KeyAgreement.PrivateKey,
        clientEphemeral: PayloadKey, session: [UInt8]
    ) throws(PayloadError) {
        let shared = try clientEphemeral.agree(with: staticKey.key) + clientEphemeral.agree(with: ephemeral)
        self.init(
            peer: peer, static: (key: staticKey.publicKey, kid: staticKey.kid), client: clientEphemeral,
            server: PayloadKey(of: ephemeral), session: session, shared: shared)
    }

    private init(
        peer: PayloadPeer, static serverKey: (key: PayloadKey, kid: String), client: PayloadKey, server: PayloadKey,
        session: [UInt8], shared: [UInt8]
    ) {
        let transcript = SHA2.sha256(
            Frame(
                "assent pe1", .text(peer.role.rawValue), .text(peer.origin), .text(serverKey.kid),
                .bytes(serverKey.key.bytes), .bytes(client.bytes), .bytes(server.bytes), .text(peer.client ?? ""),
                .text(peer.app), .text(peer.version), .text(peer.platform), .bytes(session)
            ).bytes)
        let root = HKDF<SHA256>.extract(inputKeyMaterial: SymmetricKey(data: shared), salt: transcript)
        let expand = { (label: String) in
            HKDF<SHA256>.expand(pseudoRandomKey: root, info: Frame(label).bytes, outputByteCount: 32)
        }
        self.session = session
        request = expand("assent pe1 request")
        reply = expand("assent pe1 reply")
        confirmation = expand("assent pe1 confirm").withUnsafeBytes { Array($0) }
    }
}
