import AssentCore
import AssentSigningProtocol

/// What a bundle of evidence proves, what it only claims, and what is wrong with it.
///
/// Its sentences and texts quote the bundle: escape them before they reach a terminal or a page.
public struct EvidenceJudgement: Sendable, Hashable {
    /// Whether the trusted identity key is in the bundle and no check failed. Only then do the other lists mean what
    /// they say.
    public let isAccepted: Bool

    /// What keys of the user's devices signed for a document that they had opened.
    public let decisions: [Decided]

    /// What follows from signatures and hashes, one sentence each.
    public let established: [String]

    /// What only the server says, one sentence each.
    public let attested: [String]

    /// What the bundle does not show, one sentence each. It is never empty: no bundle says who held the device.
    public let notEstablished: [String]

    /// Each check that failed, in a sentence.
    public let contradicted: [String]

    /// A key's signature over an answer, together with the hash of all that the user was shown.
    public struct Decided: Sendable, Hashable {
        /// The transaction.
        public let transactionID: String
        /// The thumbprint of the key that signed.
        public let key: String
        /// The answer's name, for example `accept`.
        public let status: String
        /// What stood on the button.
        public let label: String
        /// The texts of the document, in the order in which they were shown.
        public let texts: [String]
    }

    init(_ report: EvidenceReport) {
        isAccepted = report.root != nil && report.contradicted.isEmpty
        established = report.established.map(\.sentence)
        attested = report.attested.map(\.sentence)
        notEstablished = report.notEstablished.map(\.sentence)
        contradicted = report.contradicted.map(\.sentence)
        decisions = report.established.compactMap { finding in
            guard case .decided(let txn, let key, let status, let label, let texts) = finding else { return nil }
            return Decided(
                transactionID: txn.text, key: key.text, status: status, label: label,
                texts: texts.filter { !$0.isEmpty })
        }
    }
}
