/// What a container signs to have its user signed in at the OAuth provider of the issuer's realm (TSP/1 "Logins"):
/// an `auth` key of an assisted slot that a PIN has just opened, or the device key for a user who is only remembered.
package struct LoginAssertion: SignedContent {
    package static let type = MessageType.login

    /// Seconds from `iat` to `exp`.
    package static let lifetime = 60

    /// The container that has signed it.
    package let did: SigningID
    package let sub: String
    /// The issuer of the OAuth provider, not the one of transaction signing.
    package let audience: String
    /// The key of the app's installation, whose proof is in the same request.
    package let jkt: KeyThumbprint
    /// The nonce of that proof.
    package let nonce: String
    /// The confirmed evaluation that opened the key; absent for a login by the device key.
    package let unl: SigningID?
    package let jti: SigningID
    /// By the device's clock, corrected by the server's.
    package let issuedAt: Int
    package let expiresAt: Int

    /// A login that is valid for a minute.
    package init(
        did: SigningID, sub: String, audience: String, jkt: KeyThumbprint, nonce: String, unl: SigningID?,
        jti: SigningID, issuedAt: Int
    ) {
        self.init(did, sub, audience, jkt, nonce, unl, jti, issuedAt, issuedAt + Self.lifetime)
    }

    private init(
        _ did: SigningID, _ sub: String, _ audience: String, _ jkt: KeyThumbprint, _ nonce: String, _ unl: SigningID?,
        _ jti: SigningID, _ issuedAt: Int, _ expiresAt: Int
    ) {
        (self.did, self.sub, self.audience, self.jkt, self.nonce) = (did, sub, audience, jkt, nonce)
        (self.unl, self.jti, self.issuedAt, self.expiresAt) = (unl, jti, issuedAt, expiresAt)
    }

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("iss", \.did)
        Member("sub", \.sub, .ascii(1...64))
        Member("aud", \.audience, .ascii(1...512))
        Member("jkt", \.jkt)
        Member("nonce", \.nonce, .nonce)
        Member(optional: "unl", \.unl)
        Member("jti", \.jti)
        Member("iat", \.issuedAt)
        Member("exp", \.expiresAt)
    }

    package func check(in reader: MemberReader) throws(SigningProtocolError) {
        guard issuedAt <= StrictJSON.maximumInteger - Self.lifetime, expiresAt == issuedAt + Self.lifetime else {
            throw .invalid("exp", "is not \(Self.lifetime) seconds after iat")
        }
    }
}
