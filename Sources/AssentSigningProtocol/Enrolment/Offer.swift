package import AssentCore

/// What the server wants of a new container.
package struct Offer: ReplyContent {
    /// `tsp-offer+jwt`.
    package static let type = MessageType.offer

    /// What every reply has.
    package let head: SigningReplyHead
    /// The invite.
    package let pid: SigningID
    /// The container's id.
    package let did: SigningID
    /// The identity key in use.
    package let identity: KeyThumbprint
    /// The issuer's name.
    package let name: String
    /// Whether the user's digits end the enrolment.
    package let commit: CommitMode
    /// Until when the enrolment must be completed.
    package let expiresAt: Int
    /// The keys to be made.
    package let keys: [OfferedKey]
    /// The password slots of these keys.
    package let slots: [OfferedSlot]
    /// How the keys are to be protected.
    package let policies: [ProtectionPolicy]

    /// The content with these members; the reader checks their bounds.
    package init(
        head: SigningReplyHead, pid: SigningID, did: SigningID, identity: KeyThumbprint, name: String,
        commit: CommitMode,
        expiresAt: Int, keys: [OfferedKey], slots: [OfferedSlot], policies: [ProtectionPolicy]
    ) {
        self.head = head
        self.pid = pid
        self.did = did
        self.identity = identity
        self.name = name
        self.commit = commit
        self.expiresAt = expiresAt
        self.keys = keys
        self.slots = slots
        self.policies = policies
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        head = try SigningReplyHead(reading: &reader)
        pid = try reader.fixed("pid")
        did = try reader.fixed("did")
        identity = try reader.fixed("identity")
        name = try reader.shown("name", 1...64)
        commit = try reader.choice("commit")
        expiresAt = try reader.integer("exp")
        keys = try reader.objects("keys", 2...8)
        slots = try reader.objects("slots", 0...3)
        policies = try reader.objects("policies", 1...8)
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        head.with([
            "pid": pid.json, "did": did.json, "identity": identity.json, "name": .string(name),
            "commit": commit.json, "exp": .integer(expiresAt), "keys": keys.jsonArray(\.json),
            "slots": slots.jsonArray(\.json), "policies": policies.jsonArray(\.json),
        ])
    }
}

/// A key that the device is to make.
package struct OfferedKey: MessagePart {
    /// What it is for.
    package let usage: SigningKeyUsage
    /// Its name in the container.
    package let label: String
    /// The slot of the password that opens it.
    package let slot: PasswordSlot?
    /// The id of its policy.
    package let policy: String

    /// The content with these members; the reader checks their bounds.
    package init(
        usage: SigningKeyUsage, label: String, slot: PasswordSlot? = nil, policy: String
    ) {
        self.usage = usage
        self.label = label
        self.slot = slot
        self.policy = policy
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        usage = try reader.choice("usage")
        label = try reader.label("label")
        slot = reader.has("slot") ? try reader.choice("slot") : nil
        policy = try reader.label("policy")
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "usage": usage.json, "label": .string(label), "slot": slot.map { $0.json }, "policy": .string(policy),
        ])
    }
}

/// A password slot of an offer.
package struct OfferedSlot: MessagePart {
    /// Which slot.
    package let slot: PasswordSlot
    /// Where a guess is checked.
    package let mode: PasswordMode
    /// The slot's generation.
    package let generation: Int
    /// The public key of the VOPRF, for `assisted`.
    package let publicKey: [UInt8]?

    /// The content with these members; the reader checks their bounds.
    package init(
        slot: PasswordSlot, mode: PasswordMode, generation: Int, publicKey: [UInt8]? = nil
    ) {
        self.slot = slot
        self.mode = mode
        self.generation = generation
        self.publicKey = publicKey
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        slot = try reader.choice("slot")
        mode = try PasswordMode(reading: &reader)
        generation = try reader.integer("gen", 0...1 << 31)
        publicKey = reader.has("pk") ? try reader.bytes("pk", count: 49) : nil
        guard (publicKey != nil) == (mode == .assisted) else {
            throw .invalid(reader.path("pk"), "is there for assisted slots only, and for all of them")
        }
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "slot": slot.json, "mode": mode.json, "gen": .integer(generation),
            "pk": publicKey.map { .string(Base64URL.encode($0)) },
        ])
    }
}
