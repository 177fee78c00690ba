package import AssentCore

/// A key's proof that the device has it, for one enrolment.
package struct KeyPossession: SignedContent {
    /// `tsp-pop+jwt`.
    package static let type = MessageType.keyPossession

    /// The issuer.
    package let issuer: String
    /// The container.
    package let did: SigningID
    /// The server's nonce.
    package let nonceS: SigningNonce
    /// The device key, so that the proof cannot be moved to another enrolment.
    package let device: KeyThumbprint
    /// What the key is for.
    package let usage: SigningKeyUsage
    /// Its name in the container.
    package let label: String
    /// The key itself.
    package let kid: KeyThumbprint

    /// The content with these members; the reader checks their bounds.
    package init(
        issuer: String, did: SigningID, nonceS: SigningNonce, device: KeyThumbprint, usage: SigningKeyUsage,
        label: String, kid: KeyThumbprint
    ) {
        self.issuer = issuer
        self.did = did
        self.nonceS = nonceS
        self.device = device
        self.usage = usage
        self.label = label
        self.kid = kid
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        try reader.version()
        issuer = try reader.issuer("aud")
        did = try reader.fixed("did")
        nonceS = try reader.fixed("nonceS")
        device = try reader.fixed("device")
        usage = try reader.choice("usage")
        label = try reader.label("label")
        kid = try reader.fixed("kid")
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "v": 1, "aud": .string(issuer), "did": did.json, "nonceS": nonceS.json, "device": device.json,
            "usage": usage.json, "label": .string(label), "kid": kid.json,
        ])
    }
}

/// A key of a container.
package struct EnrolledKey: MessagePart {
    /// What it is for.
    package let usage: SigningKeyUsage
    /// Its name in the container.
    package let label: String
    /// Its thumbprint.
    package let kid: KeyThumbprint
    /// The public key.
    package let jwk: ProtocolKey
    /// The id of its policy.
    package let policy: String
    /// What holds it.
    package let keystore: Keystore
    /// The slot of the password that opens it.
    package let slot: PasswordSlot?
    /// The key's own proof, a compact `tsp-pop+jwt`; `sign` and `auth` keys have one.
    package let possession: String?

    /// The content with these members; the reader checks their bounds.
    package init(
        usage: SigningKeyUsage, label: String, kid: KeyThumbprint, jwk: ProtocolKey, policy: String,
        keystore: Keystore, slot: PasswordSlot? = nil, possession: String? = nil
    ) {
        self.usage = usage
        self.label = label
        self.kid = kid
        self.jwk = jwk
        self.policy = policy
        self.keystore = keystore
        self.slot = slot
        self.possession = possession
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        usage = try reader.choice("usage")
        label = try reader.label("label")
        kid = try reader.fixed("kid")
        jwk = try reader.key("jwk")
        policy = try reader.label("policy")
        keystore = try reader.choice("keystore")
        slot = reader.has("slot") ? try reader.choice("slot") : nil
        possession = reader.has("pop") ? try reader.compact("pop") : nil
        guard kid == jwk.thumbprint else { throw .invalid(reader.path("kid"), "is not the thumbprint of the key") }
        guard (possession != nil) == usage.needsPossession else {
            throw .invalid(reader.path("pop"), "is there for sign and auth keys only, and for all of them")
        }
        guard usage != .otp else { throw .invalid(reader.path("usage"), "is not that of a key pair") }
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "usage": usage.json, "label": .string(label), "kid": kid.json, "jwk": jwk.json,
            "policy": .string(policy), "keystore": keystore.json, "slot": slot.map { $0.json },
            "pop": possession.map { .string($0) },
        ])
    }
}

/// A container's keys, signed by its new device key.
package struct Enrolment: SelfSignedContent {
    /// `tsp-enrol+jwt`.
    package static let type = MessageType.enrolment

    /// The issuer.
    package let issuer: String
    /// The invite.
    package let pid: SigningID
    /// The container.
    package let did: SigningID
    /// The user's id.
    package let sub: String
    /// The hash of the offer.
    package let offer: SigningHash
    /// The device's nonce.
    package let nonceD: SigningNonce
    /// The server's nonce.
    package let nonceS: SigningNonce
    /// The keys in the offer's order, without OTP keys.
    package let keys: [EnrolledKey]

    /// The content with these members; the reader checks their bounds.
    package init(
        issuer: String, pid: SigningID, did: SigningID, sub: String, offer: SigningHash, nonceD: SigningNonce,
        nonceS: SigningNonce, keys: [EnrolledKey]
    ) {
        self.issuer = issuer
        self.pid = pid
        self.did = did
        self.sub = sub
        self.offer = offer
        self.nonceD = nonceD
        self.nonceS = nonceS
        self.keys = keys
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        try reader.version()
        issuer = try reader.issuer("aud")
        pid = try reader.fixed("pid")
        did = try reader.fixed("did")
        sub = try reader.ascii("sub", 1...64)
        offer = try reader.fixed("offer")
        nonceD = try reader.fixed("nonceD")
        nonceS = try reader.fixed("nonceS")
        keys = try reader.objects("keys", 2...8)
        try Self.check(keys)
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "v": 1, "aud": .string(issuer), "pid": pid.json, "did": did.json, "sub": .string(sub),
            "offer": offer.json, "nonceD": nonceD.json, "nonceS": nonceS.json, "keys": keys.jsonArray(\.json),
        ])
    }

    /// The device key.
    package var signer: ProtocolKey { device.jwk }

    /// The entry of the device key.
    package var device: EnrolledKey {
        // The reader has seen that there is one.
        keys.first { $0.usage == .device } ?? keys[0]
    }

    /// The entry of the transport key.
    package var transport: EnrolledKey { keys.first { $0.usage == .transport } ?? keys[0] }

    /// What commitment and transcript bind.
    package var keyList: SigningKeyList {
        SigningKeyList(
            keys.map {
                SigningKeyList.Entry(
                    usage: $0.usage, label: $0.label, kid: $0.kid, slot: $0.slot, policy: $0.policy,
                    keystore: $0.keystore)
            })
    }

    /// The transcript, for the identity key that the device found.
    package func transcript(identity: KeyThumbprint) -> EnrolmentTranscript {
        EnrolmentTranscript(
            identity: identity, issuer: issuer, pid: pid, did: did, sub: sub, offer: offer, nonceD: nonceD,
            nonceS: nonceS,
            keys: keyList)
    }

    private static func check(_ keys: [EnrolledKey]) throws(SigningProtocolError) {
        for usage in SigningKeyUsage.allCases where usage != .otp {
            guard usage.count.contains(keys.count(where: { $0.usage == usage })) else {
                throw .invalid("keys", "has too many or too few keys for \(usage.rawValue)")
            }
        }
        guard Set(keys.map(\.label)).count == keys.count, Set(keys.map(\.kid)).count == keys.count else {
            throw .invalid("keys", "has a label or a key twice")
        }
    }
}

/// An old key's word for new keys of the same container.
package struct Endorsement: SignedContent {
    /// `tsp-endorse+jwt`.
    package static let type = MessageType.endorsement

    /// The issuer.
    package let issuer: String
    /// The container.
    package let did: SigningID
    /// The hash of the new key list.
    package let enrol: SigningHash
    /// The id of this message.
    package let jti: SigningID

    /// The content with these members; the reader checks their bounds.
    package init(
        issuer: String, did: SigningID, enrol: SigningHash, jti: SigningID
    ) {
        self.issuer = issuer
        self.did = did
        self.enrol = enrol
        self.jti = jti
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        try reader.version()
        issuer = try reader.issuer("aud")
        did = try reader.fixed("did")
        enrol = try reader.fixed("enrol")
        jti = try reader.fixed("jti")
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "v": 1, "aud": .string(issuer), "did": did.json, "enrol": enrol.json, "jti": jti.json,
        ])
    }
}
