package import AssentCore

/// What a user's answer does.
public enum DecisionEffect: String, Hashable, Sendable, CaseIterable {
    /// The transaction is approved.
    case approve
    /// It is refused.
    case deny
    /// It is refused and reported as suspicious.
    case report
    /// It is given up.
    case cancel

    /// What becomes of the transaction.
    package var state: DecidedState {
        switch self {
        case .approve: .approved
        case .deny: .denied
        case .report: .reported
        case .cancel: .canceled
        }
    }
}

/// What became of a transaction that was decided.
package enum DecidedState: String, Hashable, Sendable, CaseIterable {
    /// The user approved.
    case approved = "APPROVED"
    /// The user refused.
    case denied = "DENIED"
    /// The user reported it.
    case reported = "REPORTED"
    /// The user gave it up.
    case canceled = "CANCELED"
}

/// A user's decision, signed by a key that the document names.
package struct Decision: SignedContent {
    /// `tsp-decision+jwt`.
    package static let type = MessageType.decision

    /// The issuer.
    package let issuer: String
    /// The container.
    package let did: SigningID
    /// The user's id.
    package let sub: String
    /// The transaction.
    package let txn: SigningID
    /// Whether the user refused without having opened the document.
    package let isBlind: Bool
    /// The document's nonce; not when blind.
    package let nonce: SigningID?
    /// The document's hash; not when blind.
    package let document: SigningHash?
    /// The hash of the texts that were shown; not when blind.
    package let displayed: SigningHash?
    /// The status' name.
    package let status: String
    /// Its effect.
    package let effect: DecisionEffect
    /// The user's reason.
    package let reason: String?
    /// The number that the user typed.
    package let match: String?
    /// The confirmed evaluation that opened the key.
    package let unl: SigningID?
    /// The message's id.
    package let jti: SigningID

    /// The content with these members; the reader checks their bounds.
    package init(
        issuer: String, did: SigningID, sub: String, txn: SigningID, isBlind: Bool = false, nonce: SigningID? = nil,
        document: SigningHash? = nil, displayed: SigningHash? = nil, status: String, effect: DecisionEffect,
        reason: String? = nil, match: String? = nil, unl: SigningID? = nil, jti: SigningID
    ) {
        self.issuer = issuer
        self.did = did
        self.sub = sub
        self.txn = txn
        self.isBlind = isBlind
        self.nonce = nonce
        self.document = document
        self.displayed = displayed
        self.status = status
        self.effect = effect
        self.reason = reason
        self.match = match
        self.unl = unl
        self.jti = jti
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        try reader.version()
        issuer = try reader.issuer("aud")
        did = try reader.fixed("did")
        sub = try reader.ascii("sub", 1...64)
        txn = try reader.fixed("txn")
        isBlind = try reader.flag("blind")
        nonce = reader.has("nonce") ? try reader.fixed("nonce") : nil
        document = reader.has("txh") ? try reader.fixed("txh") : nil
        displayed = reader.has("dsp") ? try reader.fixed("dsp") : nil
        status = try reader.label("status")
        effect = try reader.choice("effect")
        reason = reader.has("reason") ? try reader.shown("reason", 1...200) : nil
        match = reader.has("match") ? try reader.ascii("match", 2...2) : nil
        unl = reader.has("unl") ? try reader.fixed("unl") : nil
        jti = try reader.fixed("jti")
        if let match, !match.utf8.allSatisfy(\.isASCIIDigit) { throw .invalid("match", "is not a number of 2 digits") }
        if isBlind {
            guard nonce == nil, document == nil, displayed == nil, match == nil, unl == nil,
                effect == .deny || effect == .report, StrictJSON.same(status, effect.rawValue)
            else { throw .invalid("blind", "does not fit the other members") }
        } else {
            guard nonce != nil, document != nil, displayed != nil else {
                throw SigningProtocolError(.missingMember, "nonce, txh or dsp is missing.")
            }
        }
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "v": 1, "aud": .string(issuer), "did": did.json, "sub": .string(sub), "txn": txn.json,
            "blind": isBlind ? true : nil, "nonce": nonce.map { $0.json }, "txh": document.map { $0.json },
            "dsp": displayed.map { $0.json }, "status": .string(status), "effect": effect.json,
            "reason": reason.map { .string($0) }, "match": match.map { .string($0) }, "unl": unl.map { $0.json },
            "jti": jti.json,
        ])
    }
}

/// The device key's signature over a decision of another key.
package struct Possession: SignedContent {
    /// `tsp-possession+jwt`.
    package static let type = MessageType.possession

    /// The issuer.
    package let issuer: String
    /// The container.
    package let did: SigningID
    /// The transaction.
    package let txn: SigningID
    /// The decision's hash.
    package let decision: SigningHash

    /// The content with these members; the reader checks their bounds.
    package init(
        issuer: String, did: SigningID, txn: SigningID, decision: SigningHash
    ) {
        self.issuer = issuer
        self.did = did
        self.txn = txn
        self.decision = decision
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        try reader.version()
        issuer = try reader.issuer("aud")
        did = try reader.fixed("did")
        txn = try reader.fixed("txn")
        decision = try reader.fixed("dh")
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "v": 1, "aud": .string(issuer), "did": did.json, "txn": txn.json, "dh": decision.json,
        ])
    }
}
