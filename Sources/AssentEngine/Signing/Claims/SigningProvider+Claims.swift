import AssentCore
import AssentSigningProtocol

extension SigningProvider {
    /// The longest life of a transaction that whoever scans it may claim, in seconds: a code on a page is soon on
    /// another one.
    static let claimLifetime: Int64 = 120

    /// Gives the caller the transaction of an id that it has scanned. The first container wins.
    func claim(_ request: DeviceRequest) async throws -> String {
        let body = try ClaimBody(plaintext: request.plaintext)
        let container = try request.active()
        let keys = try await keys.current()
        guard let identity = keys.identity else { throw SigningRefusal(.unavailable) }
        let trust = try IssuerTrust(
            issuer: iss, identity: identity, minimum: 1, certificates: keys.certificates(at: request.now))
        guard let ticket = try? trust.verified(body.ticket, as: Ticket.self).content, ticket.isClaim else {
            throw SigningRefusal(.transactionUnknown)
        }
        try await store.claim(ticket.txn.text, for: container, proof: request.proof, at: request.now)
        return try await status(request)
    }

    /// The id that a page shows as a QR code.
    package func ticket(of transaction: SigningTransactionRecord) async throws(SigningRefusal) -> String {
        try await answering {
            guard let txn = SigningID(text: transaction.txn) else { throw SigningRefusal(.unavailable) }
            return try await keys.sign(
                Ticket(issuer: iss, txn: txn, expiresAt: Int(transaction.expiresAt), isClaim: true))
        }
    }

    /// What a transaction must have that is shown to whoever scans it.
    static func check(claim wish: TransactionWish, _ template: SigningTemplate, lifetime: Int64) throws(SigningRefusal)
    {
        guard wish.did == nil else {
            throw SigningRefusal(.invalidRequest, "A transaction to be claimed has no device.")
        }
        guard lifetime <= claimLifetime else {
            throw SigningRefusal(.invalidRequest, "A transaction to be claimed is open for at most 120 seconds.")
        }
        guard template.matchesNumber, wish.origin != nil else {
            throw SigningRefusal(.invalidRequest, "A transaction to be claimed needs a number to match, and an origin.")
        }
    }
}
