/// A key's proof that the device has it, for one enrolment.
package struct KeyPossession: SignedContent {
    package static let type = MessageType.keyPossession
    package let issuer: String
    package let did: SigningID
    package let nonceS: SigningNonce
    /// The device key, so that the proof cannot be moved to another enrolment.
    package let device: KeyThumbprint
    package let usage: SigningKeyUsage
    package let label: String
    package let kid: KeyThumbprint

    package init(
        issuer: String, did: SigningID, nonceS: SigningNonce, device: KeyThumbprint, usage: SigningKeyUsage,
        label: String, kid: KeyThumbprint
    ) {
        (self.issuer, self.did, self.nonceS, self.device, self.usage) = (issuer, did, nonceS, device, usage)
        (self.label, self.kid) = (label, kid)
    }

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("aud", \.issuer, .issuer)
        Member("did", \.did)
        Member("nonceS", \.nonceS)
        Member("device", \.device)
        Member("usage", \.usage)
        Member("label", \.label, .label)
        Member("kid", \.kid)
    }
}

/// A key of a container.
package struct EnrolledKey: ShapedPart {
    package let usage: SigningKeyUsage
    package let label: String
    package let kid: KeyThumbprint
    package let jwk: ProtocolKey
    package let policy: String
    package let keystore: Keystore
    package let slot: PasswordSlot?
    /// The key's own proof, a compact `tsp-pop+jwt`; `sign` and `auth` keys have one.
    package var possession: String?

    package init(
        usage: SigningKeyUsage, label: String, kid: KeyThumbprint, jwk: ProtocolKey, policy: String,
        keystore: Keystore, slot: PasswordSlot? = nil, possession: String? = nil
    ) {
        (self.usage, self.label, self.kid, self.jwk, self.policy) = (usage, label, kid, jwk, policy)
        (self.keystore, self.slot, self.possession) = (keystore, slot, possession)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("usage", \.usage)
        Member("label", \.label, .label)
        Member("kid", \.kid)
        Member("jwk", \.jwk)
        Member("policy", \.policy, .label)
        Member("keystore", \.keystore)
        Member(optional: "slot", \.slot)
        Member(optional: "pop", \.possession, .compact)
    }

    package func check(in reader: MemberReader) throws(SigningProtocolError) {
        guard kid == jwk.thumbprint else { throw .invalid(reader.path("kid"), "is not the thumbprint of the key") }
        guard (possession != nil) == usage.needsPossession else {
            throw .invalid(reader.path("pop"), "is there for sign and auth keys only, and for all of them")
        }
        guard usage != .otp else { throw .invalid(reader.path("usage"), "is not that of a key pair") }
    }
}

/// A container's keys, signed by its new device key.
package struct Enrolment: SelfSignedContent {
    package static let type = MessageType.enrolment
    package let issuer: String
    package let pid: SigningID
    package let did: SigningID
    package let sub: String
    package let offer: SigningHash
    package let nonceD: SigningNonce
    package let nonceS: SigningNonce
    /// The keys in the offer's order, without OTP keys.
    package let keys: [EnrolledKey]

    package init(
        issuer: String, pid: SigningID, did: SigningID, sub: String, offer: SigningHash, nonceD: SigningNonce,
        nonceS: SigningNonce, keys: [EnrolledKey]
    ) {
        (self.issuer, self.pid, self.did, self.sub, self.offer, self.nonceD) = (issuer, pid, did, sub, offer, nonceD)
        (self.nonceS, self.keys) = (nonceS, keys)
    }

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("aud", \.issuer, .issuer)
        Member("pid", \.pid)
        Member("did", \.did)
        Member("sub", \.sub, .ascii(1...64))
        Member("offer", \.offer)
        Member("nonceD", \.nonceD)
        Member("nonceS", \.nonceS)
        Member("keys", \.keys, .objects(2...8))
    }

    package func check(in reader: MemberReader) throws(SigningProtocolError) {
        for usage in SigningKeyUsage.allCases where usage != .otp {
            guard usage.count.contains(keys.count(where: { $0.usage == usage })) else {
                throw .invalid("keys", "has too many or too few keys for \(usage.rawValue)")
            }
        }
        guard Set(keys.map(\.label)).count == keys.count, Set(keys.map(\.kid)).count == keys.count else {
            throw .invalid("keys", "has a label or a key twice")
        }
    }

    package var signer: ProtocolKey { device.jwk }

    /// The entry of the device key.
    package var device: EnrolledKey {
        // The reader has seen that there is one.
        keys.first { $0.usage == .device } ?? keys[0]
    }

    /// The entry of the transport key.
    package var transport: EnrolledKey { keys.first { $0.usage == .transport } ?? keys[0] }

    /// What commitment and transcript bind.
    package var keyList: SigningKeyList { SigningKeyList(keys) }

    /// The transcript, for the identity key that the device found.
    package func transcript(identity: KeyThumbprint) -> EnrolmentTranscript {
        EnrolmentTranscript(of: self, identity: identity)
    }
}

/// An old key's word for new keys of the same container.
package struct Endorsement: SignedContent {
    package static let type = MessageType.endorsement
    package let issuer: String
    package let did: SigningID
    /// The hash of the new key list.
    package let enrol: SigningHash
    package let jti: SigningID

    package init(issuer: String, did: SigningID, enrol: SigningHash, jti: SigningID) {
        (self.issuer, self.did, self.enrol, self.jti) = (issuer, did, enrol, jti)
    }

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("aud", \.issuer, .issuer)
        Member("did", \.did)
        Member("enrol", \.enrol)
        Member("jti", \.jti)
    }
}
