/// How a user was recognised (RFC 8176).
package enum ReceiptMethod: String, Hashable, MemberValue, CaseIterable {
    /// The device was there.
    case possession = "pop"
    /// A PIN was counted by the server.
    case pin
    /// A PIN or biometry was counted by the server.
    case user
}

/// The evaluation that opened a key.
package struct ReceiptUnlock: ShapedPart {
    package let slot: PasswordSlot
    package let generation: Int
    package let n: Int
    package let evaluatedAt: Int
    package let confirmedAt: Int

    package init(slot: PasswordSlot, generation: Int, n: Int, evaluatedAt: Int, confirmedAt: Int) {
        (self.slot, self.generation, self.n, self.evaluatedAt) = (slot, generation, n, evaluatedAt)
        self.confirmedAt = confirmedAt
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("slot", \.slot)
        Member("gen", \.generation, .integer(0...1 << 31))
        Member("n", \.n, .integer(1...StrictJSON.maximumInteger))
        Member("evaluated", \.evaluatedAt)
        Member("confirmed", \.confirmedAt)
    }
}

/// The server's statement about a decision.
package struct Receipt: SignedContent {
    package static let type = MessageType.receipt
    package let issuer: String
    package let did: SigningID
    package let decidedAt: Int
    package let txn: SigningID
    package let sub: String
    /// The relying party's id.
    package let relyingParty: String
    package let request: SigningHash
    /// The document's hash; absent after a blind refusal.
    package let document: SigningHash?
    package let decision: SigningHash
    package let status: String
    package let effect: DecisionEffect
    package let state: DecidedState
    package let kid: KeyThumbprint
    package let device: KeyThumbprint
    /// Always active.
    package let keyState: ContainerKeyState
    /// Since when the key was active.
    package let since: Int
    /// The newest record of the container.
    package let record: SigningHash
    package let methods: [ReceiptMethod]
    /// Whether a number was asked for, and right.
    package let matched: Bool
    package let unlock: ReceiptUnlock?
    package let audit: String

    package init(
        issuer: String, did: SigningID, decidedAt: Int, txn: SigningID, sub: String, relyingParty: String,
        request: SigningHash, document: SigningHash? = nil, decision: SigningHash, status: String,
        effect: DecisionEffect, state: DecidedState, kid: KeyThumbprint, device: KeyThumbprint,
        keyState: ContainerKeyState, since: Int, record: SigningHash, methods: [ReceiptMethod], matched: Bool = false,
        unlock: ReceiptUnlock? = nil, audit: String
    ) {
        (self.issuer, self.did, self.decidedAt, self.txn, self.sub) = (issuer, did, decidedAt, txn, sub)
        (self.relyingParty, self.request, self.document, self.decision) = (relyingParty, request, document, decision)
        (self.status, self.effect, self.state, self.kid, self.device) = (status, effect, state, kid, device)
        (self.keyState, self.since, self.record, self.methods) = (keyState, since, record, methods)
        (self.matched, self.unlock, self.audit) = (matched, unlock, audit)
    }

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("iss", \.issuer, .issuer)
        Member("aud", \.did)
        Member("iat", \.decidedAt)
        Member("txn", \.txn)
        Member("sub", \.sub, .ascii(1...64))
        Member("rp", \.relyingParty, .ascii(1...64))
        Member("req", \.request)
        Member(optional: "txh", \.document)
        Member("dh", \.decision)
        Member("status", \.status, .label)
        Member("effect", \.effect)
        Member("state", \.state)
        Member("kid", \.kid)
        Member("device", \.device)
        Member("keyState", \.keyState)
        Member("since", \.since)
        Member("record", \.record)
        Member("amr", \.methods, .choices(1...2))
        Member(flag: "match", \.matched)
        Member(optional: "unlock", \.unlock)
        Member("audit", \.audit, .uuid)
    }

    package func check(in reader: MemberReader) throws(SigningProtocolError) {
        guard keyState == .active else { throw .invalid("keyState", "is not ACTIVE") }
        guard methods.contains(.possession) else { throw .invalid("amr", "has no pop") }
        guard state == effect.state else { throw .invalid("state", "does not fit the effect") }
    }
}
