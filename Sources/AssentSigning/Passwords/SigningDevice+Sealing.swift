import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentVault
import Foundation

extension SigningDevice {
    /// The key of the provider for which blobs are sealed once more.
    private func sealingKey(_ record: ContainerRecord) async throws -> any KeyAgreementKey {
        guard let key = try await keys.agreementKey(named: record.sealingKeyName) else {
            throw SigningError(.credentialsLost)
        }
        return key
    }

    /// Makes the provider's key, unless it is there.
    func makeSealingKey(_ record: ContainerRecord) async throws {
        guard try await keys.agreementKey(named: record.sealingKeyName) == nil else { return }
        _ = try await keys.makeAgreementKey(named: record.sealingKeyName)
    }

    /// One generation of a slot before its keys are sealed.
    struct SealingPlan {
        let slot: PasswordSlot
        let mode: PasswordMode
        let generation: Int
        let salt: [UInt8]
        let cost: PasswordCost
        var publicKey: [UInt8]?
        let s: Secret
        var output: Secret?

        /// Where a key belongs.
        func context(_ record: ContainerRecord, _ jwk: ProtocolKey) throws(SigningError) -> SealedKeyContext {
            guard let did = record.did else { throw SigningError(.internal) }
            return SealedKeyContext(
                mode: mode, issuer: record.issuer, did: did, slot: slot, kid: jwk.thumbprint, generation: generation,
                cost: cost, salt: salt)
        }

        /// What a stored generation was sealed by, with this *s* and this output.
        init(_ kept: SlotRecord, s: Secret, output: Secret? = nil) {
            slot = kept.slot
            mode = kept.mode
            generation = kept.current.generation
            salt = kept.current.salt
            cost = kept.current.cost
            publicKey = kept.current.publicKey
            self.s = s
            self.output = output
        }

        init(
            slot: PasswordSlot, mode: PasswordMode, generation: Int, salt: [UInt8], cost: PasswordCost, s: Secret
        ) {
            self.slot = slot
            self.mode = mode
            self.generation = generation
            self.salt = salt
            self.cost = cost
            self.s = s
        }

        /// The VOPRF's input.
        func input(_ record: ContainerRecord) throws -> ObliviousInput {
            guard let did = record.did else { throw SigningError(.internal) }
            return try ObliviousInput(
                PasswordKeys.oprfInput(
                    issuer: record.issuer, did: did, slot: slot, generation: UInt64(clamping: generation), s: s))
        }
    }

    /// Seals keys, and opens them again as a check. No key is stored before it is sealed.
    func sealed(
        _ contents: [(label: String, content: SealedKeyContent)], _ plan: SealingPlan, _ record: ContainerRecord
    ) async throws -> SealedGeneration {
        let outer = try await sealingKey(record)
        var sealed = SealedGeneration(
            generation: plan.generation, salt: plan.salt, cost: plan.cost, publicKey: plan.publicKey, keys: [])
        for (label, content) in contents {
            let jwk = try ProtocolKey(OpenedKeys.signingKey(content.scalar))
            let context = try plan.context(record, jwk)
            let inner = try SealedKey.seal(
                content, in: context, with: context.key(s: plan.s, output: plan.output), random: random)
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
        let outer = try await sealingKey(record)
        var contents: [String: SealedKeyContent] = [:]
        for key in generation.keys {
            do {
                let inner = try await Self.outerForm.open(key.blob, with: outer)
                let context = try plan.context(record, key.jwk)
                let content = try SealedKey.open(
                    inner.revealBytes(), in: context, with: context.key(s: plan.s, output: plan.output))
                guard try ProtocolKey(OpenedKeys.signingKey(content.scalar)) == key.jwk else {
                    throw SigningError(.secureData, "A sealed key is another one.")
                }
                contents[key.label] = content
            } catch let error as SigningProtocolError where error.code == .decryptionFailed {
                return nil
            } catch let error as SigningProtocolError {
                throw SigningError(.secureData, error.detail)
            } catch let error as SecretStoreError where error.code == .tampered {
                throw SigningError(.secureData, "A sealed key was changed, or belongs to other keys of this device.")
            }
        }
        return contents
    }

    private static let outerForm = ECIES.cofactorVariableIVX963SHA256AESGCM

    // MARK: Remembered passwords

    private func place(_ id: SigningID, _ slot: PasswordSlot) -> [String] { [id.text, slot.rawValue] }

    /// Remembers a password that was right, as long as the policy allows.
    func remember(_ s: Secret, _ id: SigningID, _ kept: SlotRecord, _ rules: PasswordRules) {
        guard rules.cache > 0, configuration.rememberedUses > 0 else { return }
        remembered[place(id, kept.slot)] = RememberedPassword(
            s: s, generation: kept.current.generation, until: uptime() + .seconds(rules.cache),
            uses: configuration.rememberedUses)
    }

    /// What is remembered, which is one use of it.
    func takeRemembered(_ id: SigningID, _ kept: SlotRecord) -> Secret? {
        let place = place(id, kept.slot)
        guard var entry = remembered[place], entry.uses > 0, uptime() < entry.until,
            entry.generation == kept.current.generation
        else {
            remembered[place] = nil
            return nil
        }
        entry.uses -= 1
        remembered[place] = entry.uses > 0 ? entry : nil
        return entry.s
    }

    /// Whether something is remembered.
    func isRemembered(_ id: SigningID, _ slot: PasswordSlot) -> Bool {
        remembered[place(id, slot)].map { $0.uses > 0 && uptime() < $0.until } ?? false
    }

    /// Forgets what is remembered of one password, or of all of a container.
    func forget(_ id: SigningID, _ slot: PasswordSlot? = nil) {
        for one in PasswordSlot.allCases where slot == nil || one == slot { remembered[place(id, one)] = nil }
        if slot == nil || slot == .session { openSessions[id] = nil }
    }
}

extension ContainerRecord {
    /// The name of the provider's key for which sealed keys are sealed once more.
    var sealingKeyName: String { "tsp.\(id):seal" }
}
