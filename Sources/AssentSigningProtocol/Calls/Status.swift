package import AssentCore

/// The state of a container.
public enum ContainerState: String, Hashable, Sendable, CaseIterable {
    /// It has not confirmed, or the digits were not typed yet.
    case unconfirmed = "UNCONFIRMED"
    /// It may approve.
    case active = "ACTIVE"
    /// Its store may have been copied: it may only refuse.
    case suspect = "SUSPECT"
    /// An administrator has blocked it.
    case blocked = "BLOCKED"
    /// It has ended.
    case revoked = "REVOKED"
    /// Its enrolment was never finished.
    case void = "VOID"
}

/// The state of a container's key.
package enum ContainerKeyState: String, Hashable, Sendable, CaseIterable {
    /// It counts.
    case active = "ACTIVE"
    /// It was replaced, or its container has ended.
    case retired = "RETIRED"
}

/// The state of a password.
public enum PasswordSlotState: String, Hashable, Sendable, CaseIterable {
    /// It may be tried.
    case open = "OPEN"
    /// The user must authenticate first.
    case locked = "LOCKED"
    /// What it sealed is lost.
    case shredded = "SHREDDED"
}

/// The state of a container, as the server sees it.
package struct ContainerStatus: ReplyContent {
    /// `tsp-status+jwt`.
    package static let type = MessageType.status

    /// What every reply has.
    package let head: SigningReplyHead
    /// The container.
    package let did: SigningID
    /// Its state.
    package let state: ContainerState
    /// From when on it may approve.
    package let approvalsFrom: Int
    /// When its keys expire.
    package let expiresAt: Int
    /// Its keys.
    package let keys: [KeyStatus]
    /// Its assisted password slots.
    package let slots: [SlotStatus]
    /// How many transactions are open.
    package let pending: Int

    /// The content with these members; the reader checks their bounds.
    package init(
        head: SigningReplyHead, did: SigningID, state: ContainerState, approvalsFrom: Int, expiresAt: Int,
        keys: [KeyStatus], slots: [SlotStatus], pending: Int
    ) {
        self.head = head
        self.did = did
        self.state = state
        self.approvalsFrom = approvalsFrom
        self.expiresAt = expiresAt
        self.keys = keys
        self.slots = slots
        self.pending = pending
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        head = try SigningReplyHead(reading: &reader)
        did = try reader.fixed("did")
        state = try reader.choice("state")
        approvalsFrom = try reader.integer("approvals")
        expiresAt = try reader.integer("exp")
        keys = try reader.objects("keys", 0...12)
        slots = try reader.objects("slots", 0...3)
        pending = try reader.integer("pending", 0...1000)
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        head.with([
            "did": did.json, "state": state.json, "approvals": .integer(approvalsFrom), "exp": .integer(expiresAt),
            "keys": keys.jsonArray(\.json), "slots": slots.jsonArray(\.json), "pending": .integer(pending),
        ])
    }
}

/// The state of one key.
package struct KeyStatus: MessagePart {
    /// Its thumbprint; OTP keys have none.
    package let kid: KeyThumbprint?
    /// What it is for.
    package let usage: SigningKeyUsage
    /// Its name in the container.
    package let label: String
    /// Its state.
    package let state: ContainerKeyState

    /// The content with these members; the reader checks their bounds.
    package init(
        kid: KeyThumbprint? = nil, usage: SigningKeyUsage, label: String, state: ContainerKeyState
    ) {
        self.kid = kid
        self.usage = usage
        self.label = label
        self.state = state
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        kid = reader.has("kid") ? try reader.fixed("kid") : nil
        usage = try reader.choice("usage")
        label = try reader.label("label")
        state = try reader.choice("state")
        guard (kid == nil) == (usage == .otp) else {
            throw .invalid(reader.path("kid"), "is missing, or that of an OTP key")
        }
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "kid": kid.map { $0.json }, "usage": usage.json, "label": .string(label), "state": state.json,
        ])
    }
}

/// The state of one assisted password slot.
package struct SlotStatus: MessagePart {
    /// Which slot.
    package let slot: PasswordSlot
    /// Its generation.
    package let generation: Int
    /// Its state.
    package let state: PasswordSlotState
    /// Tries that are left.
    package let tries: Int
    /// Evaluations that are left before the key is destroyed.
    package let spare: Int
    /// Seconds until the next try.
    package let wait: Int

    /// The content with these members; the reader checks their bounds.
    package init(
        slot: PasswordSlot, generation: Int, state: PasswordSlotState, tries: Int, spare: Int, wait: Int
    ) {
        self.slot = slot
        self.generation = generation
        self.state = state
        self.tries = tries
        self.spare = spare
        self.wait = wait
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        slot = try reader.choice("slot")
        generation = try reader.integer("gen", 0...1 << 31)
        state = try reader.choice("state")
        tries = try reader.integer("tries", 0...10)
        spare = try reader.integer("spare", 0...100)
        wait = try reader.integer("wait", 0...86400)
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "slot": slot.json, "gen": .integer(generation), "state": state.json, "tries": .integer(tries),
            "spare": .integer(spare), "wait": .integer(wait),
        ])
    }
}
