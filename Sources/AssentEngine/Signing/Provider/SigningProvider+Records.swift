import AssentCore
import AssentSigningProtocol

extension SigningProvider {
    /// Who asks for what a device begins itself. No OAuth client sees it, whatever its name.
    static let deviceParty = "device"

    /// Seconds for which a record can be signed.
    private static let recordLifetime: Int64 = 180

    /// Makes a document of a message that the device has: its decision is kept as evidence, and completes nothing. The
    /// same request gets the same document.
    func create(_ request: DeviceRequest) async throws -> String {
        let body = try CreateBody(plaintext: request.plaintext)
        let container = try request.active()
        let keys = try await store.keys(did: container.did)
        guard keys.contains(where: { $0.isActive && $0.usage == "sign" && $0.label == body.label }) else {
            throw SigningRefusal(.statusNotAllowed, "The container has no key of usage sign with this label.")
        }
        let template = SigningTemplate(
            kind: .record, title: LocalizedText("Sign a record"), text: nil, lifetime: Self.recordLifetime,
            statuses: [
                SigningTemplate.Status(
                    name: "accept", label: LocalizedText("Sign"), effect: .approve, keys: [body.label]),
                SigningTemplate.Status(name: "deny", label: LocalizedText("Decline"), effect: .deny),
            ])
        let draft = try DocumentDraft(
            template, message: body.message, relyingParty: RelyingParty(id: Self.deviceParty, name: settings.name))
        let frame = SigningHash.detailsFrame(body.message)
        let transaction = try await store.create(
            SigningTransactionRecord(
                txn: SigningID(random: context.random).text, clientID: Self.deviceParty, userID: container.userID,
                did: container.did, kind: DocumentKind.record.rawValue,
                content: String(decoding: draft.encoded(), as: UTF8.self), req: frame.hash.text,
                request: Base64URL.encode(frame.bytes), matchNumber: nil, createdAt: request.now,
                expiresAt: request.now + Self.recordLifetime,
                idempotency: SigningTransactionRecord.Idempotency(
                    key: "\(container.did) \(body.rid.text)", request: frame.hash.text + " " + body.label)),
            limits: settings.limits, proof: request.proof)
        return try await fetched(transaction, container, request)
    }
}
