import AssentCore

/// The first message of a session (docs/payload-encryption.md, "Handshake"): who the client is, which static key it
/// takes, and its ephemeral key.
package struct HandshakeRequest: Hashable, Sendable {
    /// The most bytes that are read.
    package static let sizeLimit = 4096

    /// The static key's name.
    package let kid: String
    package let ephemeral: PayloadKey
    package let role: PayloadPeer.Role
    /// The client id of the installation; `nil` for ``PayloadPeer/Role/app``.
    package let client: String?
    package let app: String
    package let version: String
    package let platform: String
    /// The JSON as it is sent: a proof counts for these bytes.
    package let body: [UInt8]

    /// The client's.
    ///
    /// - Throws: ``PayloadError/malformedHandshake(_:)`` when `peer` cannot be said in a handshake.
    package init(_ peer: PayloadPeer, kid: String, ephemeral: PayloadKey) throws(PayloadError) {
        guard (peer.role == .device) == (peer.client != nil) else {
            throw .malformedHandshake("a device has a client id, and nothing else has one")
        }
        for (name, text) in [("app", peer.app), ("version", peer.version), ("platform", peer.platform)] {
            try HandshakeText.check(text, name)
        }
        if let client = peer.client { try HandshakeText.check(client, "client") }
        (self.kid, self.ephemeral, role, client) = (kid, ephemeral, peer.role, peer.client)
        (app, version, platform) = (peer.app, peer.version, peer.platform)
        body = JSONValue(omittingNil: [
            "v": 1, "kid": .string(kid), "e": .string(Base64URL.encode(ephemeral.bytes)),
            "role": .string(peer.role.rawValue), "app": .string(peer.app), "version": .string(peer.version),
            "platform": .string(peer.platform), "client": peer.client.map { .string($0) },
        ]).serializedBytes()
    }

    /// The server reads it.
    ///
    /// - Throws: ``PayloadError/malformedHandshake(_:)``.
    package init(body: [UInt8]) throws(PayloadError) {
        var members = try HandshakeMembers(body, limit: Self.sizeLimit)
        kid = Base64URL.encode(try members.bytes("kid", count: 32))
        ephemeral = try PayloadKey(members.bytes("e", count: 32))
        guard let role = PayloadPeer.Role(rawValue: try members.text("role")) else {
            throw .malformedHandshake("role is not known")
        }
        self.role = role
        app = try members.text("app")
        version = try members.text("version")
        platform = try members.text("platform")
        // For an app, a client is a member that is not known.
        client = role == .device ? try members.text("client") : nil
        try members.finish()
        self.body = body
    }

    /// The claim `pe` of the proof that stands beside the body: base64url of its SHA-256.
    package var claim: String { Base64URL.encode(SHA2.sha256(body)) }

    /// Who the session is between.
    package func peer(at origin: String) -> PayloadPeer {
        PayloadPeer(role: role, origin: origin, client: client, app: app, version: version, platform: platform)
    }
}
