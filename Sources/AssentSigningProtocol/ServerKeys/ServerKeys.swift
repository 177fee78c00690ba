package import AssentCore

/// What an online key is for.
package enum OnlineKeyUse: String, Hashable, Sendable, CaseIterable {
    /// Signing messages.
    case sig
    /// Requests are encrypted to it.
    case enc
}

/// A certificate of an online key, by the identity key.
package struct KeyCertificate: SignedContent {
    /// `tsp-cert+jwt`.
    package static let type = MessageType.certificate

    /// The issuer.
    package let issuer: String
    /// From when on the key counts.
    package let issuedAt: Int
    /// Until when the key counts; at most 400 days later.
    package let expiresAt: Int
    /// What the key is for.
    package let use: OnlineKeyUse
    /// Counts the online keys of the issuer.
    package let generation: Int
    /// Certificates of a lower generation count no more.
    package let minimum: Int
    /// The online key.
    package let jwk: ProtocolKey

    /// The content with these members; the reader checks their bounds.
    package init(
        issuer: String, issuedAt: Int, expiresAt: Int, use: OnlineKeyUse, generation: Int, minimum: Int,
        jwk: ProtocolKey
    ) {
        self.issuer = issuer
        self.issuedAt = issuedAt
        self.expiresAt = expiresAt
        self.use = use
        self.generation = generation
        self.minimum = minimum
        self.jwk = jwk
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        try reader.version()
        issuer = try reader.issuer("iss")
        issuedAt = try reader.integer("iat")
        expiresAt = try reader.integer("exp")
        use = try reader.choice("use")
        generation = try reader.integer("gen", 1...1 << 31)
        minimum = try reader.integer("min", 1...1 << 31)
        jwk = try reader.key("jwk")
        guard expiresAt > issuedAt, expiresAt - issuedAt <= Self.lifetime else {
            throw .invalid("exp", "is not within 400 days after iat")
        }
        guard minimum <= generation else { throw .invalid("min", "is greater than gen") }
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "v": 1, "iss": .string(issuer), "iat": .integer(issuedAt), "exp": .integer(expiresAt), "use": use.json,
            "gen": .integer(generation), "min": .integer(minimum), "jwk": jwk.json,
        ])
    }

    /// The longest life of a certificate in seconds.
    package static let lifetime = 400 * 86400

    /// Whether the key counted at this time.
    package func covers(_ time: Int) -> Bool { (issuedAt...expiresAt).contains(time) }
}

/// The identity key's successor, signed by the key before it.
package struct NextIdentity: SignedContent {
    /// `tsp-next+jwt`.
    package static let type = MessageType.next

    /// The issuer.
    package let issuer: String
    /// When it was made.
    package let issuedAt: Int
    /// Counts from 1 without gaps.
    package let sequence: Int
    /// The new key.
    package let jwk: ProtocolKey

    /// The content with these members; the reader checks their bounds.
    package init(
        issuer: String, issuedAt: Int, sequence: Int, jwk: ProtocolKey
    ) {
        self.issuer = issuer
        self.issuedAt = issuedAt
        self.sequence = sequence
        self.jwk = jwk
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        try reader.version()
        issuer = try reader.issuer("iss")
        issuedAt = try reader.integer("iat")
        sequence = try reader.integer("seq", 1...16)
        jwk = try reader.key("jwk")
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "v": 1, "iss": .string(issuer), "iat": .integer(issuedAt), "seq": .integer(sequence), "jwk": jwk.json,
        ])
    }
}

/// The identity key's predecessor, signed by the new key.
package struct PreviousIdentity: SignedContent {
    /// `tsp-previous+jwt`.
    package static let type = MessageType.previous

    /// The issuer.
    package let issuer: String
    /// When it was made.
    package let issuedAt: Int
    /// That of the `next` that led here.
    package let sequence: Int
    /// The old key.
    package let jwk: ProtocolKey
    /// It vouches for what was signed up to this time.
    package let until: Int

    /// The content with these members; the reader checks their bounds.
    package init(
        issuer: String, issuedAt: Int, sequence: Int, jwk: ProtocolKey, until: Int
    ) {
        self.issuer = issuer
        self.issuedAt = issuedAt
        self.sequence = sequence
        self.jwk = jwk
        self.until = until
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        try reader.version()
        issuer = try reader.issuer("iss")
        issuedAt = try reader.integer("iat")
        sequence = try reader.integer("seq", 1...16)
        jwk = try reader.key("jwk")
        until = try reader.integer("until")
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "v": 1, "iss": .string(issuer), "iat": .integer(issuedAt), "seq": .integer(sequence), "jwk": jwk.json,
            "until": .integer(until),
        ])
    }
}
