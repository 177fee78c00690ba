package import AssentSigningProtocol
import AssentStore

/// A password slot of a container whose guesses the server counts. What it may do is read from its numbers; there is no
/// state that could disagree with them.
package struct SigningSlotRow: Sendable, Hashable {
    /// The container.
    package let did: String

    /// Which slot.
    package let slot: PasswordSlot

    /// Counts its keys.
    package let generation: Int64

    /// The public key of its VOPRF.
    package let publicKey: [UInt8]

    /// The private key, sealed; `nil` when it was destroyed.
    package let sealedKey: [UInt8]?

    /// Counts evaluations.
    package let n: Int64

    /// Up to which number they are forgiven.
    package let floor: Int64

    /// How many were never followed by a proof that the password was right.
    package let unconfirmed: Int64

    /// From when there may be another try, in seconds since 1970.
    package let nextAt: Int64

    /// When the last evaluation was, in seconds since 1970.
    package let at: Int64

    /// The id of the last request.
    package let request: String?

    /// The element of the last request.
    package let blinded: String?

    /// The hash of the ratchet's value.
    package let current: String?

    /// The hash of the value after it.
    package let next: String?

    /// Whether an administrator has locked it.
    package let isHeld: Bool

    /// The generation of a change that has begun.
    package let pendingGeneration: Int64?

    /// When the password was set, in seconds since 1970.
    package let changedAt: Int64

    init(_ row: SQLRow) throws {
        guard let slot = PasswordSlot(rawValue: try row.text("slot")) else {
            throw StoreError(.corrupt, "unknown password slot")
        }
        did = try row.text("did")
        self.slot = slot
        generation = try row.integer("generation")
        publicKey = try row.blob("public_key")
        sealedKey = try row.optionalBlob("sealed_k")
        n = try row.integer("n")
        floor = try row.integer("floor")
        unconfirmed = try row.integer("unconfirmed")
        nextAt = try row.integer("next_at")
        at = try row.integer("at")
        request = try row.optionalText("request")
        blinded = try row.optionalText("blinded")
        current = try row.optionalText("cur")
        next = try row.optionalText("next")
        isHeld = try row.bool("held")
        pendingGeneration = try row.optionalInteger("pending_generation")
        changedAt = try row.integer("changed_at")
    }

    /// How it stands under its lock policy.
    package func status(_ lock: AssistedPasswordLock, at now: Int64) -> SlotStatus {
        let tries = isHeld ? 0 : min(Int64(lock.max), max(0, Int64(lock.max) - (n - floor)))
        let state: PasswordSlotState = sealedKey == nil ? .shredded : tries == 0 ? .locked : .open
        return SlotStatus(
            slot: slot, generation: Int(generation), state: state, tries: Int(tries),
            spare: Int(max(0, Int64(lock.cap) - unconfirmed)), wait: Int(min(86400, max(0, nextAt - now))))
    }
}

/// One request for an evaluation.
package struct SlotTry: Sendable, Hashable {
    /// The container.
    package let did: String
    /// The slot.
    package let slot: PasswordSlot
    /// The slot's generation, as the device has it.
    package let generation: Int64
    /// The request's id.
    package let rid: String
    /// The blinded element, as base64url.
    package let element: String
    /// The hash of the ratchet's value that the device has sent.
    package let ratchet: String
    /// The hash of the value after it.
    package let next: String
    /// The number of the newest evaluation that the device has of this slot and generation, by our own signature; 0 for
    /// none.
    package let last: Int64
    /// When the nonce of the call's proof was made, in seconds since 1970.
    package let nonceMadeAt: Int64

    /// A try.
    package init(
        did: String, slot: PasswordSlot, generation: Int64, rid: String, element: String, ratchet: String,
        next: String, last: Int64, nonceMadeAt: Int64
    ) {
        self.did = did
        self.slot = slot
        self.generation = generation
        self.rid = rid
        self.element = element
        self.ratchet = ratchet
        self.next = next
        self.last = last
        self.nonceMadeAt = nonceMadeAt
    }
}

/// An evaluation that was counted, and may now be made.
package struct CountedTry: Sendable, Hashable {
    /// The private key, sealed.
    package let sealedKey: [UInt8]
    /// The evaluation's number.
    package let n: Int64
    /// Tries until the slot is locked.
    package let tries: Int
    /// Evaluations until the key is destroyed.
    package let spare: Int
    /// Seconds until the next try.
    package let wait: Int

    init(_ row: SQLRow, lock: AssistedPasswordLock, at now: Int64) throws {
        sealedKey = try row.blob("sealed_k")
        n = try row.integer("n")
        tries = Int(min(Int64(lock.max), max(0, Int64(lock.max) - (try row.integer("used")))))
        spare = Int(max(0, Int64(lock.cap) - (try row.integer("unconfirmed"))))
        wait = Int(min(86400, max(0, try row.integer("next_at") - now)))
    }
}

/// An evaluation that a key of its slot has confirmed.
package struct ConfirmedTry: Sendable, Hashable {
    /// The container.
    package let did: String
    /// The slot.
    package let slot: PasswordSlot
    /// The slot's generation at that time.
    package let generation: Int64
    /// Its number.
    package let n: Int64
    /// Its id.
    package let unl: String
    /// When it was made, in seconds since 1970.
    package let evaluatedAt: Int64
    /// When it was confirmed, in seconds since 1970.
    package let confirmedAt: Int64
    /// The compact `tsp-eval+jwt`.
    package let evaluation: String
    /// The compact `tsp-confirm+jwt`.
    package let confirmation: String

    /// A confirmed evaluation.
    package init(
        did: String, slot: PasswordSlot, generation: Int64, n: Int64, unl: String, evaluatedAt: Int64,
        confirmedAt: Int64, evaluation: String, confirmation: String
    ) {
        self.did = did
        self.slot = slot
        self.generation = generation
        self.n = n
        self.unl = unl
        self.evaluatedAt = evaluatedAt
        self.confirmedAt = confirmedAt
        self.evaluation = evaluation
        self.confirmation = confirmation
    }

    init(_ row: SQLRow) throws {
        guard let slot = PasswordSlot(rawValue: try row.text("slot")) else {
            throw StoreError(.corrupt, "unknown password slot")
        }
        self.init(
            did: try row.text("did"), slot: slot, generation: try row.integer("generation"), n: try row.integer("n"),
            unl: try row.text("unl"), evaluatedAt: try row.integer("evaluated_at"),
            confirmedAt: try row.integer("confirmed_at"), evaluation: try row.text("eval"),
            confirmation: try row.text("confirm"))
    }
}

/// A slot of an offer whose keys are not enrolled yet.
package struct SigningOfferedSlot: Sendable, Hashable {
    /// Which slot.
    package let slot: PasswordSlot
    /// The generation that it will have.
    package let generation: Int64
    /// The public key of its VOPRF.
    package let publicKey: [UInt8]
    /// The private key, sealed.
    package let sealedKey: [UInt8]
    /// How many evaluations there were.
    package let evaluations: Int64

    /// A new slot.
    package init(slot: PasswordSlot, generation: Int64, publicKey: [UInt8], sealedKey: [UInt8]) {
        self.slot = slot
        self.generation = generation
        self.publicKey = publicKey
        self.sealedKey = sealedKey
        evaluations = 0
    }

    init(_ row: SQLRow) throws {
        guard let slot = PasswordSlot(rawValue: try row.text("slot")) else {
            throw StoreError(.corrupt, "unknown password slot")
        }
        self.slot = slot
        generation = try row.integer("generation")
        publicKey = try row.blob("public_key")
        sealedKey = try row.blob("sealed_k")
        evaluations = try row.integer("evaluations")
    }
}
