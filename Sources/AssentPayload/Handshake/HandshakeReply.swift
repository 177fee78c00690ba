import AssentCore

/// The server's answer to a ``HandshakeRequest``.
package struct HandshakeReply: Hashable, Sendable {
    /// The most bytes that are read.
    package static let sizeLimit = 4096
    /// The longest that a session may live, in seconds.
    package static let lifetimeLimit: Int64 = 43_200

    package let session: [UInt8]
    package let ephemeral: PayloadKey
    /// By which the server shows that it has the static key.
    package let confirmation: [UInt8]
    /// How long the session lives, in seconds.
    package let expires: Int64

    /// The server's.
    package init(_ secrets: PayloadSecrets, ephemeral: PayloadKey) {
        (session, confirmation, self.ephemeral) = (secrets.session, secrets.confirmation, ephemeral)
        expires = Self.lifetimeLimit
    }

    /// The client reads it.
    ///
    /// - Throws: ``PayloadError/malformedHandshake(_:)``.
    package init(body: [UInt8]) throws(PayloadError) {
        var members = try HandshakeMembers(body, limit: Self.sizeLimit)
        session = try members.bytes("session", count: PayloadSecrets.sessionLength)
        ephemeral = try PayloadKey(members.bytes("e", count: 32))
        confirmation = try members.bytes("confirm", count: 32)
        expires = try members.integer("expires", 1...Self.lifetimeLimit)
        try members.finish()
    }

    /// The JSON as it is sent.
    package var body: [UInt8] {
        JSONValue.object([
            "v": 1, "session": .string(Base64URL.encode(session)), "e": .string(Base64URL.encode(ephemeral.bytes)),
            "confirm": .string(Base64URL.encode(confirmation)), "expires": .integer(expires),
        ]).serializedBytes()
    }
}
