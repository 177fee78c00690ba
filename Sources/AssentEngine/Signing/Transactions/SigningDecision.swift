import AssentSigningProtocol
import AssentStore

/// A decision, with what is kept of it as evidence.
struct SigningDecision: Sendable, Hashable {
    let txn: SigningID
    let did: SigningID
    /// The hash of the decision.
    let dh: SigningHash
    /// The decision, as it was signed.
    let decision: String
    /// The device key's signature beside it.
    let possession: String?
    /// The document, as it was signed; absent after a blind refusal.
    let txd: String?
    /// The evaluation that opened the key, if it needs one: the compact `tsp-eval+jwt`.
    var evaluation: String?
    /// Its confirmation: the compact `tsp-confirm+jwt`.
    var confirmation: String?
    /// The server's receipt, as it was signed.
    let receipt: String
}

extension SigningDecision {
    init(_ row: SQLRow) throws {
        self.init(
            txn: try row.value("txn"), did: try row.value("did"), dh: try row.value("dh"),
            decision: try row.text("decision"), possession: try row.optionalText("possession"),
            txd: try row.optionalText("txd"), evaluation: try row.optionalText("eval"),
            confirmation: try row.optionalText("confirm"), receipt: try row.text("receipt"))
    }
}

/// What a decision changes besides.
struct DecisionEffects: Sendable, Hashable {
    var kid: KeyThumbprint
    let state: SigningTransactionRecord.State
    /// The status that the user chose.
    let status: String
    /// Whether a number was asked for: then this decision has tried it, and no other.
    let needsNumber: Bool
    /// The id of the audit record, which the receipt names.
    let auditID: String
    /// The evaluation that it spends, if its key needs one.
    var unlock: SpentEvaluation?
}

/// The confirmed evaluation that a decision by a key of an `assisted` slot spends.
struct SpentEvaluation: Sendable, Hashable {
    let slot: PasswordSlot
    let unl: SigningID
    /// The password must have been set after this time, in seconds since 1970; -1 for any time.
    let passwordSetAfter: Int64

    /// An evaluation. Without a maximum age the password may be of any time.
    init(_ confirmed: ConfirmedTry, passwordSetAfter: Int64 = -1) {
        (slot, unl) = (confirmed.slot, confirmed.unl)
        self.passwordSetAfter = passwordSetAfter
    }
}
