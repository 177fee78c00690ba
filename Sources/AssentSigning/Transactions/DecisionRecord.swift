import AssentCore
import AssentSigningProtocol

/// A decision that was signed: a repetition must be the same bytes, and a signature does not give them twice.
struct DecisionRecord: ShapedPart {
    var format: Int
    var did: SigningID
    var txn: SigningID
    var expires: Int
    var status: String
    var effect: DecisionEffect
    /// The compact `tsp-decision+jwt`.
    var decision: String
    /// The compact `tsp-possession+jwt`.
    var possession: String?

    static let shape = MessageShape<Self>(Self.init) {
        Member("format", \.format, .integer(1...1))
        Member("did", \.did)
        Member("txn", \.txn)
        Member("exp", \.expires)
        Member("status", \.status, .label)
        Member("effect", \.effect)
        Member("decision", \.decision, .compact)
        Member(optional: "possession", \.possession, .compact)
    }
}
