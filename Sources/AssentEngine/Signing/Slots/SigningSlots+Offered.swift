import AssentCore
import AssentSigningProtocol
import AssentStore

extension SigningSlots {
    /// The slots that the offer of an enrolment or a renewal has.
    func offered(_ did: SigningID, pid: SigningID) async throws -> [SigningOfferedSlot] {
        try await store.all(
            "SELECT * FROM signing_offered_slots WHERE did = \(did) AND pid = \(pid) ORDER BY slot"
        ).map(SigningOfferedSlot.init)
    }

    /// The slots that an offer has, and those keys of them that are new: a device that begins again keeps its own. For
    /// a container with keys they are one generation after these.
    func planned(
        _ did: SigningID, pid: SigningID, after container: SigningContainerRecord? = nil
    ) async throws -> ([OfferedSlot], made: [SigningOfferedSlot]) {
        let plan = settings.plannedSlots
        guard !plan.isEmpty else { return ([], []) }
        let isKept = container != nil || plan.contains { $0.mode == .assisted }
        let known = isKept ? try await offered(did, pid: pid) : []
        let rows = container == nil ? [] : try await all(of: did)
        let before = try container.map { try UnverifiedMessage<Offer>($0.offer).content.slots } ?? []
        var (slots, made): ([OfferedSlot], [SigningOfferedSlot]) = ([], [])
        for (slot, mode) in plan {
            let last = [
                rows.first { $0.slot == slot }?.generation,
                before.first { $0.slot == slot }.map { Int64($0.generation) },
            ].compactMap(\.self).max()
            let generation = last.map { $0 + 1 } ?? 0
            guard mode == .assisted else {
                slots.append(OfferedSlot(slot: slot, mode: mode, generation: Int(generation)))
                continue
            }
            var key = known.first { $0.slot == slot }
            if key == nil {
                let new = try newKey(slot, did: did, generation: generation)
                made.append(new)
                key = new
            }
            slots.append(
                OfferedSlot(
                    slot: slot, mode: mode, generation: Int(key?.generation ?? generation), publicKey: key?.publicKey))
        }
        return (slots, made)
    }

    /// Evaluates a password at enrolment, or for new keys: there is no sealed key yet that it could help to open.
    func evaluate(
        _ body: EvaluateBody, pid: SigningID, isRenewal: Bool, user: String?, _ request: DeviceRequest
    ) async throws -> String {
        let element = try ObliviousElement(body.blinded)
        let slot = try await count(
            SlotEvaluation(
                did: request.did, pid: pid, isRenewal: isRenewal, user: user, slot: body.slot,
                generation: Int64(body.generation), rid: body.rid, element: Base64URL.encode(body.blinded)),
            at: request.now)
        let made = try evaluated(
            element, with: slot.sealedKey, slot.slot, did: request.did, generation: slot.generation)
        return try await keys.sign(
            Evaluation(
                head: head(request), purpose: .enrol, slot: slot.slot, generation: Int(slot.generation),
                publicKey: made.publicKey, evaluated: made.evaluation.evaluated, proof: made.evaluation.proof,
                left: Int(max(0, SlotSQL.evaluationsAtEnrolment - slot.evaluations))))
    }

    /// Counts an evaluation at enrolment, or for new keys.
    ///
    /// - Throws: ``SigningRefusal``: `invalid_request`, `enrolment_void`, `wrong_generation`, `rate_limited`.
    func count(_ evaluation: SlotEvaluation, at now: Int64) async throws -> SigningOfferedSlot {
        let outcome = try await store.attempt([
            .one(SlotSQL.evaluate(evaluation, at: now), else: Obstacle.changed),
            store.note(
                evaluation.isRenewal ? .signingContainer : .signingEnrol, user: evaluation.user, did: evaluation.did,
                ["step": "evaluate", "slot": evaluation.slot.rawValue]),
        ])
        if case .done(let results) = outcome, let row = results.first?.first { return try SigningOfferedSlot(row) }
        guard let isStarted = try await isStarted(evaluation, at: now) else { throw SigningRefusal(.enrolmentVoid) }
        guard isStarted,
            let known = try await offered(evaluation.did, pid: evaluation.pid)
                .first(where: { $0.slot == evaluation.slot })
        else { throw SigningRefusal(.invalidRequest, "There is nothing to evaluate now.") }
        throw SigningRefusal(known.generation == evaluation.generation ? .rateLimited : .wrongGeneration)
    }

    /// Whether what a password is evaluated for waits for it; `nil` when it is over.
    private func isStarted(_ evaluation: SlotEvaluation, at now: Int64) async throws -> Bool? {
        if evaluation.isRenewal {
            let known = try await enrolments.renewal(pid: evaluation.pid)
            return known.flatMap { $0.state == .void || $0.expiresAt <= now ? nil : $0.state == .started }
        }
        let known = try await enrolments.find(evaluation.did)
        return known.flatMap { $0.state == .void || $0.expiresAt <= now ? nil : $0.state == .started }
    }
}
