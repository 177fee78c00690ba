/// A key set of the container, with everything that vouches for it: compact messages.
package struct EvidenceEnrolment: ShapedPart {
    package let record: String
    package let enrol: String
    package let offer: String
    /// By keys of the key set before.
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

/// A decision, with everything that it is about: compact messages.
package struct EvidenceTransaction: ShapedPart {
    /// Absent after a blind refusal.
    package let document: String?
    /// The framed bytes whose hash is `req`.
    package let request: [UInt8]?
    package let decision: String
    /// If another key than the device key decided.
    package let possession: String?
    package let receipt: String
    /// For a key of an assisted slot.
    package let evaluation: String?
    /// For a key of an assisted slot.
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

/// A file with all signatures of one or more decisions of one container; its messages are compact.
package struct EvidenceBundle: ShapedPart {
    package let issuer: String
    /// The issuer's identity keys, from the first record's on.
    package let identities: [ProtocolKey]
    package let next: [String]
    package let previous: [String]
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
        // The first one and its successors.
        Member("identity", \.identities, .keys(1...17))
        Member("next", \.next, .compacts(0...16))
        Member("previous", \.previous, .compacts(0...16))
        Member("certs", \.certificates, .compacts(1...64))
        Member("enrolments", \.enrolments, .objects(1...(EnrolmentRecord.maximumSequence + 1)))
        Member("transactions", \.transactions, .objects(1...100))
    }

    /// The longest bundle in bytes: 16 KiB for each key set that a container can have.
    package static let limit = 16 << 20

    /// Reads a bundle. Its messages are not looked at yet.
    package init(reading bytes: [UInt8]) throws(SigningProtocolError) {
        try self.init(plaintext: bytes, limit: Self.limit)
    }
}
