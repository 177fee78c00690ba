package import AssentSigningProtocol
import AssentStore

/// The confirmed evaluation that a decision by a key of an `assisted` slot spends.
package struct SpentEvaluation: Sendable, Hashable {
    /// The slot.
    package let slot: PasswordSlot
    /// The evaluation's id.
    package let unl: String
    /// The compact `tsp-eval+jwt`.
    package let evaluation: String
    /// The compact `tsp-confirm+jwt`.
    package let confirmation: String
    /// The password must have been set after this time, in seconds since 1970.
    package let passwordSetAfter: Int64

    /// An evaluation. Without a maximum age the password may be of any time.
    package init(_ confirmed: ConfirmedTry, passwordSetAfter: Int64 = -1) {
        slot = confirmed.slot
        unl = confirmed.unl
        evaluation = confirmed.evaluation
        confirmation = confirmed.confirmation
        self.passwordSetAfter = passwordSetAfter
    }
}

/// A decision with what is kept of it as evidence.
package struct SigningDecision: Sendable, Hashable {
    /// The transaction.
    package let txn: String

    /// The container that has decided.
    package let did: String

    /// The key that has signed.
    package let kid: String

    /// The hash of the decision.
    package let dh: String

    /// What becomes of the transaction.
    package let state: SigningTransactionRecord.State

    /// The status that the user chose.
    package let status: String

    /// Whether a number was asked for: then this decision has tried it, and no other.
    package let needsNumber: Bool

    /// The decision, as it was signed.
    package let decision: String

    /// The device key's signature beside it.
    package let possession: String?

    /// The document, as it was signed; absent after a blind refusal.
    package let txd: String?

    /// The server's receipt, as it was signed.
    package let receipt: String

    /// The id of the audit record, which the receipt names.
    package let auditID: String

    /// The evaluation that opened the key, if it needs one.
    package let unlock: SpentEvaluation?

    /// A decision.
    package init(
        txn: String, did: String, kid: String, dh: String, state: SigningTransactionRecord.State, status: String,
        needsNumber: Bool, decision: String, possession: String?, txd: String?, receipt: String, auditID: String,
        unlock: SpentEvaluation? = nil
    ) {
        self.txn = txn
        self.did = did
        self.kid = kid
        self.dh = dh
        self.state = state
        self.status = status
        self.needsNumber = needsNumber
        self.decision = decision
        self.possession = possession
        self.txd = txd
        self.receipt = receipt
        self.auditID = auditID
        self.unlock = unlock
    }
}

/// A decision that was made.
package struct StoredDecision: Sendable, Hashable {
    /// The container that has decided.
    package let did: String

    /// The hash of the decision.
    package let dh: String

    /// The decision, as it was signed.
    package let decision: String

    /// The device key's signature beside it.
    package let possession: String?

    /// The document, as it was signed.
    package let txd: String?

    /// The evaluation that opened the key.
    package let evaluation: String?

    /// Its confirmation.
    package let confirmation: String?

    /// The server's receipt, as it was signed.
    package let receipt: String

    init(_ row: SQLRow) throws {
        did = try row.text("did")
        dh = try row.text("dh")
        decision = try row.text("decision")
        possession = try row.optionalText("possession")
        txd = try row.optionalText("txd")
        evaluation = try row.optionalText("eval")
        confirmation = try row.optionalText("confirm")
        receipt = try row.text("receipt")
    }
}
