package import AssentCore

/// What an evaluation is for.
package enum EvaluationPurpose: String, Hashable, Sendable, CaseIterable {
    /// Setting a password at enrolment.
    case enrol
    /// Opening a key.
    case unlock
    /// Setting a new password.
    case change
}

/// A step of a password's change.
package enum PasswordChangeStep: String, Hashable, Sendable, CaseIterable {
    /// A new key is made beside the old one.
    case start
    /// The new key takes the old one's place.
    case commit
}

/// The server's evaluation of a blinded password.
package struct Evaluation: ReplyContent {
    /// `tsp-eval+jwt`.
    package static let type = MessageType.evaluation

    /// What every reply has.
    package let head: SigningReplyHead
    /// What it is for.
    package let purpose: EvaluationPurpose
    /// The password's slot.
    package let slot: PasswordSlot
    /// The slot's generation.
    package let generation: Int
    /// The public key of the VOPRF.
    package let publicKey: [UInt8]
    /// The evaluated element.
    package let evaluated: [UInt8]
    /// The proof that the public key's private part evaluated it.
    package let proof: [UInt8]
    /// At enrolment: evaluations that are left.
    package let left: Int?
    /// At an unlock: the evaluation's id.
    package let unl: SigningID?
    /// At an unlock: its number.
    package let n: Int?
    /// At an unlock: tries that are left.
    package let tries: Int?
    /// At an unlock: evaluations that are left before the key is destroyed.
    package let spare: Int?
    /// At an unlock: seconds until the next try.
    package let wait: Int?

    /// The content with these members; the reader checks their bounds.
    package init(
        head: SigningReplyHead, purpose: EvaluationPurpose, slot: PasswordSlot, generation: Int, publicKey: [UInt8],
        evaluated: [UInt8], proof: [UInt8], left: Int? = nil, unl: SigningID? = nil, n: Int? = nil,
        tries: Int? = nil, spare: Int? = nil, wait: Int? = nil
    ) {
        self.head = head
        self.purpose = purpose
        self.slot = slot
        self.generation = generation
        self.publicKey = publicKey
        self.evaluated = evaluated
        self.proof = proof
        self.left = left
        self.unl = unl
        self.n = n
        self.tries = tries
        self.spare = spare
        self.wait = wait
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        head = try SigningReplyHead(reading: &reader)
        purpose = try reader.choice("purpose")
        slot = try reader.choice("slot")
        generation = try reader.integer("gen", 0...1 << 31)
        publicKey = try reader.bytes("pk", count: 49)
        evaluated = try reader.bytes("evaluated", count: 49)
        proof = try reader.bytes("proof", count: 96)
        left = reader.has("left") ? try reader.integer("left", 0...4) : nil
        unl = reader.has("unl") ? try reader.fixed("unl") : nil
        n = reader.has("n") ? try reader.integer("n", 1...StrictJSON.maximumInteger) : nil
        tries = reader.has("tries") ? try reader.integer("tries", 0...10) : nil
        spare = reader.has("spare") ? try reader.integer("spare", 0...100) : nil
        wait = reader.has("wait") ? try reader.integer("wait", 0...86400) : nil
        let unlocking = [unl != nil, n != nil, tries != nil, spare != nil, wait != nil]
        guard unlocking.allSatisfy({ $0 == (purpose == .unlock) }), (left != nil) == (purpose == .enrol) else {
            throw .invalid("purpose", "does not fit the other members")
        }
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        head.with([
            "purpose": purpose.json, "slot": slot.json, "gen": .integer(generation),
            "pk": .string(Base64URL.encode(publicKey)), "evaluated": .string(Base64URL.encode(evaluated)),
            "proof": .string(Base64URL.encode(proof)), "left": left.map { .integer($0) }, "unl": unl.map { $0.json },
            "n": n.map { .integer($0) }, "tries": tries.map { .integer($0) }, "spare": spare.map { .integer($0) },
            "wait": wait.map { .integer($0) },
        ])
    }
}

/// A slot's key says that an evaluation opened it.
package struct EvaluationConfirmation: SignedContent {
    /// `tsp-confirm+jwt`.
    package static let type = MessageType.confirmation

    /// The issuer.
    package let issuer: String
    /// The container.
    package let did: SigningID
    /// The password's slot.
    package let slot: PasswordSlot
    /// The slot's generation.
    package let generation: Int
    /// The evaluation's number.
    package let n: Int
    /// The evaluation's id.
    package let unl: SigningID
    /// The evaluation's hash.
    package let evaluation: SigningHash

    /// The content with these members; the reader checks their bounds.
    package init(
        issuer: String, did: SigningID, slot: PasswordSlot, generation: Int, n: Int, unl: SigningID,
        evaluation: SigningHash
    ) {
        self.issuer = issuer
        self.did = did
        self.slot = slot
        self.generation = generation
        self.n = n
        self.unl = unl
        self.evaluation = evaluation
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        try reader.version()
        issuer = try reader.issuer("aud")
        did = try reader.fixed("did")
        slot = try reader.choice("slot")
        generation = try reader.integer("gen", 0...1 << 31)
        n = try reader.integer("n", 1...StrictJSON.maximumInteger)
        unl = try reader.fixed("unl")
        evaluation = try reader.fixed("eval")
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "v": 1, "aud": .string(issuer), "did": did.json, "slot": slot.json, "gen": .integer(generation),
            "n": .integer(n), "unl": unl.json, "eval": evaluation.json,
        ])
    }
}

/// A slot's key asks for a new password.
package struct PasswordChange: SignedContent {
    /// `tsp-change+jwt`.
    package static let type = MessageType.change

    /// The issuer.
    package let issuer: String
    /// The container.
    package let did: SigningID
    /// The password's slot.
    package let slot: PasswordSlot
    /// The generation before.
    package let from: Int
    /// The generation after.
    package let to: Int
    /// Which step.
    package let step: PasswordChangeStep
    /// At the start: a confirmed evaluation, which the change takes.
    package let unl: SigningID?
    /// At the commit: the key that has evaluated the new password, 49 bytes. Only this pending key is meant: a start
    /// that somebody has held back makes another one.
    package let publicKey: [UInt8]?
    /// The message's id.
    package let jti: SigningID

    /// The content with these members; the reader checks their bounds.
    package init(
        issuer: String, did: SigningID, slot: PasswordSlot, from: Int, to: Int, step: PasswordChangeStep,
        unl: SigningID? = nil, publicKey: [UInt8]? = nil, jti: SigningID
    ) {
        self.issuer = issuer
        self.did = did
        self.slot = slot
        self.from = from
        self.to = to
        self.step = step
        self.unl = unl
        self.publicKey = publicKey
        self.jti = jti
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        try reader.version()
        issuer = try reader.issuer("aud")
        did = try reader.fixed("did")
        slot = try reader.choice("slot")
        from = try reader.integer("from", 0...1 << 31)
        to = try reader.integer("to", 1...1 << 31)
        step = try reader.choice("step")
        unl = reader.has("unl") ? try reader.fixed("unl") : nil
        publicKey = reader.has("pk") ? try reader.bytes("pk", count: 49) : nil
        jti = try reader.fixed("jti")
        guard to == from + 1, (unl != nil) == (step == .start), (publicKey != nil) == (step == .commit) else {
            throw .invalid("to", "does not fit the other members")
        }
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "v": 1, "aud": .string(issuer), "did": did.json, "slot": slot.json, "from": .integer(from),
            "to": .integer(to), "step": step.json, "unl": unl.map { $0.json },
            "pk": publicKey.map { .string(Base64URL.encode($0)) }, "jti": jti.json,
        ])
    }
}
