/// A key set of the container, with everything that vouches for it.
package struct EvidenceEnrolment: ShapedPart {
    /// The compact `tsp-record+jwt`.
    package let record: String
    /// The compact `tsp-enrol+jwt`.
    package let enrol: String
    /// The compact `tsp-offer+jwt`.
    package let offer: String
    /// Compact `tsp-endorse+jwt` messages of the key set before.
    package let endorsements: [String]

    package init(record: String, enrol: String, offer: String, endorsements: [String]) {
        (self.record, self.enrol, self.offer, self.endorsements) = (record, enrol, offer, endorsements)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("record", \.record, .compact)
        Member("enrol", \.enrol, .compact)
        Member("offer", \.offer, .compact)
        Member("endorsements", \.endorsements, .compacts(0...2))
    }
}

/// A decision, with everything that it is about.
package struct EvidenceTransaction: ShapedPart {
    /// The compact `tsp-txd+jwt`; absent after a blind refusal.
    package let document: String?
    /// The framed bytes whose hash is `req`.
    package let request: [UInt8]?
    /// The compact `tsp-decision+jwt`.
    package let decision: String
    /// The compact `tsp-possession+jwt`, if another key than the device key decided.
    package let possession: String?
    /// The compact `tsp-receipt+jwt`.
    package let receipt: String
    /// The compact `tsp-eval+jwt`, for a key of an assisted slot.
    package let evaluation: String?
    /// The compact `tsp-confirm+jwt`, for a key of an assisted slot.
    package let confirmation: String?

    package init(
        document: String? = nil, request: [UInt8]? = nil, decision: String, possession: String? = nil, receipt: String,
        evaluation: String? = nil, confirmation: String? = nil
    ) {
        (self.document, self.request, self.decision, self.possession) = (document, request, decision, possession)
        (self.receipt, self.evaluation, self.confirmation) = (receipt, evaluation, confirmation)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member(optional: "txd", \.document, .compact)
        Member(optional: "request", \.request, .bytes(kibibytes: 48))
        Member("decision", \.decision, .compact)
        Member(optional: "possession", \.possession, .compact)
        Member("receipt", \.receipt, .compact)
        Member(optional: "eval", \.evaluation, .compact)
        Member(optional: "confirm", \.confirmation, .compact)
    }
}

/// A file with all signatures of one or more decisions of one container.
package struct EvidenceBundle: ShapedPart {
    package let issuer: String
    /// The issuer's identity keys, from the first record's on.
    package let identities: [ProtocolKey]
    /// Compact `tsp-next+jwt` messages.
    package let next: [String]
    /// Compact `tsp-previous+jwt` messages.
    package let previous: [String]
    /// Compact `tsp-cert+jwt` messages.
    package let certificates: [String]
    /// Every key set up to the one that decided.
    package let enrolments: [EvidenceEnrolment]
    package let transactions: [EvidenceTransaction]

    package init(
        issuer: String, identities: [ProtocolKey], next: [String], previous: [String], certificates: [String],
        enrolments: [EvidenceEnrolment], transactions: [EvidenceTransaction]
    ) {
        (self.issuer, self.identities, self.next, self.previous) = (issuer, identities, next, previous)
        (self.certificates, self.enrolments, self.transactions) = (certificates, enrolments, transactions)
    }

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("iss", \.issuer, .issuer)
        Member("identity", \.identities, .keys(1...16))
        Member("next", \.next, .compacts(0...16))
        Member("previous", \.previous, .compacts(0...16))
        Member("certs", \.certificates, .compacts(1...64))
        Member("enrolments", \.enrolments, .objects(1...100))
        Member("transactions", \.transactions, .objects(1...100))
    }

    /// The longest bundle in bytes.
    package static let limit = 1 << 20

    /// Reads a bundle. Its messages are not looked at yet.
    package init(reading bytes: [UInt8]) throws(SigningProtocolError) {
        try self.init(plaintext: bytes, limit: Self.limit)
    }
}
