/// What a device trusts of an issuer: its identity key, and the online keys that this key has certified.
package struct IssuerTrust: Sendable {
    /// What a device knows of the identity key before it reads the configuration.
    package enum Anchor: Sendable {
        /// The key that it has pinned.
        case pinned(ProtocolKey)
        /// The thumbprint in an invite that was scanned.
        case thumbprint(KeyThumbprint)
        /// Nothing: a code was typed, and the digits will decide.
        case none
    }

    package let issuer: String

    /// The identity key that is to be pinned.
    package let identity: ProtocolKey

    /// The highest `min` that was ever seen: certificates of a lower generation count no more.
    package let minimum: Int

    /// The online keys' certificates that count, as they were sent.
    package let certificates: [SignedMessage<KeyCertificate>]

    /// Judges the configuration of the issuer that was asked for it, by the highest `min` that the device has seen.
    ///
    /// - Throws: ``SigningProtocolError`` with `wrongIssuer`, or `untrustedIdentity` when no chain leads from the
    ///   anchor to the identity key. Certificates that do not count are left out.
    package init(
        _ configuration: IssuerConfiguration, issuer: String, anchor: Anchor, minimum: Int = 1
    ) throws(SigningProtocolError) {
        guard StrictJSON.same(configuration.issuer, issuer) else {
            throw SigningProtocolError(.wrongIssuer, "The configuration is another issuer's.", member: "iss")
        }
        self.issuer = issuer
        identity = configuration.identity
        try Self.check(configuration, issuer, anchor)
        let valid = Self.valid(configuration.certificates, issuer, identity)
        let floor = valid.reduce(minimum) { max($0, $1.content.minimum) }
        self.minimum = floor
        certificates = valid.filter { $0.content.generation >= floor }
    }

    /// What a device has stored.
    package init(
        issuer: String, identity: ProtocolKey, minimum: Int, certificates: [String]
    ) throws(SigningProtocolError) {
        (self.issuer, self.identity, self.minimum) = (issuer, identity, minimum)
        self.certificates = Self.valid(certificates, issuer, identity).filter { $0.content.generation >= minimum }
    }

    private static func valid(
        _ certificates: [String], _ issuer: String, _ identity: ProtocolKey
    ) -> [SignedMessage<KeyCertificate>] {
        certificates.compactMap { compact in
            // One that is not good counts for nothing, and takes nothing from the others.
            guard let certificate = try? SignedMessage<KeyCertificate>(compact, key: identity),
                StrictJSON.same(certificate.content.issuer, issuer)
            else { return nil }
            return certificate
        }
    }

    /// Walks from the pinned key over `next` to the identity key: each step is signed by the key before it.
    private static func check(
        _ configuration: IssuerConfiguration, _ issuer: String, _ anchor: Anchor
    ) throws(SigningProtocolError) {
        let target = configuration.identity
        let untrusted = SigningProtocolError(
            .untrustedIdentity, "The server's identity key is not the one that this device trusts, or its successor.")
        switch anchor {
        case .none: return
        case .thumbprint(let thumbprint):
            guard thumbprint == target.thumbprint else { throw untrusted }
        case .pinned(let pinned):
            let steps = configuration.next.compactMap { try? UnverifiedMessage<NextIdentity>($0) }
            var current = pinned
            var sequence: Int?
            while current != target {
                guard let step = steps.first(where: { $0.kid == current.thumbprint }),
                    let content = try? step.verified(with: current).content, StrictJSON.same(content.issuer, issuer),
                    sequence.map({ $0 + 1 == content.sequence }) ?? true
                else { throw untrusted }
                (current, sequence) = (content.jwk, content.sequence)
            }
        }
    }
}

extension IssuerTrust {
    /// The certificates of an online key that signs: several if it was certified again.
    package func signers(_ kid: KeyThumbprint) -> [KeyCertificate] {
        certificates.map(\.content).filter { $0.use == .sig && $0.jwk.thumbprint == kid }
    }

    /// The key to which requests are encrypted: the newest one.
    package var encryptionKey: ProtocolKey? {
        certificates.map(\.content).filter { $0.use == .enc }.max { $0.generation < $1.generation }?.jwk
    }

    /// Verifies a message of the server. What it says is then the server's word.
    ///
    /// - Throws: ``SigningProtocolError`` with `unknownKey` or `outsideCertificate` when the configuration should be
    ///   read again.
    package func verified<Content: ServerContent>(
        _ compact: String, as type: Content.Type = Content.self
    ) throws(SigningProtocolError) -> SignedMessage<Content> {
        let message = try UnverifiedMessage<Content>(compact)
        let signers = signers(message.kid)
        guard let key = signers.first?.jwk else {
            throw SigningProtocolError(.unknownKey, "The key that signed the message is not certified.")
        }
        let verified = try message.verified(with: key)
        guard StrictJSON.same(verified.content.issuer, issuer) else {
            throw SigningProtocolError(.wrongIssuer, "The message is another issuer's.", member: "iss")
        }
        if let issuedAt = verified.content.madeAt, !signers.contains(where: { $0.covers(issuedAt) }) {
            throw SigningProtocolError(
                .outsideCertificate, "The message was not made within the time of a certificate of the key.",
                member: "iat")
        }
        return verified
    }

    /// Verifies a reply, also that it is for this device and answers the request with this hash. `audience` is the
    /// container's `did`, or for an offer the thumbprint of the device key.
    ///
    /// - Throws: ``SigningProtocolError``. The caller must ignore a reply that fails.
    package func reply<Content: ReplyContent>(
        _ compact: String, as type: Content.Type = Content.self, audience: String, request: SigningHash
    ) throws(SigningProtocolError) -> SignedMessage<Content> {
        let reply = try verified(compact, as: Content.self)
        guard StrictJSON.same(reply.content.head.audience, audience) else {
            throw SigningProtocolError(.wrongAudience, "The reply is for somebody else.", member: "aud")
        }
        guard reply.content.head.request == request else {
            throw SigningProtocolError(.wrongRequest, "The reply is to another request.", member: "rqh")
        }
        return reply
    }
}
