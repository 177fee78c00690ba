/// What an evaluation is for.
package enum EvaluationPurpose: String, Hashable, MemberValue, CaseIterable {
    case enrol
    case unlock
    case change
}

/// A step of a password's change.
package enum PasswordChangeStep: String, Hashable, MemberValue, CaseIterable {
    /// A new key is made beside the old one.
    case start
    /// The new key takes the old one's place.
    case commit
}

/// The server's evaluation of a blinded password.
package struct Evaluation: ReplyContent {
    package static let type = MessageType.evaluation
    package let head: SigningReplyHead
    package let purpose: EvaluationPurpose
    package let slot: PasswordSlot
    package let generation: Int
    package let publicKey: [UInt8]
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

    package init(
        head: SigningReplyHead, purpose: EvaluationPurpose, slot: PasswordSlot, generation: Int, publicKey: [UInt8],
        evaluated: [UInt8], proof: [UInt8], left: Int? = nil, unl: SigningID? = nil, n: Int? = nil, tries: Int? = nil,
        spare: Int? = nil, wait: Int? = nil
    ) {
        (self.head, self.purpose, self.slot, self.generation) = (head, purpose, slot, generation)
        (self.publicKey, self.evaluated, self.proof, self.left, self.unl) = (publicKey, evaluated, proof, left, unl)
        (self.n, self.tries, self.spare, self.wait) = (n, tries, spare, wait)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member(embedded: \.head)
        Member("purpose", \.purpose)
        Member("slot", \.slot)
        Member("gen", \.generation, .integer(0...1 << 31))
        Member("pk", \.publicKey, .bytes(49))
        Member("evaluated", \.evaluated, .bytes(49))
        Member("proof", \.proof, .bytes(96))
        Member(optional: "left", \.left, .integer(0...4))
        Member(optional: "unl", \.unl)
        Member(optional: "n", \.n, .integer(1...StrictJSON.maximumInteger))
        Member(optional: "tries", \.tries, .integer(0...10))
        Member(optional: "spare", \.spare, .integer(0...100))
        Member(optional: "wait", \.wait, .integer(0...86400))
    }

    package func check(in reader: MemberReader) throws(SigningProtocolError) {
        let unlocking = [unl != nil, n != nil, tries != nil, spare != nil, wait != nil]
        guard unlocking.allSatisfy({ $0 == (purpose == .unlock) }), (left != nil) == (purpose == .enrol) else {
            throw .invalid("purpose", "does not fit the other members")
        }
    }
}

/// A slot's key says that an evaluation opened it.
package struct EvaluationConfirmation: SignedContent {
    package static let type = MessageType.confirmation
    package let issuer: String
    package let did: SigningID
    package let slot: PasswordSlot
    package let generation: Int
    package let n: Int
    package let unl: SigningID
    package let evaluation: SigningHash

    package init(
        issuer: String, did: SigningID, slot: PasswordSlot, generation: Int, n: Int, unl: SigningID,
        evaluation: SigningHash
    ) {
        (self.issuer, self.did, self.slot, self.generation, self.n, self.unl) = (issuer, did, slot, generation, n, unl)
        self.evaluation = evaluation
    }

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("aud", \.issuer, .issuer)
        Member("did", \.did)
        Member("slot", \.slot)
        Member("gen", \.generation, .integer(0...1 << 31))
        Member("n", \.n, .integer(1...StrictJSON.maximumInteger))
        Member("unl", \.unl)
        Member("eval", \.evaluation)
    }
}

/// A slot's key asks for a new password.
package struct PasswordChange: SignedContent {
    package static let type = MessageType.change
    package let issuer: String
    package let did: SigningID
    package let slot: PasswordSlot
    package let from: Int
    package let to: Int
    package let step: PasswordChangeStep
    /// At the start: a confirmed evaluation, which the change takes.
    package let unl: SigningID?
    /// At the commit: the key that has evaluated the new password, 49 bytes. Only this pending key is meant: a start
    /// that somebody has held back makes another one.
    package let publicKey: [UInt8]?
    package let jti: SigningID

    package init(
        issuer: String, did: SigningID, slot: PasswordSlot, from: Int, to: Int, step: PasswordChangeStep,
        unl: SigningID? = nil, publicKey: [UInt8]? = nil, jti: SigningID
    ) {
        (self.issuer, self.did, self.slot, self.from, self.to, self.step) = (issuer, did, slot, from, to, step)
        (self.unl, self.publicKey, self.jti) = (unl, publicKey, jti)
    }

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("aud", \.issuer, .issuer)
        Member("did", \.did)
        Member("slot", \.slot)
        Member("from", \.from, .integer(0...1 << 31))
        Member("to", \.to, .integer(1...1 << 31))
        Member("step", \.step)
        Member(optional: "unl", \.unl)
        Member(optional: "pk", \.publicKey, .bytes(49))
        Member("jti", \.jti)
    }

    package func check(in reader: MemberReader) throws(SigningProtocolError) {
        guard to == from + 1, (unl != nil) == (step == .start), (publicKey != nil) == (step == .commit) else {
            throw .invalid("to", "does not fit the other members")
        }
    }
}
