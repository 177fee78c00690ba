package import AssentCore

/// What a QR code carries: the invitation to enrol a device.
package struct Invite: SignedContent {
    /// `tsp-invite+jwt`.
    package static let type = MessageType.invite

    /// The issuer.
    package let issuer: String
    /// The invite's id.
    package let pid: SigningID
    /// The secret.
    package let code: InviteCode
    /// The identity key that the device must find.
    package let identity: KeyThumbprint
    /// When it was made.
    package let issuedAt: Int
    /// Until when it is good; at most 15 minutes later.
    package let expiresAt: Int

    /// The content with these members; the reader checks their bounds.
    package init(
        issuer: String, pid: SigningID, code: InviteCode, identity: KeyThumbprint, issuedAt: Int, expiresAt: Int
    ) {
        self.issuer = issuer
        self.pid = pid
        self.code = code
        self.identity = identity
        self.issuedAt = issuedAt
        self.expiresAt = expiresAt
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        try reader.version()
        issuer = try reader.issuer("iss")
        pid = try reader.fixed("pid")
        code = try reader.inviteCode("code")
        identity = try reader.fixed("idk")
        issuedAt = try reader.integer("iat")
        expiresAt = try reader.integer("exp")
        guard expiresAt > issuedAt, expiresAt - issuedAt <= Self.lifetime else {
            throw .invalid("exp", "is not within 15 minutes after iat")
        }
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "v": 1, "iss": .string(issuer), "pid": pid.json, "code": .string(code.canonical.reveal()),
            "idk": identity.json, "iat": .integer(issuedAt), "exp": .integer(expiresAt),
        ])
    }

    /// The longest life of an invite in seconds.
    package static let lifetime = 15 * 60
}
