/// What a QR code carries: the invitation to enrol a device.
package struct Invite: SignedContent {
    package static let type = MessageType.invite
    package let issuer: String
    package let pid: SigningID
    package let code: InviteCode
    /// The identity key that the device must find.
    package let identity: KeyThumbprint
    package let issuedAt: Int
    /// Until when it is good; at most 15 minutes later.
    package let expiresAt: Int

    package init(
        issuer: String, pid: SigningID, code: InviteCode, identity: KeyThumbprint, issuedAt: Int, expiresAt: Int
    ) {
        (self.issuer, self.pid, self.code, self.identity, self.issuedAt) = (issuer, pid, code, identity, issuedAt)
        self.expiresAt = expiresAt
    }

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("iss", \.issuer, .issuer)
        Member("pid", \.pid)
        Member("code", \.code)
        Member("idk", \.identity)
        Member("iat", \.issuedAt)
        Member("exp", \.expiresAt)
    }

    package func check(in reader: MemberReader) throws(SigningProtocolError) {
        guard expiresAt > issuedAt, expiresAt - issuedAt <= Self.lifetime else {
            throw .invalid("exp", "is not within 15 minutes after iat")
        }
    }

    /// The longest life of an invite in seconds.
    package static let lifetime = 15 * 60
}
