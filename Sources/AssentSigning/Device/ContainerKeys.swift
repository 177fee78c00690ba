import AssentCore
import AssentJOSE
import AssentSigningProtocol

/// A container's keys at the key provider.
struct ContainerKeys: Sendable {
    let provider: any KeyProvider

    /// A key that signs and needs no password.
    ///
    /// - Throws: ``SigningError`` with code `credentialsLost` when it is gone.
    func signing(_ record: ContainerRecord, _ usage: SigningKeyUsage, _ label: String) async throws -> any SigningKey {
        guard let key = try await provider.signingKey(named: record.keyName(usage, label)) else {
            throw SigningError(.credentialsLost)
        }
        return key
    }

    /// The key that proves calls.
    func device(_ record: ContainerRecord) async throws -> any SigningKey {
        try await signing(record, .device, "")
    }

    /// The key that decrypts replies, where it needs no password.
    func transport(_ record: ContainerRecord, _ label: String) async throws -> any KeyAgreementKey {
        try await agreement(named: record.keyName(.transport, label))
    }

    /// The key for which blobs are sealed once more.
    func sealing(_ record: ContainerRecord) async throws -> any KeyAgreementKey {
        try await agreement(named: record.sealingKeyName)
    }

    private func agreement(named name: String) async throws -> any KeyAgreementKey {
        guard let key = try await provider.agreementKey(named: name) else { throw SigningError(.credentialsLost) }
        return key
    }

    /// Makes a key that signs, unless it is there.
    @discardableResult
    func makeSigning(_ record: ContainerRecord, _ usage: SigningKeyUsage, _ label: String) async throws
        -> any SigningKey
    {
        let name = record.keyName(usage, label)
        if let key = try await provider.signingKey(named: name) { return key }
        return try await provider.makeSigningKey(named: name, algorithm: .es256)
    }

    /// Makes a key that decrypts, unless it is there.
    func makeAgreement(named name: String) async throws {
        guard try await provider.agreementKey(named: name) == nil else { return }
        _ = try await provider.makeAgreementKey(named: name)
    }

    /// Makes the keys of an offer that need no password.
    func make(_ offer: Offer, _ record: ContainerRecord, withDeviceKey: Bool) async throws {
        for key in offer.keys
        where key.usage != .otp && key.slot == nil && (withDeviceKey || key.usage != .device) {
            if key.usage == .transport {
                try await makeAgreement(named: record.keyName(key.usage, key.label))
            } else {
                try await makeSigning(record, key.usage, key.label)
            }
        }
    }

    /// Removes the keys of an offer, also those that were never made.
    func remove(_ offer: Offer?, _ record: ContainerRecord, withDeviceKey: Bool) async throws {
        for key in offer?.keys ?? [] where key.usage != .otp && (withDeviceKey || key.usage != .device) {
            try await provider.removeKey(named: record.keyName(key.usage, key.label))
        }
    }

    /// The keys in the offer's order, without proofs of possession.
    func list(_ record: ContainerRecord) async throws -> [EnrolledKey] {
        guard let offer = try record.offerContent(), let plain = Keystore(rawValue: provider.kind),
            let sealed = Keystore(rawValue: "software+" + provider.kind)
        else { throw SigningError(.internal) }
        var list: [EnrolledKey] = []
        for key in offer.keys where key.usage != .otp {
            let jwk: ProtocolKey
            if let slot = key.slot {
                guard let kept = record.slotRecord(slot)?.current.keys.first(where: { $0.label == key.label }) else {
                    throw SigningError(.credentialsLost)
                }
                jwk = kept.jwk
            } else if key.usage == .transport {
                jwk = try await ProtocolKey(transport(record, key.label))
            } else {
                jwk = try await ProtocolKey(signing(record, key.usage, key.label))
            }
            list.append(
                EnrolledKey(
                    usage: key.usage, label: key.label, kid: jwk.thumbprint, jwk: jwk, policy: key.policy,
                    keystore: key.slot == nil ? plain : sealed, slot: key.slot))
        }
        return list
    }
}
