/// What the server wants of a new container.
package struct Offer: ReplyContent {
    package static let type = MessageType.offer
    package let head: SigningReplyHead
    package let pid: SigningID
    package let did: SigningID
    package let identity: KeyThumbprint
    /// The issuer's name.
    package let name: String
    package let commit: CommitMode
    /// Until when the enrolment must be completed.
    package let expiresAt: Int
    package let keys: [OfferedKey]
    package let slots: [OfferedSlot]
    package let policies: [ProtectionPolicy]

    package init(
        head: SigningReplyHead, pid: SigningID, did: SigningID, identity: KeyThumbprint, name: String,
        commit: CommitMode, expiresAt: Int, keys: [OfferedKey], slots: [OfferedSlot], policies: [ProtectionPolicy]
    ) {
        (self.head, self.pid, self.did, self.identity, self.name) = (head, pid, did, identity, name)
        (self.commit, self.expiresAt, self.keys, self.slots, self.policies) = (commit, expiresAt, keys, slots, policies)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member(embedded: \.head)
        Member("pid", \.pid)
        Member("did", \.did)
        Member("identity", \.identity)
        Member("name", \.name, .shown(1...64))
        Member("commit", \.commit)
        Member("exp", \.expiresAt)
        Member("keys", \.keys, .objects(2...8))
        Member("slots", \.slots, .objects(0...3))
        Member("policies", \.policies, .objects(1...8))
    }
}

/// A key that the device is to make.
package struct OfferedKey: ShapedPart {
    package let usage: SigningKeyUsage
    package let label: String
    package let slot: PasswordSlot?
    package let policy: String

    package init(usage: SigningKeyUsage, label: String, slot: PasswordSlot? = nil, policy: String) {
        (self.usage, self.label, self.slot, self.policy) = (usage, label, slot, policy)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("usage", \.usage)
        Member("label", \.label, .label)
        Member(optional: "slot", \.slot)
        Member("policy", \.policy, .label)
    }
}

/// A password slot of an offer.
package struct OfferedSlot: ShapedPart {
    package let slot: PasswordSlot
    package let mode: PasswordMode
    package let generation: Int
    /// The public key of the VOPRF, for `assisted`.
    package let publicKey: [UInt8]?

    package init(slot: PasswordSlot, mode: PasswordMode, generation: Int, publicKey: [UInt8]? = nil) {
        (self.slot, self.mode, self.generation, self.publicKey) = (slot, mode, generation, publicKey)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("slot", \.slot)
        Member("mode", \.mode)
        Member("gen", \.generation, .integer(0...1 << 31))
        Member(optional: "pk", \.publicKey, .bytes(49))
    }

    package func check(in reader: MemberReader) throws(SigningProtocolError) {
        guard (publicKey != nil) == (mode == .assisted) else {
            throw .invalid(reader.path("pk"), "is there for assisted slots only, and for all of them")
        }
    }
}
