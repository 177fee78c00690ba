package import AssentCore

/// The device's first message: the invite's code and the new device key, which signs it.
package struct Start: SelfSignedContent {
    /// `tsp-start+jwt`.
    package static let type = MessageType.start

    /// The issuer.
    package let issuer: String
    /// The invite's code.
    package let code: InviteCode
    /// A nonce of the server.
    package let nonce: String
    /// The device key.
    package let jwk: ProtocolKey
    /// What the device can do.
    package let modes: [ProtectionMode]
    /// What the device says of itself. Nobody should take it for proof.
    package let info: [String: String]

    /// The content with these members; the reader checks their bounds.
    package init(
        issuer: String, code: InviteCode, nonce: String, jwk: ProtocolKey, modes: [ProtectionMode],
        info: [String: String]
    ) {
        self.issuer = issuer
        self.code = code
        self.nonce = nonce
        self.jwk = jwk
        self.modes = modes
        self.info = info
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        try reader.version()
        issuer = try reader.issuer("aud")
        code = try reader.inviteCode("code")
        nonce = try reader.nonce("nonce")
        jwk = try reader.key("jwk")
        modes = try reader.choices("modes", 1...3)
        info = try reader.shownTexts("info", limit: 12, names: Start.infoNames.contains, count: 1...64)
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "v": 1, "aud": .string(issuer), "code": .string(code.canonical.reveal()), "nonce": .string(nonce),
            "jwk": jwk.json, "modes": modes.jsonArray(\.json), "info": .texts(info, order: Self.infoNames),
        ])
    }

    /// The device key.
    package var signer: ProtocolKey { jwk }

    /// What a device may say of itself.
    package static let infoNames = ["brand", "model", "os", "sdk", "locale", "keystore"]
}

/// The content of `start`'s body.
package struct StartBody: MessagePart {
    /// The signed message.
    package let start: String

    /// The content with these members; the reader checks their bounds.
    package init(
        start: String
    ) {
        self.start = start
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        start = try reader.compact("start")
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "start": .string(start)
        ])
    }
}

/// The content of `commit`'s body.
package struct CommitBody: MessagePart {
    /// The commitment.
    package let commitment: SigningHash

    /// The content with these members; the reader checks their bounds.
    package init(
        commitment: SigningHash
    ) {
        self.commitment = commitment
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        commitment = try reader.fixed("commitment")
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "commitment": commitment.json
        ])
    }
}

/// The content of `complete`'s body.
package struct CompleteBody: MessagePart {
    /// The signed key list.
    package let enrol: String
    /// What the container is to be called.
    package let name: String?
    /// Where push messages go.
    package let pushId: String?
    /// At renewal, what old keys signed.
    package let endorsements: [String]?

    /// The content with these members; the reader checks their bounds.
    package init(
        enrol: String, name: String? = nil, pushId: String? = nil, endorsements: [String]? = nil
    ) {
        self.enrol = enrol
        self.name = name
        self.pushId = pushId
        self.endorsements = endorsements
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        enrol = try reader.compact("enrol")
        name = reader.has("name") ? try reader.shown("name", 1...128) : nil
        pushId = reader.has("pushId") ? try reader.ascii("pushId", 1...1024) : nil
        endorsements = reader.has("endorsements") ? try reader.compacts("endorsements", 1...2) : nil
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "enrol": .string(enrol), "name": name.map { .string($0) }, "pushId": pushId.map { .string($0) },
            "endorsements": endorsements.map { $0.jsonArray(JSONValue.string) },
        ])
    }
}

/// The content of `confirm`'s body at enrolment.
package struct ConfirmBody: MessagePart {
    /// What `enrolled` had.
    package let echo: SigningNonce

    /// The content with these members; the reader checks their bounds.
    package init(
        echo: SigningNonce
    ) {
        self.echo = echo
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        echo = try reader.fixed("echo")
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "echo": echo.json
        ])
    }
}

/// The content of `evaluate`'s body.
package struct EvaluateBody: MessagePart {
    /// The password's slot.
    package let slot: PasswordSlot
    /// The slot's generation.
    package let generation: Int
    /// The request's id.
    package let rid: SigningID
    /// The blinded element.
    package let blinded: [UInt8]

    /// The content with these members; the reader checks their bounds.
    package init(
        slot: PasswordSlot, generation: Int, rid: SigningID, blinded: [UInt8]
    ) {
        self.slot = slot
        self.generation = generation
        self.rid = rid
        self.blinded = blinded
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        slot = try reader.choice("slot")
        generation = try reader.integer("gen", 0...1 << 31)
        rid = try reader.fixed("rid")
        blinded = try reader.bytes("blinded", count: 49)
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "slot": slot.json, "gen": .integer(generation), "rid": rid.json,
            "blinded": .string(Base64URL.encode(blinded)),
        ])
    }
}

/// The content of `renew/start`'s body.
package struct RenewStartBody: MessagePart {
    /// The code of an invite for this container, after a reset.
    package let code: InviteCode?

    /// The content with these members; the reader checks their bounds.
    package init(
        code: InviteCode? = nil
    ) {
        self.code = code
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        code = reader.has("code") ? try reader.inviteCode("code") : nil
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "code": code.map { .string($0.canonical.reveal()) }
        ])
    }
}
