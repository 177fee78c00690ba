import AssentCore

/// What a user's answer does.
public enum DecisionEffect: String, Hashable, MemberValue, CaseIterable {
    /// The transaction is approved.
    case approve
    /// It is refused.
    case deny
    /// It is refused and reported as suspicious.
    case report
    /// It is given up.
    case cancel

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
package enum DecidedState: String, Hashable, MemberValue, CaseIterable {
    case approved = "APPROVED"
    case denied = "DENIED"
    case reported = "REPORTED"
    case canceled = "CANCELED"
}

/// A user's decision, signed by a key that the document names.
package struct Decision: SignedContent {
    package static let type = MessageType.decision
    package let issuer: String
    package let did: SigningID
    package let sub: String
    package let txn: SigningID
    /// Whether the user refused without having opened the document.
    package let isBlind: Bool
    /// The document's nonce; not when blind.
    package let nonce: SigningID?
    /// The document's hash; not when blind.
    package let document: SigningHash?
    /// The hash of the texts that were shown; not when blind.
    package let displayed: SigningHash?
    package let status: String
    package let effect: DecisionEffect
    package let reason: String?
    /// The number that the user typed.
    package let match: String?
    /// The confirmed evaluation that opened the key.
    package let unl: SigningID?
    package let jti: SigningID

    package init(
        issuer: String, did: SigningID, sub: String, txn: SigningID, isBlind: Bool = false, nonce: SigningID? = nil,
        document: SigningHash? = nil, displayed: SigningHash? = nil, status: String, effect: DecisionEffect,
        reason: String? = nil, match: String? = nil, unl: SigningID? = nil, jti: SigningID
    ) {
        (self.issuer, self.did, self.sub, self.txn, self.isBlind, self.nonce) = (issuer, did, sub, txn, isBlind, nonce)
        (self.document, self.displayed, self.status, self.effect) = (document, displayed, status, effect)
        (self.reason, self.match, self.unl, self.jti) = (reason, match, unl, jti)
    }

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("aud", \.issuer, .issuer)
        Member("did", \.did)
        Member("sub", \.sub, .ascii(1...64))
        Member("txn", \.txn)
        Member(flag: "blind", \.isBlind)
        Member(optional: "nonce", \.nonce)
        Member(optional: "txh", \.document)
        Member(optional: "dsp", \.displayed)
        Member("status", \.status, .label)
        Member("effect", \.effect)
        Member(optional: "reason", \.reason, .shown(1...200))
        Member(optional: "match", \.match, .ascii(2...2))
        Member(optional: "unl", \.unl)
        Member("jti", \.jti)
    }

    package func check(in reader: MemberReader) throws(SigningProtocolError) {
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
}

/// The device key's signature over a decision of another key.
package struct Possession: SignedContent {
    package static let type = MessageType.possession
    package let issuer: String
    package let did: SigningID
    package let txn: SigningID
    package let decision: SigningHash

    package init(issuer: String, did: SigningID, txn: SigningID, decision: SigningHash) {
        (self.issuer, self.did, self.txn, self.decision) = (issuer, did, txn, decision)
    }

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("aud", \.issuer, .issuer)
        Member("did", \.did)
        Member("txn", \.txn)
        Member("dh", \.decision)
    }
}
