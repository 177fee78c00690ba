import AssentCore
import AssentSigningProtocol

extension SigningProvider {
    func plainStatus(_ request: DeviceRequest) async throws -> String {
        _ = try EmptyBody(plaintext: request.plaintext)
        return try await status(request)
    }

    /// How the caller stands: the only reply that a device deletes or locks something for.
    func status(_ request: DeviceRequest) async throws -> String {
        let reply: ContainerStatus
        switch request.party {
        case .enrolment(let enrolment):
            let isOpen = enrolment.state != .void && enrolment.expiresAt + SigningInviteRecord.completion > request.now
            reply = ContainerStatus(
                head: head(request), did: request.did, state: isOpen ? .unconfirmed : .void,
                approvalsFrom: 0, expiresAt: Int(enrolment.expiresAt), keys: [], slots: [], pending: 0)
        case .container:
            guard let container = try await store.container(did: request.did.text) else {
                throw SigningRefusal(.unknownContainer)
            }
            let keys = try await store.keys(did: container.did).suffix(12).compactMap { key in
                SigningKeyUsage(rawValue: key.usage).map {
                    KeyStatus(
                        kid: KeyThumbprint(text: key.kid), usage: $0, label: key.label,
                        state: key.isActive ? .active : .retired)
                }
            }
            let oneTimeKeys = try await store.oneTimeKeys(did: container.did).map {
                KeyStatus(usage: .otp, label: $0.label, state: .active)
            }
            reply = ContainerStatus(
                head: head(request), did: request.did, state: container.state(at: request.now),
                approvalsFrom: container.record == nil ? 0 : Int(container.approvalsFrom),
                expiresAt: Int(container.expiresAt), keys: (keys + oneTimeKeys).suffix(12),
                slots: try await slotStatuses(container, at: request.now),
                pending: try await store.pending(container, at: request.now))
        }
        return try await keys.sign(reply)
    }

    func update(_ request: DeviceRequest) async throws -> String {
        let body = try UpdateBody(plaintext: request.plaintext)
        let container = try request.active()
        let properties = body.properties.map { texts in
            JSONValue.object(
                JSONObject(
                    texts.sorted { $0.key < $1.key }.map { JSONObject.Member(name: $0.key, value: .string($0.value)) })
            ).serialized()
        }
        let done = try await store.update(
            container, name: body.name, pushID: body.pushId, properties: properties, proof: request.proof,
            at: request.now)
        guard done else { throw SigningRefusal(.containerRevoked) }
        return try await status(request)
    }

    func delete(_ request: DeviceRequest) async throws -> String {
        let body = try DeleteBody(plaintext: request.plaintext)
        guard let container = request.container else { throw SigningRefusal(.enrolmentVoid) }
        // A repeated call finds it ended, and is answered the same.
        let isChanged = try await store.change(
            container, .revoke, by: "device", reason: body.reason ?? "USER", proof: request.proof, at: request.now)
        if isChanged { await tell(.removed, container) }
        return try await status(request)
    }
}
