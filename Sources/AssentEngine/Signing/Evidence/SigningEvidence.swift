import AssentCore
import AssentSigningProtocol
import AssentStore

/// Evidence of decisions, for the years after.
package struct SigningEvidence: SigningPart {
    /// Who reads evidence.
    package enum Reader: Sendable {
        /// The relying party that made the transaction.
        case client(String)
        /// The user, an auditor or an administrator.
        case caller(SigningCaller)

        /// The reader's name in the audit log.
        fileprivate var name: String {
            switch self {
            case .client(let client): client
            case .caller(let caller): caller.session.user.id
            }
        }

        fileprivate func mayRead(_ transaction: SigningTransactionRecord) -> Bool {
            switch self {
            case .client(let client): transaction.isOf(client)
            case .caller(let caller):
                transaction.userID == caller.session.user.id || caller.isAdministrator || caller.isAuditor
            }
        }
    }

    package let realm: SigningRealm

    /// The bundle of a decision: all that is needed to judge it years later, as JSON.
    ///
    /// - Throws: ``SigningRefusal`` `tx_unknown`, also when it is somebody else's, or not decided.
    package func bundle(_ txn: String, for reader: Reader) async throws(SigningRefusal) -> [UInt8] {
        try await answering {
            guard let txn = SigningID(text: txn), let transaction = try await documents.find(txn),
                reader.mayRead(transaction), let decision = try await decisions.find(of: txn)
            else { throw SigningRefusal(.transactionUnknown) }
            let keys = try await keys.current()
            let enrolments = try await records(
                of: decision.did, upTo: UnverifiedMessage<Receipt>(decision.receipt).content.record)
            var messages = enrolments.flatMap { [$0.record, $0.offer] }
            messages += [decision.txd, decision.receipt, decision.evaluation].compactMap(\.self)
            let bundle = EvidenceBundle(
                issuer: iss, identities: keys.identities.map(\.publicKey), next: keys.next, previous: keys.previous,
                certificates: try keys.certificates(of: messages), enrolments: enrolments,
                transactions: [
                    EvidenceTransaction(
                        document: decision.txd, request: Base64URL.decode(transaction.request),
                        decision: decision.decision, possession: decision.possession, receipt: decision.receipt,
                        evaluation: decision.evaluation, confirmation: decision.confirmation)
                ])
            try await store.audit.write(
                store.record(.signingEvidence, user: transaction.userID, txn: txn.text, ["by": reader.name]))
            return bundle.encoded()
        }
    }

    /// The records of a container up to the one whose keys have decided, oldest first. A bundle takes a limited number,
    /// and what came later says nothing of the decision.
    private func records(of did: SigningID, upTo last: SigningHash) async throws -> [EvidenceEnrolment] {
        let all = try await store.all(
            "SELECT record, enrol, offer, endorsements FROM signing_records WHERE did = \(did) ORDER BY seq"
        ).map {
            EvidenceEnrolment(
                record: try $0.text("record"), enrol: try $0.text("enrol"), offer: try $0.text("offer"),
                endorsements: try CompletedKeys.endorsements(try $0.text("endorsements")))
        }
        let end = all.firstIndex { SigningHash.record($0.record) == last } ?? all.indices.last
        return end.map { Array(all[...$0]) } ?? []
    }
}
