package import AssentCore

/// The content of `slots/unlock`'s body.
package struct UnlockBody: MessagePart {
    /// The password's slot.
    package let slot: PasswordSlot
    /// The slot's generation.
    package let generation: Int
    /// The request's id.
    package let rid: SigningID
    /// The blinded element.
    package let blinded: [UInt8]
    /// The ratchet's value: 32 bytes.
    package let r: Secret
    /// The ratchet hash of the value after it.
    package let next: SigningHash
    /// The newest compact `tsp-eval+jwt` of this slot that the device has.
    package let last: String?

    /// The content with these members; the reader checks their bounds.
    package init(
        slot: PasswordSlot, generation: Int, rid: SigningID, blinded: [UInt8], r: Secret, next: SigningHash,
        last: String? = nil
    ) {
        self.slot = slot
        self.generation = generation
        self.rid = rid
        self.blinded = blinded
        self.r = r
        self.next = next
        self.last = last
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        slot = try reader.choice("slot")
        generation = try reader.integer("gen", 0...1 << 31)
        rid = try reader.fixed("rid")
        blinded = try reader.bytes("blinded", count: 49)
        r = Secret(bytes: try reader.bytes("r", count: 32))
        next = try reader.fixed("next")
        last = reader.has("last") ? try reader.compact("last") : nil
    }

    /// The members, in the order of the specification.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "slot": slot.json, "gen": .integer(generation), "rid": rid.json,
            "blinded": .string(Base64URL.encode(blinded)), "r": .string(Base64URL.encode(r.revealBytes())),
            "next": next.json, "last": last.map { .string($0) },
        ])
    }
}

/// The content of `slots/confirm`'s body.
package struct ConfirmEvaluationBody: MessagePart {
    /// The compact `tsp-confirm+jwt`.
    package let confirmation: String
    /// The compact `tsp-eval+jwt` that it confirms.
    package let evaluation: String

    /// The content with these members; the reader checks their bounds.
    package init(confirmation: String, evaluation: String) {
        self.confirmation = confirmation
        self.evaluation = evaluation
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        confirmation = try reader.compact("confirm")
        evaluation = try reader.compact("eval")
    }

    /// The members, in the order of the specification.
    package var members: JSONObject { ["confirm": .string(confirmation), "eval": .string(evaluation)] }
}

/// The content of `slots/change-start`'s body.
package struct ChangeStartBody: MessagePart {
    /// The compact `tsp-change+jwt`.
    package let change: String
    /// The request's id.
    package let rid: SigningID
    /// The blinded element of the new password.
    package let blinded: [UInt8]

    /// The content with these members; the reader checks their bounds.
    package init(change: String, rid: SigningID, blinded: [UInt8]) {
        self.change = change
        self.rid = rid
        self.blinded = blinded
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        change = try reader.compact("change")
        rid = try reader.fixed("rid")
        blinded = try reader.bytes("blinded", count: 49)
    }

    /// The members, in the order of the specification.
    package var members: JSONObject {
        ["change": .string(change), "rid": rid.json, "blinded": .string(Base64URL.encode(blinded))]
    }
}

/// The content of `slots/change-commit`'s body.
package struct ChangeCommitBody: MessagePart {
    /// The compact `tsp-change+jwt`.
    package let change: String

    /// The content with these members; the reader checks their bounds.
    package init(change: String) {
        self.change = change
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        change = try reader.compact("change")
    }

    /// The members, in the order of the specification.
    package var members: JSONObject { ["change": .string(change)] }
}
