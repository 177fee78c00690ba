public import AssentCore
import AssentSigningProtocol

extension SigningContainer {
    /// Begins a transaction of this device's own: the user is shown a text of the app, and signs it. The server keeps
    /// what was signed as evidence; nothing else follows from it.
    ///
    /// Answer it like any other transaction, with ``SigningTransaction/setStatus(_:password:number:reason:)``. Nothing
    /// is signed before.
    ///
    /// - Parameters:
    ///   - message: the text, 1 to 1000 characters that can be shown.
    ///   - label: the key of usage `sign` that is to sign; without one the container's only one.
    ///   - password: the password `session`, if the container has one and it is not remembered.
    /// - Returns: the transaction, whose document has this text.
    /// - Throws: ``SigningError`` with code `invalidArgument` for a text that cannot be shown, or when there is no such
    ///   key; `documentRefused` when the server's document has another text.
    public func record(_ message: String, label: String? = nil, password: Secret? = nil) async throws
        -> SigningTransaction
    {
        try await device.record(message, label: label, in: self, password: password)
    }
}

extension SigningDevice {
    func record(
        _ message: String, label: String?, in container: SigningContainer, password: Secret?
    ) async throws -> SigningTransaction {
        do {
            try ShownText.check(message, 1...1000, at: "message")
        } catch {
            throw SigningError(.invalidArgument, error.detail)
        }
        let keys = container.keys(usage: .sign, label: label)
        guard let key = keys.first, keys.count == 1 else {
            let names = container.keys(usage: .sign).map(\.label).joined(separator: ", ")
            throw SigningError(
                .invalidArgument,
                names.isEmpty ? "The container has no keys of usage sign." : "Name one of the keys: \(names).")
        }
        let id = container.record
        let record = try await records.load(id)
        let transport = try await transportKey(record, password)
        let body = CreateBody(message: message, label: key.label, rid: SigningID(random: random))
        // The same request again is the same transaction.
        return try await repeated {
            try await self.call(id, .create, body) { received in
                let key = try await self.current(transport, of: record, received, password)
                let fetched = try await self.verified(self.opened(received, with: key), received, as: Fetched.self)
                let document = try received.trust.verified(fetched.content.document, as: TransactionDocument.self)
                let content = document.content
                guard let audience = try received.record.audience() else { throw SigningError(.internal) }
                try content.check(for: audience, txn: content.txn)
                guard content.kind == .record, StrictJSON.same(content.text ?? "", message),
                    content.request == .details(message)
                else { throw SigningProtocolError(.documentRefused, "The document is about another text.") }
                return SigningTransaction(
                    document: document, container: container, serverTime: fetched.content.head.issuedAt,
                    fetchedAt: self.uptime())
            }
        }
    }
}
