/// The state of a container.
public enum ContainerState: String, Hashable, MemberValue, CaseIterable {
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
package enum ContainerKeyState: String, Hashable, MemberValue, CaseIterable {
    /// It counts.
    case active = "ACTIVE"
    /// It was replaced, or its container has ended.
    case retired = "RETIRED"
}

/// The state of a password.
public enum PasswordSlotState: String, Hashable, MemberValue, CaseIterable {
    /// It may be tried.
    case open = "OPEN"
    /// The user must authenticate first.
    case locked = "LOCKED"
    /// What it sealed is lost.
    case shredded = "SHREDDED"
}

/// The state of a container, as the server sees it.
package struct ContainerStatus: ReplyContent {
    package static let type = MessageType.status
    package let head: SigningReplyHead
    package let did: SigningID
    package let state: ContainerState
    package let approvalsFrom: Int
    /// When its keys expire.
    package let expiresAt: Int
    package let keys: [KeyStatus]
    /// Its assisted password slots.
    package let slots: [SlotStatus]
    /// How many transactions are open.
    package let pending: Int

    package init(
        head: SigningReplyHead, did: SigningID, state: ContainerState, approvalsFrom: Int, expiresAt: Int,
        keys: [KeyStatus], slots: [SlotStatus], pending: Int
    ) {
        (self.head, self.did, self.state, self.approvalsFrom) = (head, did, state, approvalsFrom)
        (self.expiresAt, self.keys, self.slots, self.pending) = (expiresAt, keys, slots, pending)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member(embedded: \.head)
        Member("did", \.did)
        Member("state", \.state)
        Member("approvals", \.approvalsFrom)
        Member("exp", \.expiresAt)
        Member("keys", \.keys, .objects(0...12))
        Member("slots", \.slots, .objects(0...3))
        Member("pending", \.pending, .integer(0...1000))
    }
}

/// The state of one key.
package struct KeyStatus: ShapedPart {
    /// Its thumbprint; OTP keys have none.
    package let kid: KeyThumbprint?
    package let usage: SigningKeyUsage
    package let label: String
    package let state: ContainerKeyState

    package init(kid: KeyThumbprint? = nil, usage: SigningKeyUsage, label: String, state: ContainerKeyState) {
        (self.kid, self.usage, self.label, self.state) = (kid, usage, label, state)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member(optional: "kid", \.kid)
        Member("usage", \.usage)
        Member("label", \.label, .label)
        Member("state", \.state)
    }

    package func check(in reader: MemberReader) throws(SigningProtocolError) {
        guard (kid == nil) == (usage == .otp) else {
            throw .invalid(reader.path("kid"), "is missing, or that of an OTP key")
        }
    }
}

/// The state of an `assisted` password, signed by the server.
public struct SlotStatus: ShapedPart, Hashable {
    /// Which keys it opens.
    public let slot: PasswordSlot
    /// Counts the changes of the password.
    public let generation: Int
    /// Its state.
    public let state: PasswordSlotState
    /// Tries that are left until it is locked.
    public let tries: Int
    /// Evaluations without the right password that are left before the keys are lost for ever.
    public let spare: Int
    /// Seconds until the next try.
    public let wait: Int

    package init(slot: PasswordSlot, generation: Int, state: PasswordSlotState, tries: Int, spare: Int, wait: Int) {
        (self.slot, self.generation, self.state, self.tries, self.spare) = (slot, generation, state, tries, spare)
        self.wait = wait
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("slot", \.slot)
        Member("gen", \.generation, .integer(0...1 << 31))
        Member("state", \.state)
        Member("tries", \.tries, .integer(0...10))
        Member("spare", \.spare, .integer(0...100))
        Member("wait", \.wait, .integer(0...86400))
    }
}
