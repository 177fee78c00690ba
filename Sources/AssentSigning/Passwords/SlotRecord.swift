import AssentCore
import AssentSigningProtocol

/// What a device keeps of one password: the keys that it seals, and what belongs to its exchange with the server.
/// Nothing in it was made from the password alone, other than the blobs of a `local` one.
struct SlotRecord: MessagePart {
    /// Which keys.
    var slot: PasswordSlot
    /// Where a guess is checked.
    var mode: PasswordMode
    /// What counts.
    var current: SealedGeneration
    /// What a change of the password will make count. Until the server has signed which one does, nothing is unlocked.
    var pending: SealedGeneration?
    /// The signed `tsp-change+jwt` that asks for it.
    var commit: String?
    /// `local`: failures in a row; one is added before each try.
    var failures: Int
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
    /// The state: for `assisted` what the server signed last.
    var state: PasswordSlotState
    /// `assisted`: tries that are left, as the server signed last.
    var tries: Int?
    /// `assisted`: evaluations that are left before the keys are lost, as the server signed last.
    var spare: Int?

    /// A password that was just set.
    init(slot: PasswordSlot, mode: PasswordMode, current: SealedGeneration, ratchet: Secret?) {
        self.slot = slot
        self.mode = mode
        self.current = current
        self.ratchet = ratchet
        failures = 0
        state = .open
    }

    /// Reads the members and checks their bounds.
    init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        slot = try reader.choice("slot")
        mode = try reader.choice("mode")
        current = try reader.object("current")
        pending = reader.has("pending") ? try reader.object("pending") : nil
        commit = reader.has("commit") ? try reader.compact("commit") : nil
        failures = try reader.integer("failures")
        ratchet = reader.has("r") ? Secret(bytes: try reader.bytes("r", count: 32)) : nil
        ratchetNext = reader.has("rNext") ? Secret(bytes: try reader.bytes("rNext", count: 32)) : nil
        last = reader.has("last") ? try reader.compact("last") : nil
        confirmation = reader.has("confirmation") ? try reader.compact("confirmation") : nil
        confirmed = reader.has("confirmed") ? try reader.compact("confirmed") : nil
        state = try reader.choice("state")
        tries = reader.has("tries") ? try reader.integer("tries", 0...10) : nil
        spare = reader.has("spare") ? try reader.integer("spare", 0...100) : nil
    }

    /// The members.
    var members: JSONObject {
        func text(_ secret: Secret?) -> JSONValue? { secret.map { .string(Base64URL.encode($0.revealBytes())) } }
        return JSONObject(omittingNil: [
            "slot": .string(slot.rawValue), "mode": .string(mode.rawValue), "current": current.json,
            "pending": pending?.json, "commit": commit.map { .string($0) }, "failures": .integer(failures),
            "r": text(ratchet), "rNext": text(ratchetNext), "last": last.map { .string($0) },
            "confirmation": confirmation.map { .string($0) }, "confirmed": confirmed.map { .string($0) },
            "state": .string(state.rawValue), "tries": tries.map { .integer($0) },
            "spare": spare.map { .integer($0) },
        ])
    }

    /// Destroys what the password opens.
    mutating func shred() {
        state = .shredded
        current.keys = current.keys.map { $0.emptied }
        (pending, commit, ratchet, ratchetNext, last, confirmation, confirmed) = (nil, nil, nil, nil, nil, nil, nil)
    }

    /// Takes over what the server has signed of this password.
    mutating func adopt(_ status: SlotStatus) {
        guard mode == .assisted, state != .shredded else { return }
        if let pending, status.generation == pending.generation {
            current = pending
            (self.pending, commit) = (nil, nil)
        }
        state = status.state
        tries = status.tries
        spare = status.spare
        if status.state == .shredded { shred() }
    }
}

/// The keys under one generation of a password.
struct SealedGeneration: MessagePart {
    /// The number of this generation.
    var generation: Int
    /// The password's salt.
    var salt: [UInt8]
    /// What a guess costs.
    var cost: PasswordCost
    /// The pinned public key of the VOPRF, for `assisted`.
    var publicKey: [UInt8]?
    /// The keys.
    var keys: [SealedKeyRecord]

    /// Keys under one generation.
    init(generation: Int, salt: [UInt8], cost: PasswordCost, publicKey: [UInt8]?, keys: [SealedKeyRecord]) {
        self.generation = generation
        self.salt = salt
        self.cost = cost
        self.publicKey = publicKey
        self.keys = keys
    }

    /// Reads the members and checks their bounds.
    init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        generation = try reader.integer("gen", 0...1 << 31)
        salt = try reader.bytes("salt", count: 16)
        guard let cost = PasswordCost(try reader.ascii("kdf", 1...64)) else {
            throw SigningProtocolError(.invalidMember, "The cost of a password is not known.", member: "kdf")
        }
        self.cost = cost
        publicKey = reader.has("pk") ? try reader.bytes("pk", count: 49) : nil
        keys = try reader.objects("keys", 1...8)
    }

    /// The members.
    var members: JSONObject {
        JSONObject(omittingNil: [
            "gen": .integer(generation), "salt": .string(Base64URL.encode(salt)), "kdf": .string(cost.text),
            "pk": publicKey.map { .string(Base64URL.encode($0)) }, "keys": .array(keys.map(\.json)),
        ])
    }
}

/// A private key that software has made and sealed twice: under the password's key, and for the key provider.
struct SealedKeyRecord: MessagePart {
    /// Its name in the container.
    var label: String
    /// Its public key.
    var jwk: ProtocolKey
    /// The outer blob; empty when it was destroyed.
    var blob: [UInt8]

    /// A sealed key.
    init(label: String, jwk: ProtocolKey, blob: [UInt8]) {
        self.label = label
        self.jwk = jwk
        self.blob = blob
    }

    /// Reads the members and checks their bounds.
    init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        label = try reader.label("label")
        jwk = try reader.key("jwk")
        // An inner blob has at most 24 earlier passwords, and an issuer of at most 512 characters.
        guard let blob = Base64URL.decode(try reader.ascii("blob", 0...8192)) else {
            throw SigningProtocolError(.invalidMember, "A sealed key is not base64url.", member: "blob")
        }
        self.blob = blob
    }

    /// The members.
    var members: JSONObject {
        ["label": .string(label), "jwk": jwk.json, "blob": .string(Base64URL.encode(blob))]
    }

    /// What is left when the key is destroyed.
    var emptied: SealedKeyRecord { SealedKeyRecord(label: label, jwk: jwk, blob: []) }
}
