/// The device's first message: the invite's code and the new device key, which signs it.
package struct Start: SelfSignedContent {
    package static let type = MessageType.start
    package let issuer: String
    package let code: InviteCode
    package let nonce: String
    package let jwk: ProtocolKey
    package let modes: [ProtectionMode]
    /// What the device says of itself. Nobody should take it for proof.
    package let info: [String: String]

    package init(
        issuer: String, code: InviteCode, nonce: String, jwk: ProtocolKey, modes: [ProtectionMode],
        info: [String: String]
    ) {
        (self.issuer, self.code, self.nonce, self.jwk, self.modes, self.info) = (issuer, code, nonce, jwk, modes, info)
    }

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("aud", \.issuer, .issuer)
        Member("code", \.code)
        Member("nonce", \.nonce, .nonce)
        Member("jwk", \.jwk)
        Member("modes", \.modes, .choices(1...3))
        Member(
            "info", \.info, .shownTexts(limit: 12, names: infoNames.contains, count: 1...64, order: infoNames))
    }

    package var signer: ProtocolKey { jwk }

    /// What a device may say of itself.
    package static let infoNames = ["brand", "model", "os", "sdk", "locale", "keystore"]
}

/// The content of `start`'s body.
package struct StartBody: ShapedPart {
    package let start: String

    package init(start: String) { self.start = start }

    package static let shape = MessageShape<Self>(Self.init) { Member("start", \.start, .compact) }
}

/// The content of `commit`'s body.
package struct CommitBody: ShapedPart {
    package let commitment: SigningHash
    /// The hash of the offer that the device has accepted: the server may have replaced it since.
    package let offer: SigningHash

    package init(commitment: SigningHash, offer: SigningHash) { (self.commitment, self.offer) = (commitment, offer) }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("commitment", \.commitment)
        Member("offer", \.offer)
    }
}

/// The content of `complete`'s body.
package struct CompleteBody: ShapedPart {
    /// The signed key list.
    package let enrol: String
    package let name: String?
    package let pushId: String?
    /// At renewal, what old keys signed.
    package let endorsements: [String]?

    package init(enrol: String, name: String? = nil, pushId: String? = nil, endorsements: [String]? = nil) {
        (self.enrol, self.name, self.pushId, self.endorsements) = (enrol, name, pushId, endorsements)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("enrol", \.enrol, .compact)
        Member(optional: "name", \.name, .shown(1...128))
        Member(optional: "pushId", \.pushId, .ascii(1...1024))
        Member(optional: "endorsements", \.endorsements, .compacts(1...2))
    }
}

/// The content of `confirm`'s body at enrolment.
package struct ConfirmBody: ShapedPart {
    /// What `enrolled` had.
    package let echo: SigningNonce

    package init(echo: SigningNonce) { self.echo = echo }

    package static let shape = MessageShape<Self>(Self.init) { Member("echo", \.echo) }
}

/// The content of `evaluate`'s body.
package struct EvaluateBody: ShapedPart {
    package let slot: PasswordSlot
    package let generation: Int
    package let rid: SigningID
    package let blinded: [UInt8]

    package init(slot: PasswordSlot, generation: Int, rid: SigningID, blinded: [UInt8]) {
        (self.slot, self.generation, self.rid, self.blinded) = (slot, generation, rid, blinded)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("slot", \.slot)
        Member("gen", \.generation, .integer(0...1 << 31))
        Member("rid", \.rid)
        Member("blinded", \.blinded, .bytes(49))
    }
}

/// The content of `renew/start`'s body.
package struct RenewStartBody: ShapedPart {
    /// The code of an invite for this container, after a reset.
    package let code: InviteCode?

    package init(code: InviteCode? = nil) { self.code = code }

    package static let shape = MessageShape<Self>(Self.init) { Member(optional: "code", \.code) }
}
