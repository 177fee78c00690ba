/// What an online key is for.
package enum OnlineKeyUse: String, Hashable, MemberValue, CaseIterable {
    case sig
    /// Requests are encrypted to it.
    case enc
}

/// A certificate of an online key, by the identity key.
package struct KeyCertificate: SignedContent {
    package static let type = MessageType.certificate
    package let issuer: String
    /// From when on the key counts.
    package let issuedAt: Int
    /// Until when the key counts; at most 400 days later.
    package let expiresAt: Int
    package let use: OnlineKeyUse
    /// Counts the online keys of the issuer.
    package let generation: Int
    /// Certificates of a lower generation count no more.
    package let minimum: Int
    package let jwk: ProtocolKey

    package init(
        issuer: String, issuedAt: Int, expiresAt: Int, use: OnlineKeyUse, generation: Int, minimum: Int,
        jwk: ProtocolKey
    ) {
        (self.issuer, self.issuedAt, self.expiresAt, self.use) = (issuer, issuedAt, expiresAt, use)
        (self.generation, self.minimum, self.jwk) = (generation, minimum, jwk)
    }

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("iss", \.issuer, .issuer)
        Member("iat", \.issuedAt)
        Member("exp", \.expiresAt)
        Member("use", \.use)
        Member("gen", \.generation, .integer(1...1 << 31))
        Member("min", \.minimum, .integer(1...1 << 31))
        Member("jwk", \.jwk)
    }

    package func check(in reader: MemberReader) throws(SigningProtocolError) {
        guard expiresAt > issuedAt, expiresAt - issuedAt <= Self.lifetime else {
            throw .invalid("exp", "is not within 400 days after iat")
        }
        guard minimum <= generation else { throw .invalid("min", "is greater than gen") }
    }

    /// The longest life of a certificate in seconds.
    package static let lifetime = 400 * 86400

    /// Whether the key counted at this time.
    package func covers(_ time: Int) -> Bool { (issuedAt...expiresAt).contains(time) }
}

/// The identity key's successor, signed by the key before it.
package struct NextIdentity: SignedContent {
    package static let type = MessageType.next
    package let issuer: String
    package let issuedAt: Int
    /// Counts from 1 without gaps.
    package let sequence: Int
    package let jwk: ProtocolKey

    package init(issuer: String, issuedAt: Int, sequence: Int, jwk: ProtocolKey) {
        (self.issuer, self.issuedAt, self.sequence, self.jwk) = (issuer, issuedAt, sequence, jwk)
    }

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("iss", \.issuer, .issuer)
        Member("iat", \.issuedAt)
        Member("seq", \.sequence, .integer(1...16))
        Member("jwk", \.jwk)
    }
}

/// The identity key's predecessor, signed by the new key.
package struct PreviousIdentity: SignedContent {
    package static let type = MessageType.previous
    package let issuer: String
    package let issuedAt: Int
    /// That of the `next` that led here.
    package let sequence: Int
    package let jwk: ProtocolKey
    /// It vouches for what was signed up to this time.
    package let until: Int

    package init(issuer: String, issuedAt: Int, sequence: Int, jwk: ProtocolKey, until: Int) {
        (self.issuer, self.issuedAt, self.sequence, self.jwk, self.until) = (issuer, issuedAt, sequence, jwk, until)
    }

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("iss", \.issuer, .issuer)
        Member("iat", \.issuedAt)
        Member("seq", \.sequence, .integer(1...16))
        Member("jwk", \.jwk)
        Member("until", \.until)
    }
}
