import AssentCore
package import AssentSigningProtocol
import AssentStore
import Crypto

extension SigningProvider {
    /// A new key of a slot, sealed under the master key for its place.
    func slotKey(_ slot: PasswordSlot, did: String, generation: Int64) throws -> SigningOfferedSlot {
        let key = try ObliviousKey()
        return SigningOfferedSlot(
            slot: slot, generation: generation, publicKey: key.publicKey.bytes,
            sealedKey: try context.masterKey.seal(
                key.secret, for: .signingSlot, context: Self.place(slot, did: did, generation: generation)))
    }

    private static func place(_ slot: PasswordSlot, did: String, generation: Int64) -> String {
        "k \(did) \(slot.rawValue) \(generation)"
    }

    /// Evaluates an element with a key that was sealed for this place: in another one it does not open.
    private func evaluated(
        _ element: ObliviousElement, with sealed: [UInt8], _ slot: PasswordSlot, did: String, generation: Int64
    ) throws -> (publicKey: [UInt8], evaluation: ObliviousKey.Evaluation) {
        let secret = try context.masterKey.open(
            sealed, for: .signingSlot, context: Self.place(slot, did: did, generation: generation))
        let key = try ObliviousKey(secret: secret)
        return (key.publicKey.bytes, try key.evaluate(element))
    }

    /// At enrolment: there is no sealed key yet that it could help to open.
    func evaluate(_ request: DeviceRequest) async throws -> String {
        let body = try EvaluateBody(plaintext: request.plaintext)
        guard case .enrolment(let enrolment) = request.party else {
            throw SigningRefusal(.invalidRequest, "There is nothing to evaluate now.")
        }
        let user = try await store.invite(pid: enrolment.pid)?.userID
        return try await evaluate(body, of: SlotEvaluation(enrolment, user: user, slot: body.slot), request)
    }

    /// At enrolment, or for new keys.
    func evaluate(_ body: EvaluateBody, of evaluation: SlotEvaluation, _ request: DeviceRequest) async throws -> String
    {
        let element = try ObliviousElement(body.blinded)
        let slot = try await store.evaluate(
            evaluation, generation: Int64(body.generation), rid: body.rid.text,
            element: Base64URL.encode(body.blinded), at: request.now)
        let made = try evaluated(
            element, with: slot.sealedKey, slot.slot, did: request.did.text, generation: slot.generation)
        return try await keys.sign(
            Evaluation(
                head: head(request), purpose: .enrol, slot: slot.slot, generation: Int(slot.generation),
                publicKey: made.publicKey, evaluated: made.evaluation.evaluated, proof: made.evaluation.proof,
                left: Int(max(0, SigningSQL.evaluationsAtEnrolment - slot.evaluations))))
    }

    /// One guess, counted. The evaluation is made only when the count is known to be committed.
    func unlock(_ request: DeviceRequest) async throws -> String {
        let body = try UnlockBody(plaintext: request.plaintext)
        let element = try ObliviousElement(body.blinded)
        guard let container = request.container else { throw SigningRefusal(.enrolmentVoid) }
        let assisted = try assistedSlot(body.slot, of: container)
        var last: Int64 = 0
        if let text = body.last, let known = try await ownEvaluation(text, of: container)?.content,
            known.slot == body.slot, known.generation == body.generation
        {
            last = Int64(known.n ?? 0)
        }
        let did = request.did.text
        let generation = Int64(body.generation)
        let attempt = SlotTry(
            did: did, slot: body.slot, generation: generation, rid: body.rid.text,
            element: Base64URL.encode(body.blinded), ratchet: SigningHash.ratchet(body.r).text,
            next: body.next.text, last: last, nonceMadeAt: request.nonceMadeAt)
        let counted: CountedTry
        do {
            counted = try await store.unlock(attempt, of: container, lock: assisted.lock, at: request.now)
        } catch let refusal as SigningRefusal where refusal.code == .containerSuspect {
            if container.state == .active { await tell(.suspect, container) }
            throw refusal
        }
        let made = try evaluated(element, with: counted.sealedKey, body.slot, did: did, generation: generation)
        return try await keys.sign(
            Evaluation(
                head: head(request), purpose: .unlock, slot: body.slot, generation: body.generation,
                publicKey: made.publicKey, evaluated: made.evaluation.evaluated, proof: made.evaluation.proof,
                unl: try name(of: counted.n, did: request.did, slot: body.slot, generation: generation),
                n: Int(counted.n), tries: counted.tries, spare: counted.spare, wait: counted.wait))
    }

    /// The id of an evaluation: the same for each answer to the same number, and nothing that somebody else could name.
    private func name(of n: Int64, did: SigningID, slot: PasswordSlot, generation: Int64) throws -> SigningID {
        let frame = Frame(
            "assent evaluation", .text(iss), .text(did.text), .text(slot.rawValue), .integer(UInt64(generation)),
            .integer(UInt64(n)))
        let code = HMAC<SHA256>.authenticationCode(
            for: frame.bytes, using: context.masterKey.derivedSecret(for: .signingEvaluation).symmetricKey)
        guard let id = SigningID(bytes: Array(code).prefix(16)) else { throw SigningRefusal(.unavailable) }
        return id
    }

    /// A key of the slot says that the evaluation opened it: the password was right.
    func confirmEvaluation(_ request: DeviceRequest) async throws -> String {
        let body = try ConfirmEvaluationBody(plaintext: request.plaintext)
        let container = try request.active()
        guard let evaluation = try await ownEvaluation(body.evaluation, of: container)?.content else {
            throw SigningRefusal(.invalidRequest, "The key that signed the evaluation was withdrawn.")
        }
        _ = try assistedSlot(evaluation.slot, of: container)
        let (message, slot) = try await signedBySlotKey(
            body.confirmation, as: EvaluationConfirmation.self, of: container)
        let confirmation = message.content
        guard let n = evaluation.n, let unl = evaluation.unl, StrictJSON.same(confirmation.issuer, iss),
            confirmation.did == request.did, slot == evaluation.slot, confirmation.slot == slot,
            confirmation.generation == evaluation.generation, confirmation.n == n, confirmation.unl == unl,
            confirmation.evaluation == .evaluation(body.evaluation)
        else { throw SigningRefusal(.badSignature, "The confirmation is for something else.") }
        try await store.confirm(
            ConfirmedTry(
                did: container.did, slot: evaluation.slot, generation: Int64(evaluation.generation), n: Int64(n),
                unl: unl.text, evaluatedAt: Int64(evaluation.head.issuedAt), confirmedAt: request.now,
                evaluation: body.evaluation, confirmation: body.confirmation), of: container)
        return try await status(request)
    }

    /// Makes a new key for a new password, beside the old one.
    func startChange(_ request: DeviceRequest) async throws -> String {
        let body = try ChangeStartBody(plaintext: request.plaintext)
        let element = try ObliviousElement(body.blinded)
        let container = try request.active()
        let (content, change, assisted) = try await change(body.change, .start, request, container)
        guard let unl = content.unl else { throw SigningRefusal(.invalidRequest) }
        let key = try slotKey(change.slot, did: change.did, generation: change.to)
        try await store.begin(
            change, with: key, unl: unl.text, minimumAge: assisted.minimumAge, of: container, proof: request.proof,
            at: request.now)
        let made = try evaluated(element, with: key.sealedKey, change.slot, did: change.did, generation: change.to)
        return try await keys.sign(
            Evaluation(
                head: head(request), purpose: .change, slot: change.slot, generation: content.to,
                publicKey: made.publicKey, evaluated: made.evaluation.evaluated, proof: made.evaluation.proof))
    }

    /// The new key takes the old one's place.
    func commitChange(_ request: DeviceRequest) async throws -> String {
        let body = try ChangeCommitBody(plaintext: request.plaintext)
        let container = try request.active()
        let (_, change, _) = try await change(body.change, .commit, request, container)
        try await store.commit(change, of: container, proof: request.proof, at: request.now)
        return try await status(request)
    }

    private func change(
        _ text: String, _ step: PasswordChangeStep, _ request: DeviceRequest, _ container: SigningContainerRecord
    ) async throws -> (PasswordChange, SlotChange, AssistedSlot) {
        let (message, slot) = try await signedBySlotKey(text, as: PasswordChange.self, of: container)
        let content = message.content
        guard StrictJSON.same(content.issuer, iss), content.did == request.did, content.slot == slot,
            content.step == step
        else { throw SigningRefusal(.badSignature, "The change is for something else.") }
        let change = SlotChange(
            did: container.did, slot: slot, from: Int64(content.from), to: Int64(content.to),
            publicKey: content.publicKey)
        return (content, change, try assistedSlot(slot, of: container))
    }

    /// A message that an active key of a password slot has signed, and the slot.
    private func signedBySlotKey<Content: SignedContent>(
        _ text: String, as type: Content.Type, of container: SigningContainerRecord
    ) async throws -> (message: SignedMessage<Content>, slot: PasswordSlot) {
        let unverified = try UnverifiedMessage<Content>(text)
        let kid = unverified.kid.text
        guard let key = try await store.keys(did: container.did).first(where: { $0.kid == kid }),
            let slot = key.slot.flatMap(PasswordSlot.init)
        else { throw SigningRefusal(.badSignature, "It is not signed by a key of a password slot.") }
        guard key.isActive else { throw SigningRefusal(.keyRetired) }
        do {
            return (try unverified.verified(with: ProtocolKey(JSONValue.parse(key.publicJWK))), slot)
        } catch {
            throw SigningRefusal(.badSignature, "The signature is not good.")
        }
    }

    private func assistedSlot(_ slot: PasswordSlot, of container: SigningContainerRecord) throws -> AssistedSlot {
        guard let assisted = try container.assisted(slot) else {
            throw SigningRefusal(.invalidRequest, "The container has no such password slot.")
        }
        return assisted
    }

    /// An evaluation of an unlock of this container, by our own signature; `nil` when its key counts no more.
    private func ownEvaluation(_ text: String, of container: SigningContainerRecord) async throws
        -> SignedMessage<Evaluation>?
    {
        let unverified = try UnverifiedMessage<Evaluation>(text)
        let content = unverified.content
        guard let key = try await keys.signer(unverified.kid) else { return nil }
        guard let message = try? unverified.verified(with: key),
            StrictJSON.same(content.head.issuer, iss), content.head.audience == container.did,
            content.purpose == .unlock
        else { throw SigningRefusal(.invalidRequest, "The evaluation is not one of this server for this container.") }
        return message
    }
}

/// The evaluation that a decision spends, and what its receipt says of it.
struct UsedEvaluation: Sendable {
    let spent: SpentEvaluation
    let method: ReceiptMethod
    let unlock: ReceiptUnlock
}

extension SigningProvider {
    /// The password slots of a container, as far as the server counts their guesses.
    func slotStatuses(_ container: SigningContainerRecord, at now: Int64) async throws -> [SlotStatus] {
        let rows = try await store.slots(did: container.did)
        guard !rows.isEmpty else { return [] }
        let offer = try UnverifiedMessage<Offer>(container.offer).content
        return rows.compactMap { row in AssistedSlot(row.slot, of: offer).map { row.status($0.lock, at: now) } }
    }

    /// The evaluation that a decision spends; `nil` when its key needs none.
    ///
    /// - Throws: ``SigningRefusal``: `unlock_required`, `password_expired`, `invalid_request` for one too many.
    func evaluation(for decision: Decision, key: SigningKeyRow, of container: SigningContainerRecord, at now: Int64)
        async throws -> UsedEvaluation?
    {
        guard let slot = key.slot.flatMap(PasswordSlot.init), let assisted = try container.assisted(slot) else {
            guard decision.unl == nil else {
                throw SigningRefusal(.invalidRequest, "The key that signed needs no evaluation.")
            }
            return nil
        }
        guard let unl = decision.unl,
            let confirmed = try await store.confirmed(unl.text, slot: slot, of: container.did, at: now)
        else { throw SigningRefusal(.unlockRequired) }
        let spent = SpentEvaluation(confirmed, passwordSetAfter: assisted.passwordSetAfter(at: now))
        guard let row = try await store.slot(slot, of: container.did), row.changedAt > spent.passwordSetAfter else {
            throw SigningRefusal(.passwordExpired)
        }
        let unlock = ReceiptUnlock(
            slot: slot, generation: Int(confirmed.generation), n: Int(confirmed.n),
            evaluatedAt: Int(confirmed.evaluatedAt), confirmedAt: Int(confirmed.confirmedAt))
        return UsedEvaluation(spent: spent, method: assisted.method, unlock: unlock)
    }
}

extension SigningProvider {
    /// The password slots of a container that the server counts guesses of.
    package func slots(of container: SigningContainerRecord) async throws(SigningRefusal) -> [SlotStatus] {
        try await answering { try await slotStatuses(container, at: store.now) }
    }

    /// Unlocks a slot, of the caller or by an administrator, after a fresh authentication. Administrators also lock it,
    /// and destroy what it opens.
    ///
    /// - Returns: the container's state.
    /// - Throws: ``SigningRefusal``: `unknown_container`, also for somebody else's; `forbidden`;
    ///   `fresh_authentication_required`; `invalid_request` when there is no such slot; `shredded`.
    package func act(_ caller: SigningCaller, did: String, _ action: SlotAction, on name: String)
        async throws(SigningRefusal) -> ContainerState
    {
        try await answering {
            let now = store.now
            guard let container = try await store.container(did: did),
                container.userID == caller.session.user.id || caller.isAdministrator
            else { throw SigningRefusal(.unknownContainer) }
            guard action == .unlock || caller.isAdministrator else { throw SigningRefusal(.forbidden) }
            if action == .unlock { try requireFreshness(of: caller, at: now) }
            guard let slot = PasswordSlot(rawValue: name), let row = try await store.slot(slot, of: did) else {
                throw SigningRefusal(.invalidRequest, "The container has no such password slot.")
            }
            let done = try await store.act(action, on: slot, of: container, by: caller.session.user.id)
            guard done || (action == .wipe && row.sealedKey == nil) else { throw SigningRefusal(.shredded) }
            return container.state(at: now)
        }
    }
}
