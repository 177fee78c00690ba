package import AssentCore

/// How a user was recognised (RFC 8176).
package enum ReceiptMethod: String, Hashable, Sendable, CaseIterable {
    /// The device was there.
    case possession = "pop"
    /// A PIN was counted by the server.
    case pin
    /// A PIN or biometry was counted by the server.
    case user
}

/// The evaluation that opened a key.
package struct ReceiptUnlock: MessagePart {
    /// The password's slot.
    package let slot: PasswordSlot
    /// The slot's generation.
    package let generation: Int
    /// The evaluation's number.
    package let n: Int
    /// When it was made.
    package let evaluatedAt: Int
    /// When it was confirmed.
    package let confirmedAt: Int

    /// The content with these members; the reader checks their bounds.
    package init(
        slot: PasswordSlot, generation: Int, n: Int, evaluatedAt: Int, confirmedAt: Int
    ) {
        self.slot = slot
        self.generation = generation
        self.n = n
        self.evaluatedAt = evaluatedAt
        self.confirmedAt = confirmedAt
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        slot = try reader.choice("slot")
        generation = try reader.integer("gen", 0...1 << 31)
        n = try reader.integer("n", 1...StrictJSON.maximumInteger)
        evaluatedAt = try reader.integer("evaluated")
        confirmedAt = try reader.integer("confirmed")
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "slot": slot.json, "gen": .integer(generation), "n": .integer(n), "evaluated": .integer(evaluatedAt),
            "confirmed": .integer(confirmedAt),
        ])
    }
}

/// The server's statement about a decision.
package struct Receipt: SignedContent {
    /// `tsp-receipt+jwt`.
    package static let type = MessageType.receipt

    /// The issuer.
    package let issuer: String
    /// The container.
    package let did: SigningID
    /// The time of the decision.
    package let decidedAt: Int
    /// The transaction.
    package let txn: SigningID
    /// The user's id.
    package let sub: String
    /// The relying party's id.
    package let relyingParty: String
    /// What was asked.
    package let request: SigningHash
    /// The document's hash; absent after a blind refusal.
    package let document: SigningHash?
    /// The decision's hash.
    package let decision: SigningHash
    /// The status' name.
    package let status: String
    /// Its effect.
    package let effect: DecisionEffect
    /// What became of the transaction.
    package let state: DecidedState
    /// The key that signed.
    package let kid: KeyThumbprint
    /// The device key.
    package let device: KeyThumbprint
    /// Always active.
    package let keyState: ContainerKeyState
    /// Since when the key was active.
    package let since: Int
    /// The newest record of the container.
    package let record: SigningHash
    /// How the user was recognised.
    package let methods: [ReceiptMethod]
    /// Whether a number was asked for, and right.
    package let matched: Bool
    /// The evaluation that opened the key.
    package let unlock: ReceiptUnlock?
    /// The audit record.
    package let audit: String

    /// The content with these members; the reader checks their bounds.
    package init(
        issuer: String, did: SigningID, decidedAt: Int, txn: SigningID, sub: String, relyingParty: String,
        request: SigningHash, document: SigningHash? = nil, decision: SigningHash, status: String,
        effect: DecisionEffect, state: DecidedState, kid: KeyThumbprint, device: KeyThumbprint,
        keyState: ContainerKeyState, since: Int, record: SigningHash, methods: [ReceiptMethod],
        matched: Bool = false, unlock: ReceiptUnlock? = nil, audit: String
    ) {
        self.issuer = issuer
        self.did = did
        self.decidedAt = decidedAt
        self.txn = txn
        self.sub = sub
        self.relyingParty = relyingParty
        self.request = request
        self.document = document
        self.decision = decision
        self.status = status
        self.effect = effect
        self.state = state
        self.kid = kid
        self.device = device
        self.keyState = keyState
        self.since = since
        self.record = record
        self.methods = methods
        self.matched = matched
        self.unlock = unlock
        self.audit = audit
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        try reader.version()
        issuer = try reader.issuer("iss")
        did = try reader.fixed("aud")
        decidedAt = try reader.integer("iat")
        txn = try reader.fixed("txn")
        sub = try reader.ascii("sub", 1...64)
        relyingParty = try reader.ascii("rp", 1...64)
        request = try reader.fixed("req")
        document = reader.has("txh") ? try reader.fixed("txh") : nil
        decision = try reader.fixed("dh")
        status = try reader.label("status")
        effect = try reader.choice("effect")
        state = try reader.choice("state")
        kid = try reader.fixed("kid")
        device = try reader.fixed("device")
        keyState = try reader.choice("keyState")
        since = try reader.integer("since")
        record = try reader.fixed("record")
        methods = try reader.choices("amr", 1...2)
        matched = try reader.flag("match")
        unlock = reader.has("unlock") ? try reader.object("unlock") : nil
        audit = try reader.uuid("audit")
        guard keyState == .active else { throw .invalid("keyState", "is not ACTIVE") }
        guard methods.contains(.possession) else { throw .invalid("amr", "has no pop") }
        guard state == effect.state else { throw .invalid("state", "does not fit the effect") }
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "v": 1, "iss": .string(issuer), "aud": did.json, "iat": .integer(decidedAt), "txn": txn.json,
            "sub": .string(sub), "rp": .string(relyingParty), "req": request.json, "txh": document.map { $0.json },
            "dh": decision.json, "status": .string(status), "effect": effect.json, "state": state.json,
            "kid": kid.json, "device": device.json, "keyState": keyState.json, "since": .integer(since),
            "record": record.json, "amr": methods.jsonArray(\.json), "match": matched ? true : nil,
            "unlock": unlock.map { $0.json }, "audit": .string(audit),
        ])
    }
}
