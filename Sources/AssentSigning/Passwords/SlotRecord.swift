import AssentCore
import AssentSigningProtocol

/// What a device keeps of one password: the keys that it seals, and what belongs to its exchange with the server.
/// Nothing in it was made from the password alone, other than the blobs of a `local` one.
struct SlotRecord: ShapedPart {
    var slot: PasswordSlot
    var mode: PasswordMode
    /// What counts.
    var current: SealedGeneration
    /// What a change of the password will make count. Until the server has signed which one does, nothing is unlocked.
    var pending: SealedGeneration?
    /// The signed `tsp-change+jwt` that asks for it.
    var commit: String?
    /// `local`: failures in a row; one is added before each try.
    var failures = 0
    /// `assisted`: *r* of the ratchet.
    var ratchet: Secret?
    /// `assisted`: *r'*, while no signed evaluation has come for it.
    var ratchetNext: Secret?
    /// `assisted`: the newest evaluation.
    var last: String?
    /// `assisted`: a signed confirmation that the server has not acknowledged.
    var confirmation: String?
    /// `assisted`: the evaluation that it confirms.
    var confirmed: String?
    /// For `assisted` what the server signed last.
    var state = PasswordSlotState.open
    /// `assisted`: tries that are left, as the server signed last.
    var tries: Int?
    /// `assisted`: evaluations that are left before the keys are lost, as the server signed last.
    var spare: Int?

    /// What tells the server that a password was right; `nil` when nothing of it is stored.
    var confirmationBody: ConfirmEvaluationBody? {
        guard let confirmation, let confirmed else { return nil }
        return ConfirmEvaluationBody(confirmation: confirmation, evaluation: confirmed)
    }

    static let shape = MessageShape<Self>(Self.init) {
        Member("slot", \.slot)
        Member("mode", \.mode)
        Member("current", \.current)
        Member(optional: "pending", \.pending)
        Member(optional: "commit", \.commit, .compact)
        Member("failures", \.failures)
        Member(optional: "r", \.ratchet, .secret(bytes: 32))
        Member(optional: "rNext", \.ratchetNext, .secret(bytes: 32))
        Member(optional: "last", \.last, .compact)
        Member(optional: "confirmation", \.confirmation, .compact)
        Member(optional: "confirmed", \.confirmed, .compact)
        Member("state", \.state)
        Member(optional: "tries", \.tries, .integer(0...10))
        Member(optional: "spare", \.spare, .integer(0...100))
    }

    /// Destroys what the password opens.
    mutating func shred() {
        state = .shredded
        current.keys = current.keys.map { $0.emptied }
        (pending, commit, ratchet, ratchetNext, last, confirmation, confirmed) = (nil, nil, nil, nil, nil, nil, nil)
    }

    /// Takes over what the server has signed of this password. If it has signed something else since, a change that it
    /// has made, and a key that it has destroyed, are taken over all the same: they are never undone.
    mutating func adopt(_ status: SlotStatus, _ order: StatusOrder = .later) {
        guard mode == .assisted, state != .shredded else { return }
        if let pending, status.generation == pending.generation {
            current = pending
            (self.pending, commit) = (nil, nil)
        }
        let isForGood = status.state == .shredded && status.generation == current.generation
        switch order {
        case .earlier where !isForGood: return
        case .together where !isForGood:
            guard status.generation == current.generation else { return }
            state = state.strictness > status.state.strictness ? state : status.state
            tries = tries.map { min($0, status.tries) } ?? status.tries
            spare = spare.map { min($0, status.spare) } ?? status.spare
        case .earlier, .together, .later: (state, tries, spare) = (status.state, status.tries, status.spare)
        }
        if status.state == .shredded { shred() }
    }
}

/// The keys under one generation of a password.
struct SealedGeneration: ShapedPart {
    var generation: Int
    var salt: [UInt8]
    var cost: PasswordCost
    /// The pinned public key of the VOPRF, for `assisted`.
    var publicKey: [UInt8]?
    var keys: [SealedKeyRecord]

    static let shape = MessageShape<Self>(Self.init) {
        Member("gen", \.generation, .integer(0...1 << 31))
        Member("salt", \.salt, .bytes(16))
        Member("kdf", \.cost)
        Member(optional: "pk", \.publicKey, .bytes(49))
        Member("keys", \.keys, .objects(1...8))
    }
}

/// A private key that software has made and sealed twice: under the password's key, and for the key provider.
struct SealedKeyRecord: ShapedPart {
    var label: String
    var jwk: ProtocolKey
    /// The outer blob; empty when it was destroyed.
    var blob: [UInt8]

    static let shape = MessageShape<Self>(Self.init) {
        Member("label", \.label, .label)
        Member("jwk", \.jwk)
        // An inner blob has at most 24 earlier passwords, and an issuer of at most 512 characters.
        Member("blob", \.blob, .bytes(kibibytes: 6))
    }

    /// What is left when the key is destroyed.
    var emptied: SealedKeyRecord { SealedKeyRecord(label: label, jwk: jwk, blob: []) }
}
