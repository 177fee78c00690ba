import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Logging

/// What an unlock has at hand on its way (``UnlockCeremony``).
private struct Unlock {
    /// As it began.
    let began: Opening
    var opening: Opening
    var ceremony: UnlockCeremony
    /// Whether the server has not taken the change that was begun: its status says then which password counts.
    var isChangeRefused = false
    /// The container as it was when the server was asked for its word about a refusal.
    var asked: ContainerRecord?
    /// The blinded password, which is never stored, and the keys that it is to open, as the key provider has opened
    /// them.
    var blinded: (plan: SealingPlan, input: ObliviousInput, blobs: [Secret])?
    var evaluation: SignedMessage<Evaluation>?
    var opened: OpenedKeys?
    var error: (any Error)?

    init(_ opening: Opening) {
        began = opening
        self.opening = opening
        ceremony = UnlockCeremony(
            hasChange: opening.kept.commit != nil, hasConfirmation: opening.kept.confirmation != nil)
    }

    /// Takes an error; one that is not the server's word ends it.
    ///
    /// - Returns: whether the ceremony goes on with it.
    mutating func take(_ error: any Error, in step: UnlockCeremony.Step) -> Bool {
        self.error = error
        guard let refusal = error as? SigningError else { return false }
        if step == .settleChange, refusal.code == .wrongGeneration, !isChangeRefused {
            isChangeRefused = true
            return true
        }
        return ceremony.take(.failed(refusal.isTransient ? nil : refusal.code))
    }
}

/// What the server answers during an unlock.
private enum UnlockReply {
    case status(ContainerStatus)
    case evaluation(SignedMessage<Evaluation>)
}

extension KeyOpening {
    /// Opens the keys; the caller is alone with the password.
    func open(
        _ id: SigningID, _ slot: PasswordSlot, _ password: Secret?, for purpose: OpeningPurpose
    ) async throws -> OpenedKeys {
        var unlock = try await Unlock(Opening(parts.records.load(id), slot, password, for: purpose))
        guard unlock.opening.kept.mode == .assisted else { return try await openLocal(unlock.opening) }
        while true {
            let (step, kept) = (unlock.ceremony.next, unlock.opening.kept)
            if step == .done {
                guard let opened = unlock.opened else { throw SigningError(.internal) }
                if password != nil { await remember(opened.s, unlock.opening) }
                return opened
            }
            if step == .fail {
                unlock = try await again(after: unlock)
                continue
            }
            do {
                let event: UnlockCeremony.Event
                if let request = try await request(step, &unlock) {
                    let reply = try await parts.calls.ask(request, of: unlock.opening.record, by: .given) { received in
                        try await read(received, in: step, kept)
                    }
                    event = try await take(reply, in: step, &unlock)
                } else {
                    event = try await perform(step, &unlock)
                }
                _ = unlock.ceremony.take(event)
            } catch {
                guard unlock.take(error, in: step) else { throw error }
                if unlock.ceremony.phase == .closed {
                    let code = (error as? SigningError)?.code.rawValue ?? "-"
                    parts.logger.info("a confirmation was not taken", metadata: ["code": "\(code)"])
                }
            }
        }
    }

    /// The same try with the keys that a renewal, which has ended meanwhile, has put in the place of these.
    ///
    /// - Throws: why the try has failed, when there are none.
    private func again(after unlock: Unlock) async throws -> Unlock {
        let error = unlock.error ?? SigningError(.internal)
        guard (error as? SigningError)?.code == .wrongGeneration else { throw error }
        let now = try await unlock.began.with(parts.records.load(unlock.began.id))
        guard now.record.keyID != unlock.began.record.keyID, now.kept.mode == .assisted else { throw error }
        return Unlock(now)
    }

    // MARK: Steps

    /// What the server is asked in this step; `nil` when the device does it alone.
    private func request(_ step: UnlockCeremony.Step, _ unlock: inout Unlock) async throws -> Request? {
        let kept = unlock.opening.kept
        switch step {
        case .settleChange where unlock.isChangeRefused: return .status
        case .settleChange: return kept.changeRequest
        case .sendConfirmation: return kept.confirmationBody.map { Request(.confirmEvaluation, $0) }
        case .evaluate: return Request(.unlock, try unlockBody(unlock))
        case .askStatus:
            unlock.asked = try await parts.records.load(unlock.opening.id)
            return .status
        case .storeRatchet, .open, .confirm, .done, .fail: return nil
        }
    }

    private func read(
        _ received: Received, in step: UnlockCeremony.Step, _ kept: SlotRecord
    ) async throws -> UnlockReply {
        guard step == .evaluate else { return .status(try await parts.calls.status(received)) }
        return .evaluation(
            try await evaluation(
                received, .unlock, kept.slot, kept.current.generation, publicKey: kept.current.publicKey))
    }

    /// Does what follows from the server's answer.
    private func take(
        _ reply: UnlockReply, in step: UnlockCeremony.Step, _ unlock: inout Unlock
    ) async throws -> UnlockCeremony.Event {
        let (opening, kept) = (unlock.opening, unlock.opening.kept)
        switch reply {
        case .evaluation(let evaluation):
            unlock.evaluation = evaluation
            try await keep(evaluation.content, evaluation.compact, for: opening)
        case .status(let status) where step == .settleChange:
            unlock.opening = try await opening.with(settled(opening, status))
            return .settled
        case .status(let status) where step == .sendConfirmation:
            guard let body = kept.confirmationBody else { return .done }
            let record = try await forget(body, kept.slot, of: opening.record, status)
            // The keys that are open stay so, whatever the status says of the password.
            if unlock.opened == nil { unlock.opening = try opening.with(record) }
        case .status(let status):
            unlock.error = try await judged(unlock.error, kept.slot, of: unlock.asked ?? opening.record, status)
        }
        return .done
    }

    /// Does a step for which the server is not asked.
    private func perform(_ step: UnlockCeremony.Step, _ unlock: inout Unlock) async throws -> UnlockCeremony.Event {
        switch step {
        case .storeRatchet: try await storeRatchet(&unlock)
        case .open: return try await openEvaluated(&unlock)
        case .confirm: try await storeConfirmation(&unlock)
        // Nothing is stored that would have to be sent.
        case .settleChange: return .settled
        case .sendConfirmation, .evaluate, .askStatus, .done, .fail: break
        }
        return .done
    }

    /// Stores an evaluation, and what it says of the password.
    private func keep(_ content: Evaluation, _ compact: String, for opening: Opening) async throws {
        let kept = opening.kept
        try await parts.records.modify(opening.id) { record in
            // A status that was asked for before says less.
            record.heard(at: max(record.statusAt ?? 0, content.head.issuedAt))
            record.modify(kept.slot) { slot in
                slot.last = compact
                (slot.ratchet, slot.ratchetNext) = (kept.ratchetNext, nil)
                slot.tries = content.tries
                slot.spare = content.spare
                slot.state = content.tries == 0 ? .locked : .open
            }
        }
    }

    /// Blinds the password, and stores *r'* before the server hears of the try: it counts that, so what can fail
    /// although the password is right is done before.
    private func storeRatchet(_ unlock: inout Unlock) async throws {
        let opening = unlock.opening
        let kept = opening.kept
        let blobs = try await parts.sealing.blobs(of: kept.current, opening.record)
        let typed = try opening.password.map { password in
            try parts.sealing.stretch(password.normalized, kept.current.salt, kept.current.cost)
        }
        let remembered = typed == nil ? await parts.memory.takeRemembered(opening.id, kept, at: parts.uptime()) : nil
        guard let s = typed ?? remembered else { throw SigningError(.passwordRequired) }
        guard kept.ratchet != nil else { throw SigningError(.secureData) }
        let plan = SealingPlan(kept, s: s)
        unlock.blinded = (plan, try plan.input(opening.record), blobs)
        let next = kept.ratchetNext ?? Secret(bytes: parts.random.bytes(32))
        let stored = try await parts.records.modify(opening.id) { $0.modify(kept.slot) { $0.ratchetNext = next } }
        unlock.opening = try opening.with(stored)
    }

    /// What has the blinded password evaluated.
    private func unlockBody(_ unlock: Unlock) throws -> UnlockBody {
        let kept = unlock.opening.kept
        guard let ratchet = kept.ratchet, let next = kept.ratchetNext, let element = unlock.blinded?.input.element
        else {
            throw SigningError(.internal)
        }
        return UnlockBody(
            slot: kept.slot, generation: kept.current.generation, rid: SigningID(random: parts.random),
            blinded: element.bytes, r: ratchet, next: .ratchet(next), last: kept.last)
    }

    /// Verifies an evaluation: for this purpose, slot and generation, and by the pinned key if there is one already.
    func evaluation(
        _ received: Received, _ purpose: EvaluationPurpose, _ slot: PasswordSlot, _ generation: Int,
        publicKey: [UInt8]?
    ) async throws -> SignedMessage<Evaluation> {
        let evaluation = try await parts.calls.verified(received, as: Evaluation.self)
        let content = evaluation.content
        guard content.purpose == purpose, content.slot == slot, content.generation == generation else {
            throw SigningProtocolError(.wrongRequest, "The evaluation is for something else.", member: "purpose")
        }
        guard publicKey.map({ $0 == content.publicKey }) ?? true else {
            throw SigningProtocolError(.wrongRequest, "The evaluation is by another key.", member: "pk")
        }
        return evaluation
    }

    /// Opens the keys with the evaluation, or says that the password was wrong.
    private func openEvaluated(_ unlock: inout Unlock) async throws -> UnlockCeremony.Event {
        let opening = unlock.opening
        guard let blinded = unlock.blinded, let evaluation = unlock.evaluation?.content else {
            throw SigningError(.internal)
        }
        var plan = blinded.plan
        try plan.evaluate(evaluation, blinded.input)
        let (current, blobs) = (opening.kept.current, blinded.blobs)
        if let contents = try parts.sealing.unsealed(current, blobs, plan, opening.record) {
            unlock.opened = OpenedKeys(contents: contents, s: plan.s, unl: evaluation.unl)
            return .done
        }
        await parts.memory.forget(opening.id, opening.kept.slot)
        var error = SigningError(.wrongPassword)
        error.remaining = evaluation.tries
        error.spare = evaluation.spare
        error.retryAfter = evaluation.wait.flatMap { $0 > 0 ? $0 : nil }
        error.passwordState = evaluation.tries == 0 ? .locked : .open
        unlock.error = error
        return .wrong
    }

    // MARK: Confirmation

    /// Signs that the password was right, and stores that.
    private func storeConfirmation(_ unlock: inout Unlock) async throws {
        let (record, kept) = (unlock.opening.record, unlock.opening.kept)
        guard let evaluation = unlock.evaluation, let opened = unlock.opened, let n = evaluation.content.n,
            let unl = evaluation.content.unl, let label = kept.current.keys.first?.label
        else { throw SigningError(.internal) }
        let confirmation = try await SignedMessage.sign(
            EvaluationConfirmation(
                issuer: record.issuer, did: record.knownDid, slot: kept.slot,
                generation: evaluation.content.generation, n: n, unl: unl,
                evaluation: .evaluation(evaluation.compact)), with: opened.signingKey(label))
        let stored = try await parts.records.modify(record.id) { record in
            record.modify(kept.slot) { slot in
                slot.confirmation = confirmation.compact
                slot.confirmed = evaluation.compact
            }
        }
        unlock.opening = try unlock.opening.with(stored)
    }

    /// Sends a confirmation that an earlier unlock has left.
    func sendConfirmation(_ id: SigningID, _ slot: PasswordSlot) async throws {
        var record = try await parts.records.load(id)
        var retry = CallRetry(sends: 0)
        while true {
            let held = try await parts.hold(.password(id, slot))
            do {
                let now = try await parts.records.load(id)
                if let body = now.slotRecord(slot)?.confirmationBody {
                    let status = try await parts.calls.ask(
                        Request(.confirmEvaluation, body), of: now, by: .given, read: parts.calls.status)
                    _ = try await forget(body, slot, of: now, status)
                }
                return await held.release()
            } catch {
                await held.release()
                try await parts.calls.recover(&record, &retry, from: error)
            }
        }
    }

    /// Forgets a confirmation that is acknowledged.
    private func forget(
        _ body: ConfirmEvaluationBody, _ slot: PasswordSlot, of record: ContainerRecord, _ status: ContainerStatus
    ) async throws -> ContainerRecord {
        try await parts.containers.adopt(status, of: record) { record in
            record.modify(slot) { slot in
                if slot.confirmation == body.confirmation { (slot.confirmation, slot.confirmed) = (nil, nil) }
            }
        }
    }

    // MARK: Refusals

    /// What became of a password that the server refused to evaluate. Errors are not signed, so the server is asked for
    /// its signed word, the status; only that locks or destroys something here.
    private func judged(
        _ refusal: (any Error)?, _ slot: PasswordSlot, of record: ContainerRecord, _ status: ContainerStatus
    ) async throws -> any Error {
        guard var error = refusal as? SigningError else { return refusal ?? SigningError(.internal) }
        try await parts.containers.adopt(status, of: record)
        guard let said = status.slots.first(where: { $0.slot == slot }) else { return error }
        if said.state == .shredded {
            await parts.memory.forget(record.id, slot)
            return SigningError.destroyed
        }
        error.passwordState = said.state
        error.remaining = said.tries
        error.spare = said.spare
        error.retryAfter = said.wait > 0 ? said.wait : error.retryAfter
        return error
    }
}
