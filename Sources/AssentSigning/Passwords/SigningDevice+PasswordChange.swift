import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Foundation

extension SigningDevice {
    /// Sets another password.
    func changePassword(
        _ id: SigningID, _ slot: PasswordSlot, from old: Secret, to new: Secret
    ) async throws {
        let isLocal = try await records.load(id).slotRecord(slot)?.mode == .local
        try await withCurrentKeys(id) {
            try await besidesRenewal(of: id, isLocal: isLocal) {
                try await self.alone(id, slot) {
                    let policy = try await self.opening(id, slot, old, for: .change).policy
                    guard let normalized = NormalizedPassword(new) else { throw Self.invalid(.unusable) }
                    if let rule = policy.rules.broken(by: normalized) { throw Self.invalid(rule) }
                    let opened = try await self.open(id, slot, old, for: .change)
                    // What was open before may have been settled by opening.
                    let opening = try await self.opening(id, slot, old, for: .change)
                    try self.checkHistory(normalized, opened, opening)
                    let fresh = try self.fresh(normalized, opening)
                    switch opening.kept.mode {
                    case .local: try await self.changeLocal(fresh, opened, opening)
                    case .assisted: try await self.changeAssisted(fresh, opened, opening)
                    }
                    self.forget(id, slot)
                }
            }
        }
    }

    /// Refuses the current password, and those before it that the policy names.
    private func checkHistory(
        _ new: NormalizedPassword, _ opened: OpenedKeys, _ opening: Opening
    ) throws {
        let current = SealedKeyContent.Earlier(salt: opening.kept.current.salt, s: opened.s)
        for earlier in [current] + opened.history.prefix(opening.policy.rules.history) {
            let s = try Self.mapped { () throws(SigningProtocolError) in
                try stretch(new, earlier.salt, opening.kept.current.cost)
            }
            guard s != earlier.s else { throw Self.invalid(.history) }
        }
    }

    /// The next generation.
    private func fresh(_ new: NormalizedPassword, _ opening: Opening) throws -> SealingPlan {
        let (kept, salt) = (opening.kept, random.bytes(16))
        let s = try Self.mapped { () throws(SigningProtocolError) in
            try stretch(new, salt, kept.current.cost)
        }
        return SealingPlan(
            slot: kept.slot, mode: kept.mode, generation: kept.current.generation + 1, salt: salt,
            cost: kept.current.cost, s: s)
    }

    /// The keys for the next generation, with the password that is replaced in their history.
    private func contents(
        _ opened: OpenedKeys, _ opening: Opening, time: Int
    ) -> [(label: String, content: SealedKeyContent)] {
        let replaced = SealedKeyContent.Earlier(salt: opening.kept.current.salt, s: opened.s)
        let history = Array(([replaced] + opened.history).prefix(opening.policy.rules.history))
        return opening.kept.current.keys.compactMap { key in
            opened.contents[key.label].map { content in
                (key.label, SealedKeyContent(scalar: content.scalar, passwordTime: time, history: history))
            }
        }
    }

    /// One write makes the new blobs count in the place of the old ones.
    private func changeLocal(_ fresh: SealingPlan, _ opened: OpenedKeys, _ opening: Opening) async throws {
        let now = opening.record.serverTime
        guard now >= opened.passwordTime + opening.policy.rules.minAge * 86400 else {
            throw SigningError(.passwordTooYoung)
        }
        let sealed = try await self.sealed(contents(opened, opening, time: now), fresh, opening.record)
        try await records.modify(opening.id) { $0.modify(fresh.slot) { $0.current = sealed } }
    }

    /// The server makes *k'*; the new blobs are stored beside the old ones before *k'* takes the place of *k*.
    private func changeAssisted(_ fresh: SealingPlan, _ opened: OpenedKeys, _ opening: Opening) async throws {
        let (record, kept) = (opening.record, opening.kept)
        guard let did = record.did, let unl = opened.unl, let label = kept.current.keys.first?.label else {
            throw SigningError(.internal)
        }
        let key = try opened.signingKey(label)
        func change(
            _ step: PasswordChangeStep, unl: SigningID? = nil, publicKey: [UInt8]? = nil
        ) async throws -> String {
            try await SignedMessage.sign(
                PasswordChange(
                    issuer: record.issuer, did: did, slot: kept.slot, from: kept.current.generation,
                    to: fresh.generation, step: step, unl: unl, publicKey: publicKey, jti: SigningID(random: random)),
                with: key
            ).compact
        }
        let input = try fresh.input(record)
        let body = try await ChangeStartBody(
            change: change(.start, unl: unl), rid: SigningID(random: random), blinded: input.element.bytes)
        let evaluation = try await call(record.id, .startChange, body) { received in
            try await self.evaluation(received, .change, kept.slot, fresh.generation, publicKey: nil).content
        }
        var fresh = fresh
        fresh.publicKey = evaluation.publicKey
        fresh.output = try Self.mapped { () throws(SigningProtocolError) in try Self.output(evaluation, input) }
        let sealed = try await self.sealed(
            contents(opened, opening, time: evaluation.head.issuedAt), fresh, record)
        let commit = try await change(.commit, publicKey: evaluation.publicKey)
        try await records.modify(record.id) { record in
            record.modify(kept.slot) { ($0.pending, $0.commit) = (sealed, commit) }
        }
        try await settleChange(self.opening(record.id, kept.slot, opening.password, for: .change))
        guard try await records.load(record.id).slotRecord(kept.slot)?.current.generation == fresh.generation else {
            throw SigningError(.wrongGeneration, "The server has not taken the new password.")
        }
    }

    /// Has a change that was begun count, or finds out that it does not.
    ///
    /// A change that the server has not taken keeps its blobs: an answer that says so may be older than a request that
    /// somebody holds back. The server's signed generation brings them back.
    func settleChange(_ opening: Opening) async throws {
        let (id, kept) = (opening.id, opening.kept)
        guard let pending = kept.pending, let commit = kept.commit else { return }
        let status: ContainerStatus
        do {
            status = try await call(id, .commitChange, ChangeCommitBody(change: commit)) {
                try await self.status($0)
            }
        } catch let error as SigningError where error.code == .wrongGeneration {
            status = try await call(id, .status, EmptyBody()) { try await self.status($0) }
        }
        try await adopt(status, id) { record in
            record.modify(kept.slot) { slot in
                if slot.pending?.generation == pending.generation { slot.commit = nil }
            }
        }
    }
}
