import AssentCore
import AssentJOSE

/// Keys in memory that outlive a device object, as those of a real provider outlive a process.
actor MemoryKeyProvider: KeyProvider {
    nonisolated let kind: String
    nonisolated let protection = KeyProtection.software
    private var signing: [String: SoftwareSigningKey]
    private var agreement: [String: SoftwareAgreementKey]
    private var isUserAbsent = false

    init(
        kind: String = "software", signing: [String: SoftwareSigningKey] = [:],
        agreement: [String: SoftwareAgreementKey] = [:]
    ) {
        self.kind = kind
        self.signing = signing
        self.agreement = agreement
    }

    /// The same keys once more, as a backup of a key file has them.
    func copy() -> MemoryKeyProvider { MemoryKeyProvider(kind: kind, signing: signing, agreement: agreement) }

    var availability: KeyAvailability { .available }

    func keyNames() -> [String] { Set(signing.keys).union(agreement.keys).sorted() }

    func signingKey(named name: String) -> (any SigningKey)? { signing[name] }

    func makeSigningKey(named name: String, algorithm: SignatureAlgorithm) throws -> any SigningKey {
        try KeyName.check(name)
        guard signing[name] == nil else { throw KeyProviderError(.keyExists, "There is one.") }
        let key = try SoftwareSigningKey.generate(algorithm)
        signing[name] = key
        return key
    }

    func agreementKey(named name: String) -> (any KeyAgreementKey)? {
        guard let key = agreement[name] else { return nil }
        if isUserAbsent { return AbsentUserKey(publicPoint: key.publicPoint) }
        return key
    }

    /// From now on nobody allows that keys decrypt, as with a provider that asks a person each time.
    func leaveUser(absent: Bool) { isUserAbsent = absent }

    func makeAgreementKey(named name: String) throws -> any KeyAgreementKey {
        try KeyName.check(name)
        guard agreement[name] == nil else { throw KeyProviderError(.keyExists, "There is one.") }
        let key = SoftwareAgreementKey.generate()
        agreement[name] = key
        return key
    }

    func removeKey(named name: String) {
        signing[name] = nil
        agreement[name] = nil
    }
}

/// A key that asks a person who is not there.
private struct AbsentUserKey: KeyAgreementKey {
    let publicPoint: [UInt8]

    func sharedSecret(with peer: [UInt8]) async throws -> Secret {
        throw KeyProviderError(.userAbsent, "Nobody has allowed it.")
    }
}
