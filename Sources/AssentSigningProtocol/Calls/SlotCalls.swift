package import AssentCore

/// The content of `slots/unlock`'s body.
package struct UnlockBody: ShapedPart {
    package let slot: PasswordSlot
    package let generation: Int
    package let rid: SigningID
    package let blinded: [UInt8]
    /// The ratchet's value: 32 bytes.
    package let r: Secret
    /// The ratchet hash of the value after it.
    package let next: SigningHash
    /// The newest compact `tsp-eval+jwt` of this slot that the device has.
    package let last: String?

    package init(
        slot: PasswordSlot, generation: Int, rid: SigningID, blinded: [UInt8], r: Secret, next: SigningHash,
        last: String? = nil
    ) {
        (self.slot, self.generation, self.rid, self.blinded, self.r) = (slot, generation, rid, blinded, r)
        (self.next, self.last) = (next, last)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("slot", \.slot)
        Member("gen", \.generation, .integer(0...1 << 31))
        Member("rid", \.rid)
        Member("blinded", \.blinded, .bytes(49))
        Member("r", \.r, .secret(bytes: 32))
        Member("next", \.next)
        Member(optional: "last", \.last, .compact)
    }
}

/// The content of `slots/confirm`'s body.
package struct ConfirmEvaluationBody: ShapedPart {
    /// The compact `tsp-confirm+jwt`.
    package let confirmation: String
    /// The compact `tsp-eval+jwt` that it confirms.
    package let evaluation: String

    package init(confirmation: String, evaluation: String) {
        (self.confirmation, self.evaluation) = (confirmation, evaluation)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("confirm", \.confirmation, .compact)
        Member("eval", \.evaluation, .compact)
    }
}

/// The content of `slots/change-start`'s body.
package struct ChangeStartBody: ShapedPart {
    /// The compact `tsp-change+jwt`.
    package let change: String
    package let rid: SigningID
    package let blinded: [UInt8]

    package init(change: String, rid: SigningID, blinded: [UInt8]) {
        (self.change, self.rid, self.blinded) = (change, rid, blinded)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("change", \.change, .compact)
        Member("rid", \.rid)
        Member("blinded", \.blinded, .bytes(49))
    }
}

/// The content of `slots/change-commit`'s body.
package struct ChangeCommitBody: ShapedPart {
    /// The compact `tsp-change+jwt`.
    package let change: String

    package init(change: String) { self.change = change }

    package static let shape = MessageShape<Self>(Self.init) { Member("change", \.change, .compact) }
}
