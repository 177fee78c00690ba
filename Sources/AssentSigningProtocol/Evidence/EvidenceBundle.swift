package import AssentCore

/// A key set of the container, with everything that vouches for it.
package struct EvidenceEnrolment: MessagePart {
    /// The compact `tsp-record+jwt`.
    package let record: String
    /// The compact `tsp-enrol+jwt`.
    package let enrol: String
    /// The compact `tsp-offer+jwt`.
    package let offer: String
    /// Compact `tsp-endorse+jwt` messages of the key set before.
    package let endorsements: [String]

    /// The content with these members; the reader checks their bounds.
    package init(
        record: String, enrol: String, offer: String, endorsements: [String]
    ) {
        self.record = record
        self.enrol = enrol
        self.offer = offer
        self.endorsements = endorsements
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        record = try reader.compact("record")
        enrol = try reader.compact("enrol")
        offer = try reader.compact("offer")
        endorsements = try reader.compacts("endorsements", 0...2)
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "record": .string(record), "enrol": .string(enrol), "offer": .string(offer),
            "endorsements": endorsements.jsonArray(JSONValue.string),
        ])
    }
}

/// A decision, with everything that it is about.
package struct EvidenceTransaction: MessagePart {
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

    /// The content with these members; the reader checks their bounds.
    package init(
        document: String? = nil, request: [UInt8]? = nil, decision: String, possession: String? = nil,
        receipt: String, evaluation: String? = nil, confirmation: String? = nil
    ) {
        self.document = document
        self.request = request
        self.decision = decision
        self.possession = possession
        self.receipt = receipt
        self.evaluation = evaluation
        self.confirmation = confirmation
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        document = reader.has("txd") ? try reader.compact("txd") : nil
        request = reader.has("request") ? try reader.frame("request") : nil
        decision = try reader.compact("decision")
        possession = reader.has("possession") ? try reader.compact("possession") : nil
        receipt = try reader.compact("receipt")
        evaluation = reader.has("eval") ? try reader.compact("eval") : nil
        confirmation = reader.has("confirm") ? try reader.compact("confirm") : nil
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "txd": document.map { .string($0) }, "request": request.map { .string(Base64URL.encode($0)) },
            "decision": .string(decision), "possession": possession.map { .string($0) }, "receipt": .string(receipt),
            "eval": evaluation.map { .string($0) }, "confirm": confirmation.map { .string($0) },
        ])
    }
}

/// A file with all signatures of one or more decisions of one container.
package struct EvidenceBundle: MessagePart {
    /// The issuer.
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
    /// The decisions.
    package let transactions: [EvidenceTransaction]

    /// The content with these members; the reader checks their bounds.
    package init(
        issuer: String, identities: [ProtocolKey], next: [String], previous: [String], certificates: [String],
        enrolments: [EvidenceEnrolment], transactions: [EvidenceTransaction]
    ) {
        self.issuer = issuer
        self.identities = identities
        self.next = next
        self.previous = previous
        self.certificates = certificates
        self.enrolments = enrolments
        self.transactions = transactions
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        try reader.version()
        issuer = try reader.issuer("iss")
        identities = try reader.keys("identity", 1...16)
        next = try reader.compacts("next", 0...16)
        previous = try reader.compacts("previous", 0...16)
        certificates = try reader.compacts("certs", 1...64)
        enrolments = try reader.objects("enrolments", 1...100)
        transactions = try reader.objects("transactions", 1...100)
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "v": 1, "iss": .string(issuer), "identity": identities.jsonArray(\.json),
            "next": next.jsonArray(JSONValue.string), "previous": previous.jsonArray(JSONValue.string),
            "certs": certificates.jsonArray(JSONValue.string), "enrolments": enrolments.jsonArray(\.json),
            "transactions": transactions.jsonArray(\.json),
        ])
    }

    /// The longest bundle in bytes.
    package static let limit = 1 << 20

    /// Reads a bundle. Its messages are not looked at yet.
    ///
    /// - Throws: ``SigningProtocolError``.
    package init(reading bytes: [UInt8]) throws(SigningProtocolError) {
        var reader = MemberReader(try StrictJSON.object(bytes, limit: Self.limit))
        try self.init(reading: &reader)
        try reader.finish()
    }
}
