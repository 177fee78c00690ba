import AssentCore
import AssentSigningProtocol

/// A decision that was signed: a repetition must be the same bytes, and a signature does not give them twice.
struct DecisionRecord: MessagePart {
    /// The form of this record.
    var format: Int
    /// The container.
    var did: SigningID
    /// The transaction.
    var txn: SigningID
    /// When the transaction expires.
    var expires: Int
    /// The status' name.
    var status: String
    /// Its effect.
    var effect: DecisionEffect
    /// The compact `tsp-decision+jwt`.
    var decision: String
    /// The compact `tsp-possession+jwt`.
    var possession: String?

    /// The content with these members; the reader checks their bounds.
    init(
        format: Int, did: SigningID, txn: SigningID, expires: Int, status: String, effect: DecisionEffect,
        decision: String, possession: String? = nil
    ) {
        self.format = format
        self.did = did
        self.txn = txn
        self.expires = expires
        self.status = status
        self.effect = effect
        self.decision = decision
        self.possession = possession
    }

    /// Reads the members and checks their bounds.
    init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        format = try reader.integer("format", 1...1)
        did = try reader.fixed("did")
        txn = try reader.fixed("txn")
        expires = try reader.integer("exp")
        status = try reader.label("status")
        effect = try reader.choice("effect")
        decision = try reader.compact("decision")
        possession = reader.has("possession") ? try reader.compact("possession") : nil
    }

    /// The members, in the order of the specification's example.
    var members: JSONObject {
        JSONObject(omittingNil: [
            "format": .integer(format), "did": .string(did.text), "txn": .string(txn.text), "exp": .integer(expires),
            "status": .string(status), "effect": .string(effect.rawValue), "decision": .string(decision),
            "possession": possession.map { .string($0) },
        ])
    }
}
