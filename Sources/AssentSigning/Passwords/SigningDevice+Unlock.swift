import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Foundation
import Logging

extension SigningDevice {
    /// Opens the keys of an `assisted` password: the server counts, evaluates, and hears that the password was right.
    func unlock(_ opening: Opening) async throws -> OpenedKeys {
        var opening = opening
        if opening.kept.commit != nil {
            // Until it is known which password counts, a wrong one could not be told from the other one.
            try await settleChange(opening)
            opening = try await self.opening(opening.id, opening.kept.slot, opening.password, for: opening.purpose)
        }
        try await sendEarlierConfirmation(opening)
        let kept = opening.kept
        guard let s = try opening.password.map({ try stretched(opening, $0) }) ?? takeRemembered(opening.id, kept)
        else { throw SigningError(.passwordRequired) }
        let plan = SealingPlan(kept, s: s)
        let input = try plan.input(opening.record)
        let evaluation: SignedMessage<Evaluation>
        do {
            evaluation = try await evaluate(opening, input.element)
        } catch let error as SigningError {
            throw try await judged(error, opening)
        }
        let contents = try await opened(evaluation.content, input, plan, opening)
        let opened = OpenedKeys(contents: contents, s: s, unl: evaluation.content.unl)
        try await confirm(evaluation, opened, opening)
        if opening.password != nil { remember(s, opening.id, kept, opening.policy.rules) }
        return opened
    }

    /// Has an element evaluated. *r'* is stored before, and the answer with what follows from it before it is used.
    private func evaluate(
        _ opening: Opening, _ element: ObliviousElement
    ) async throws -> SignedMessage<Evaluation> {
        let kept = opening.kept
        guard let ratchet = kept.ratchet else { throw SigningError(.secureData) }
        let next = kept.ratchetNext ?? Secret(bytes: random.bytes(32))
        try await records.modify(opening.id) { $0.modify(kept.slot) { $0.ratchetNext = next } }
        let body = UnlockBody(
            slot: kept.slot, generation: kept.current.generation, rid: SigningID(random: random),
            blinded: element.bytes, r: ratchet, next: .ratchet(next), last: kept.last)
        let evaluation = try await repeated {
            try await self.call(opening.id, .unlock, body) { received in
                try await self.evaluation(
                    received, .unlock, kept.slot, kept.current.generation, publicKey: kept.current.publicKey)
            }
        }
        let content = evaluation.content
        try await records.modify(opening.id) { record in
            record.modify(kept.slot) { slot in
                slot.last = evaluation.compact
                slot.ratchet = next
                slot.ratchetNext = nil
                slot.tries = content.tries
                slot.spare = content.spare
                slot.state = content.tries == 0 ? .locked : .open
            }
        }
        return evaluation
    }

    /// The server does not count the same request twice, and a reply that was lost would be a try that was lost.
    func repeated<Value>(_ body: () async throws -> Value) async throws -> Value {
        // What the app allows counts for every call, these among them.
        try await again(configuration.retries == nil ? 1 : 0, body)
    }

    /// Verifies an evaluation: for this purpose, slot and generation, and by the pinned key if there is one already.
    func evaluation(
        _ received: Received, _ purpose: EvaluationPurpose, _ slot: PasswordSlot, _ generation: Int,
        publicKey: [UInt8]?
    ) async throws -> SignedMessage<Evaluation> {
        let evaluation = try await verified(received.text, received, as: Evaluation.self)
        let content = evaluation.content
        guard content.purpose == purpose, content.slot == slot, content.generation == generation else {
            throw SigningProtocolError(.wrongRequest, "The evaluation is for something else.", member: "purpose")
        }
        guard publicKey.map({ $0 == content.publicKey }) ?? true else {
            throw SigningProtocolError(.wrongRequest, "The evaluation is by another key.", member: "pk")
        }
        return evaluation
    }

    /// Opens the keys with an evaluation, or says that the password was wrong.
    private func opened(
        _ evaluation: Evaluation, _ input: ObliviousInput, _ plan: SealingPlan, _ opening: Opening
    ) async throws -> [String: SealedKeyContent] {
        var plan = plan
        plan.output = try Self.mapped { () throws(SigningProtocolError) in try Self.output(evaluation, input) }
        if let contents = try await unsealed(opening.kept.current, plan, opening.record) { return contents }
        forget(opening.id, opening.kept.slot)
        var error = SigningError(.wrongPassword)
        error.remaining = evaluation.tries
        error.spare = evaluation.spare
        error.retryAfter = evaluation.wait.flatMap { $0 > 0 ? $0 : nil }
        error.passwordState = evaluation.tries == 0 ? .locked : .open
        throw error
    }

    /// Verifies the proof, and gives *o*.
    static func output(
        _ evaluation: Evaluation, _ input: ObliviousInput
    ) throws(SigningProtocolError) -> Secret {
        try input.output(
            by: ObliviousElement(evaluation.publicKey), evaluated: evaluation.evaluated, proof: evaluation.proof)
    }

    // MARK: Confirmation

    /// Signs that the password was right, stores that, and sends it.
    private func confirm(
        _ evaluation: SignedMessage<Evaluation>, _ opened: OpenedKeys, _ opening: Opening
    ) async throws {
        let (record, kept, content) = (opening.record, opening.kept, evaluation.content)
        guard let did = record.did, let n = content.n, let unl = content.unl,
            let label = kept.current.keys.first?.label
        else { throw SigningError(.internal) }
        let confirmation = try await SignedMessage.sign(
            EvaluationConfirmation(
                issuer: record.issuer, did: did, slot: kept.slot, generation: content.generation, n: n, unl: unl,
                evaluation: .evaluation(evaluation.compact)), with: opened.signingKey(label))
        try await records.modify(record.id) { record in
            record.modify(kept.slot) { slot in
                slot.confirmation = confirmation.compact
                slot.confirmed = evaluation.compact
            }
        }
        try await sendConfirmation(record.id, kept.slot)
    }

    /// Sends a stored confirmation until it is acknowledged.
    func sendConfirmation(_ id: SigningID, _ slot: PasswordSlot) async throws {
        guard let kept = try await records.load(id).slotRecord(slot), let confirmation = kept.confirmation,
            let evaluation = kept.confirmed
        else { return }
        let body = ConfirmEvaluationBody(confirmation: confirmation, evaluation: evaluation)
        let status = try await repeated {
            try await self.call(id, .confirmEvaluation, body) { try await self.status($0) }
        }
        try await adopt(status, id) { record in
            record.modify(slot) { slot in
                if slot.confirmation == confirmation { (slot.confirmation, slot.confirmed) = (nil, nil) }
            }
        }
    }

    /// What an earlier unlock has left. A server that does not take it must not keep the user from trying again.
    private func sendEarlierConfirmation(_ opening: Opening) async throws {
        do {
            try await sendConfirmation(opening.id, opening.kept.slot)
        } catch let error as SigningError where !error.isTransient {
            logger.info("a confirmation was not taken", metadata: ["code": "\(error.code)"])
        }
    }

    // MARK: Refusals

    /// What became of a password that the server refused to evaluate. Errors are not signed, so the server is asked for
    /// its signed word; only that locks or destroys something here.
    private func judged(_ error: SigningError, _ opening: Opening) async throws -> SigningError {
        let asking: [SigningError.Code] = [
            .passwordLocked, .passwordWait, .passwordDestroyed, .wrongGeneration, .containerSuspect, .containerBlocked,
        ]
        guard asking.contains(error.code) else { return error }
        var error = error
        let (id, slot) = (opening.id, opening.kept.slot)
        let status = try await call(id, .status, EmptyBody()) { try await self.status($0) }
        try await adopt(status, id)
        guard let said = status.slots.first(where: { $0.slot == slot }) else { return error }
        if said.state == .shredded {
            forget(id, slot)
            return Self.destroyed
        }
        error.passwordState = said.state
        error.remaining = said.tries
        error.spare = said.spare
        error.retryAfter = said.wait > 0 ? said.wait : error.retryAfter
        return error
    }
}
