import AssentSigningProtocol
import AssentStore

/// A password slot of a container whose guesses the server counts. What it may do is read from its numbers; there is no
/// state that could disagree with them.
struct SigningSlotRow: Sendable, Hashable {
    let did: SigningID
    let slot: PasswordSlot
    /// Counts its keys.
    let generation: Int64
    /// The public key of its VOPRF.
    let publicKey: [UInt8]
    /// The private key, sealed; `nil` when it was destroyed.
    let sealedKey: [UInt8]?
    /// Counts evaluations.
    let n: Int64
    /// Up to which number they are forgiven.
    let floor: Int64
    /// How many were never followed by a proof that the password was right.
    let unconfirmed: Int64
    /// From when there may be another try, in seconds since 1970.
    let nextAt: Int64
    /// When the last evaluation was, in seconds since 1970.
    let at: Int64
    /// The id of the last request.
    let request: SigningID?
    /// The element of the last request, as base64url.
    let blinded: String?
    /// The hash of the ratchet's value.
    let current: SigningHash?
    /// The hash of the value after it.
    let next: SigningHash?
    /// Whether an administrator has locked it.
    let isHeld: Bool
    /// The generation of a change that has begun.
    let pendingGeneration: Int64?
    /// When the password was set, in seconds since 1970.
    let changedAt: Int64

    /// How it stands under its lock policy.
    func status(_ lock: AssistedPasswordLock, at now: Int64) -> SlotStatus {
        let tries = isHeld ? 0 : min(Int64(lock.max), max(0, Int64(lock.max) - (n - floor)))
        let state: PasswordSlotState = sealedKey == nil ? .shredded : tries == 0 ? .locked : .open
        return SlotStatus(
            slot: slot, generation: Int(generation), state: state, tries: Int(tries),
            spare: Int(max(0, Int64(lock.cap) - unconfirmed)), wait: Int(min(86400, max(0, nextAt - now))))
    }
}

extension SigningSlotRow {
    init(_ row: SQLRow) throws {
        self.init(
            did: try row.value("did"), slot: try row.value("slot"), generation: try row.integer("generation"),
            publicKey: try row.blob("public_key"), sealedKey: try row.optionalBlob("sealed_k"),
            n: try row.integer("n"), floor: try row.integer("floor"), unconfirmed: try row.integer("unconfirmed"),
            nextAt: try row.integer("next_at"), at: try row.integer("at"), request: try row.optional("request"),
            blinded: try row.optionalText("blinded"), current: try row.optional("cur"),
            next: try row.optional("next"), isHeld: try row.bool("held"),
            pendingGeneration: try row.optionalInteger("pending_generation"),
            changedAt: try row.integer("changed_at"))
    }
}

/// One request for an evaluation.
struct SlotTry: Sendable, Hashable {
    let did: SigningID
    let slot: PasswordSlot
    /// The slot's generation, as the device has it.
    let generation: Int64
    let rid: SigningID
    /// The blinded element, as base64url.
    let element: String
    /// The hash of the ratchet's value that the device has sent.
    let ratchet: SigningHash
    /// The hash of the value after it.
    let next: SigningHash
    /// The number of the newest evaluation that the device has of this slot and generation, by our own signature; 0 for
    /// none.
    let last: Int64
    /// When the nonce of the call's proof was made, in seconds since 1970.
    let nonceMadeAt: Int64
}

/// An evaluation that was counted, and may now be made.
struct CountedTry: Sendable, Hashable {
    let sealedKey: [UInt8]
    let n: Int64
    /// Tries until the slot is locked.
    let tries: Int
    /// Evaluations until the key is destroyed.
    let spare: Int
    /// Seconds until the next try.
    let wait: Int

    init(_ row: SQLRow, lock: AssistedPasswordLock, at now: Int64) throws {
        sealedKey = try row.blob("sealed_k")
        n = try row.integer("n")
        tries = Int(min(Int64(lock.max), max(0, Int64(lock.max) - (try row.integer("used")))))
        spare = Int(max(0, Int64(lock.cap) - (try row.integer("unconfirmed"))))
        wait = Int(min(86400, max(0, try row.integer("next_at") - now)))
    }
}

/// An evaluation that a key of its slot has confirmed.
struct ConfirmedTry: Sendable, Hashable {
    let did: SigningID
    let slot: PasswordSlot
    /// The slot's generation at that time.
    let generation: Int64
    let n: Int64
    let unl: SigningID
    /// When it was made, in seconds since 1970.
    let evaluatedAt: Int64
    /// When it was confirmed, in seconds since 1970.
    let confirmedAt: Int64
    /// The compact `tsp-eval+jwt`.
    let evaluation: String
    /// The compact `tsp-confirm+jwt`.
    let confirmation: String
}

extension ConfirmedTry {
    init(_ row: SQLRow) throws {
        self.init(
            did: try row.value("did"), slot: try row.value("slot"), generation: try row.integer("generation"),
            n: try row.integer("n"), unl: try row.value("unl"), evaluatedAt: try row.integer("evaluated_at"),
            confirmedAt: try row.integer("confirmed_at"), evaluation: try row.text("eval"),
            confirmation: try row.text("confirm"))
    }
}

/// A slot of an offer whose keys are not enrolled yet.
struct SigningOfferedSlot: Sendable, Hashable {
    let slot: PasswordSlot
    /// The generation that it will have.
    let generation: Int64
    /// The public key of its VOPRF.
    let publicKey: [UInt8]
    let sealedKey: [UInt8]
    var evaluations: Int64 = 0
}

extension SigningOfferedSlot {
    init(_ row: SQLRow) throws {
        self.init(
            slot: try row.value("slot"), generation: try row.integer("generation"),
            publicKey: try row.blob("public_key"), sealedKey: try row.blob("sealed_k"),
            evaluations: try row.integer("evaluations"))
    }
}

/// A change of a slot's password.
struct SlotChange: Sendable, Hashable {
    let did: SigningID
    let slot: PasswordSlot
    let from: Int64
    let to: Int64
    /// At the end: the key that has evaluated the new password.
    var publicKey: [UInt8]?

    /// What the evaluation that it spends is taken by.
    var taker: String { "change:\(from)" }
}

/// For what a password is evaluated that seals nothing yet.
struct SlotEvaluation: Sendable, Hashable {
    /// The container, or what will be one.
    let did: SigningID
    /// The enrolment's invite, or the renewal.
    let pid: SigningID
    /// Whether it is for new keys of a container.
    let isRenewal: Bool
    let user: String?
    let slot: PasswordSlot
    let generation: Int64
    let rid: SigningID
    /// The blinded element, as base64url.
    let element: String
}
