import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Foundation

/// Sets another password: one write for a `local` one; for an `assisted` one new blobs are stored beside the old ones
/// until the server has signed which password counts.
struct PasswordChanges: Sendable {
    let parts: DeviceParts

    func change(_ id: SigningID, _ slot: PasswordSlot, from old: Secret, to new: Secret) async throws {
        var record = try await parts.records.load(id)
        var retry = CallRetry(sends: 0)
        let isLocal = record.slotRecord(slot)?.mode == .local
        while true {
            // A renewal would undo a change that the server does not know of.
            let held = try await parts.hold(.renewal(id), .password(id, slot))
            do {
                if isLocal { try await parts.renewals.clear(id) }
                try await change(id, slot, old, new)
                return await held.release()
            } catch {
                await held.release()
                try await parts.calls.recover(&record, &retry, from: error)
            }
        }
    }

    /// The caller is alone with the password, and with the renewal that would undo a change.
    private func change(_ id: SigningID, _ slot: PasswordSlot, _ old: Secret, _ new: Secret) async throws {
        let rules = try await Opening(parts.records.load(id), slot, old, for: .change).policy.rules
        let normalized = try new.normalized
        if let rule = rules.broken(by: normalized) { throw SigningError.invalid(rule) }
        let opened = try await parts.passwords.open(id, slot, old, for: .change)
        // What was open before may have been settled by opening.
        let opening = try await Opening(parts.records.load(id), slot, old, for: .change)
        try parts.sealing.checkHistory(normalized, opened, opening.kept, rules)
        let fresh = try fresh(normalized, opening)
        switch opening.kept.mode {
        case .local: try await changeLocal(fresh, opened, opening)
        case .assisted: try await changeAssisted(fresh, opened, opening)
        }
        await parts.memory.forget(id, slot)
    }

    /// The next generation.
    private func fresh(_ new: NormalizedPassword, _ opening: Opening) throws -> SealingPlan {
        let (kept, salt) = (opening.kept, parts.random.bytes(16))
        let s = try parts.sealing.stretch(new, salt, kept.current.cost)
        return SealingPlan(
            slot: kept.slot, mode: kept.mode, generation: kept.current.generation + 1, salt: salt,
            cost: kept.current.cost, s: s)
    }

    /// The keys for the next generation, with the password that is replaced in their history.
    private func contents(
        _ opened: OpenedKeys, _ opening: Opening, time: Int
    ) -> [(label: String, content: SealedKeyContent)] {
        let history = opened.history(replacing: opening.kept, opening.policy.rules)
        return opening.kept.current.keys.compactMap { key in
            opened.contents[key.label].map { content in
                (key.label, SealedKeyContent(scalar: content.scalar, passwordTime: time, history: history))
            }
        }
    }

    private func changeLocal(_ fresh: SealingPlan, _ opened: OpenedKeys, _ opening: Opening) async throws {
        let now = opening.record.serverTime
        guard now >= opened.passwordTime + opening.policy.rules.minAge * 86400 else {
            throw SigningError(.passwordTooYoung)
        }
        let sealed = try await parts.sealing.sealed(contents(opened, opening, time: now), fresh, opening.record)
        try await parts.records.modify(opening.id) { $0.modify(fresh.slot) { $0.current = sealed } }
    }

    /// The server makes *k'*; the new blobs are stored beside the old ones before *k'* takes the place of *k*.
    private func changeAssisted(_ plan: SealingPlan, _ opened: OpenedKeys, _ opening: Opening) async throws {
        let (record, kept) = (opening.record, opening.kept)
        guard let unl = opened.unl, let label = kept.current.keys.first?.label else { throw SigningError(.internal) }
        let key = try opened.signingKey(label)
        func change(
            _ step: PasswordChangeStep, unl: SigningID? = nil, publicKey: [UInt8]? = nil
        ) async throws -> String {
            try await SignedMessage.sign(
                PasswordChange(
                    issuer: record.issuer, did: record.knownDid, slot: kept.slot, from: kept.current.generation,
                    to: plan.generation, step: step, unl: unl, publicKey: publicKey,
                    jti: SigningID(random: parts.random)), with: key
            ).compact
        }
        var fresh = plan
        let input = try fresh.input(record)
        let body = try await ChangeStartBody(
            change: change(.start, unl: unl), rid: SigningID(random: parts.random), blinded: input.element.bytes)
        let evaluation = try await parts.calls.ask(Request(.startChange, body), of: record, by: .given) { received in
            try await parts.passwords.evaluation(received, .change, kept.slot, plan.generation, publicKey: nil).content
        }
        fresh.publicKey = evaluation.publicKey
        try fresh.evaluate(evaluation, input)
        let sealed = try await parts.sealing.sealed(
            contents(opened, opening, time: evaluation.head.issuedAt), fresh, record)
        let commit = try await change(.commit, publicKey: evaluation.publicKey)
        let stored = try await parts.records.modify(record.id) { record in
            record.modify(kept.slot) { ($0.pending, $0.commit) = (sealed, commit) }
        }
        let settled = try await parts.passwords.settleChange(opening.with(stored))
        guard settled.slotRecord(kept.slot)?.current.generation == fresh.generation else {
            throw SigningError(.wrongGeneration, "The server has not taken the new password.")
        }
    }
}

extension KeyOpening {
    /// Has a change that was just stored count, or finds out that it does not.
    func settleChange(_ opening: Opening) async throws -> ContainerRecord {
        guard let request = opening.kept.changeRequest else { return opening.record }
        let status: ContainerStatus
        do {
            status = try await parts.calls.ask(request, of: opening.record, by: .given, read: parts.calls.status)
        } catch let error as SigningError where error.code == .wrongGeneration {
            status = try await parts.calls.ask(.status, of: opening.record, by: .given, read: parts.calls.status)
        }
        return try await settled(opening, status)
    }

    /// Takes over which password counts.
    ///
    /// A change that the server has not taken keeps its blobs: an answer that says so may be older than a request that
    /// somebody holds back. The server's signed generation brings them back.
    func settled(_ opening: Opening, _ status: ContainerStatus) async throws -> ContainerRecord {
        let kept = opening.kept
        return try await parts.containers.adopt(status, of: opening.record) { record in
            record.modify(kept.slot) { slot in
                if slot.pending?.generation == kept.pending?.generation { slot.commit = nil }
            }
        }
    }
}

extension SlotRecord {
    /// The call that makes a change which was begun take effect, or `nil`.
    var changeRequest: Request? {
        guard pending != nil, let commit else { return nil }
        return Request(.commitChange, ChangeCommitBody(change: commit))
    }
}

extension KeySealing {
    /// Refuses the current password, and those before it that the policy names.
    func checkHistory(
        _ new: NormalizedPassword, _ opened: OpenedKeys, _ kept: SlotRecord, _ rules: PasswordRules
    ) throws {
        let current = SealedKeyContent.Earlier(salt: kept.current.salt, s: opened.s)
        for earlier in [current] + opened.history.prefix(rules.history) {
            guard try stretch(new, earlier.salt, kept.current.cost) != earlier.s else {
                throw SigningError.invalid(.history)
            }
        }
    }
}

extension OpenedKeys {
    /// What must not come back once another password takes the place of this one, the newest first.
    func history(replacing kept: SlotRecord, _ rules: PasswordRules) -> [SealedKeyContent.Earlier] {
        let replaced = SealedKeyContent.Earlier(salt: kept.current.salt, s: s)
        return Array(([replaced] + history).prefix(rules.history))
    }
}
