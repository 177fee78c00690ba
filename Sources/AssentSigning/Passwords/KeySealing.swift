import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentVault

/// One generation of a slot before its keys are sealed, or after they were.
struct SealingPlan {
    let slot: PasswordSlot
    let mode: PasswordMode
    let generation: Int
    let salt: [UInt8]
    let cost: PasswordCost
    /// `assisted`: the pinned public key of the VOPRF.
    var publicKey: [UInt8]?
    /// What scrypt made of the password.
    let s: Secret
    /// `assisted`: the VOPRF's output.
    var output: Secret?

    /// Where a key belongs.
    func context(_ record: ContainerRecord, _ jwk: ProtocolKey) throws(SigningError) -> SealedKeyContext {
        SealedKeyContext(
            mode: mode, issuer: record.issuer, did: try record.knownDid, slot: slot, kid: jwk.thumbprint,
            generation: generation, cost: cost, salt: salt)
    }

    /// The VOPRF's input.
    func input(_ record: ContainerRecord) throws -> ObliviousInput {
        try ObliviousInput(
            PasswordKeys.oprfInput(
                issuer: record.issuer, did: record.knownDid, slot: slot, generation: UInt64(clamping: generation),
                s: s))
    }

    /// Verifies the proof of an evaluation, and takes its output.
    mutating func evaluate(_ evaluation: Evaluation, _ input: ObliviousInput) throws(SigningError) {
        output = try SigningError.mapped(
            try input.output(
                by: ObliviousElement(evaluation.publicKey), evaluated: evaluation.evaluated, proof: evaluation.proof))
    }
}

extension SealingPlan {
    /// What a stored generation was sealed by, with this *s*.
    init(_ kept: SlotRecord, s: Secret) {
        self.init(
            slot: kept.slot, mode: kept.mode, generation: kept.current.generation, salt: kept.current.salt,
            cost: kept.current.cost, publicKey: kept.current.publicKey, s: s)
    }
}

/// Seals keys under a password, and for the key provider, and opens them again.
struct KeySealing: Sendable {
    let parts: DeviceParts

    private static let outerForm = ECIES.cofactorVariableIVX963SHA256AESGCM

    /// Makes a password expensive to guess.
    func stretch(_ password: NormalizedPassword, _ salt: [UInt8], _ cost: PasswordCost) throws(SigningError) -> Secret {
        try SigningError.mapped(try parts.stretch(password, salt, cost))
    }

    /// Seals keys, and opens them again as a check. No key is stored before it is sealed.
    func sealed(
        _ contents: [(label: String, content: SealedKeyContent)], _ plan: SealingPlan, _ record: ContainerRecord
    ) async throws -> SealedGeneration {
        let outer = try await parts.provider.sealing(record)
        var sealed = SealedGeneration(
            generation: plan.generation, salt: plan.salt, cost: plan.cost, publicKey: plan.publicKey, keys: [])
        for (label, content) in contents {
            let jwk = try ProtocolKey(OpenedKeys.signingKey(content.scalar))
            let context = try plan.context(record, jwk)
            let kek = try SigningError.mapped(try context.key(s: plan.s, output: plan.output))
            let inner = try SealedKey.seal(content, in: context, with: kek, random: parts.random)
            let blob = try Self.outerForm.seal(Secret(bytes: inner), to: outer.publicPoint)
            sealed.keys.append(SealedKeyRecord(label: label, jwk: jwk, blob: blob))
        }
        guard let opened = try await unsealed(sealed, plan, record),
            contents.allSatisfy({ opened[$0.label]?.scalar == $0.content.scalar })
        else { throw SigningError(.secureData, "A key that was just sealed does not open.") }
        return sealed
    }

    /// Opens the keys of a generation; `nil` when the password was wrong.
    func unsealed(
        _ generation: SealedGeneration, _ plan: SealingPlan, _ record: ContainerRecord
    ) async throws -> [String: SealedKeyContent]? {
        try await unsealed(generation, blobs(of: generation, record), plan, record)
    }

    /// The keys of a generation without what the provider has put around them: only the password opens them now.
    ///
    /// This may fail although a password is right: a token is away, or its user allows nothing. It tells nothing of
    /// the password, so it comes before a try is counted.
    func blobs(of generation: SealedGeneration, _ record: ContainerRecord) async throws -> [Secret] {
        let outer = try await parts.provider.sealing(record)
        var blobs: [Secret] = []
        do {
            for key in generation.keys { blobs.append(try await Self.outerForm.open(key.blob, with: outer)) }
        } catch let error as SecretStoreError where error.code == .tampered {
            throw SigningError(.secureData, "A sealed key was changed, or belongs to other keys of this device.")
        }
        return blobs
    }

    /// Opens the keys of a generation, of which the provider has opened its part; `nil` when the password was wrong.
    func unsealed(
        _ generation: SealedGeneration, _ blobs: [Secret], _ plan: SealingPlan, _ record: ContainerRecord
    ) throws -> [String: SealedKeyContent]? {
        guard blobs.count == generation.keys.count else { throw SigningError(.internal) }
        var contents: [String: SealedKeyContent] = [:]
        for (key, blob) in zip(generation.keys, blobs) {
            do {
                let context = try plan.context(record, key.jwk)
                let content = try SealedKey.open(
                    blob.revealBytes(), in: context, with: context.key(s: plan.s, output: plan.output))
                guard try ProtocolKey(OpenedKeys.signingKey(content.scalar)) == key.jwk else {
                    throw SigningError(.secureData, "A sealed key is another one.")
                }
                contents[key.label] = content
            } catch let error as SigningProtocolError where error.code == .decryptionFailed {
                return nil
            } catch let error as SigningProtocolError {
                throw SigningError(.secureData, error.detail)
            }
        }
        return contents
    }
}
