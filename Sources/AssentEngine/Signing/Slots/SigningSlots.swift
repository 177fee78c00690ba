import AssentCore
import AssentSigningProtocol
import AssentStore
import Crypto

/// Password slots of containers whose guesses the server counts.
package struct SigningSlots: SigningPart {
    package let realm: SigningRealm

    /// The password slots of a container.
    func all(of did: SigningID) async throws -> [SigningSlotRow] {
        try await store.all(SlotSQL.slots(of: did)).map(SigningSlotRow.init)
    }

    /// A password slot of a container.
    func find(_ slot: PasswordSlot, of did: SigningID) async throws -> SigningSlotRow? {
        try await store.first("SELECT * FROM signing_slots WHERE did = \(did) AND slot = \(slot)")
            .map(SigningSlotRow.init)
    }

    /// The same, which must be there.
    ///
    /// - Throws: ``SigningRefusal`` `invalid_request`.
    func known(_ slot: PasswordSlot, of did: SigningID) async throws -> SigningSlotRow {
        guard let row = try await find(slot, of: did) else { throw Self.noSuchSlot }
        return row
    }

    static let noSuchSlot = SigningRefusal(.invalidRequest, "The container has no such password slot.")

    /// How the password slots of a container stand, as far as the server counts their guesses.
    func statuses(_ container: SigningContainerRecord, at now: Int64) async throws -> [SlotStatus] {
        try statuses(try await all(of: container.did), of: container, at: now)
    }

    /// The same of slots that were read before.
    func statuses(
        _ rows: [SigningSlotRow], of container: SigningContainerRecord, at now: Int64
    ) throws -> [SlotStatus] {
        guard !rows.isEmpty else { return [] }
        let offer = try realm.offers.offer(container.offer)
        return rows.compactMap { row in AssistedSlot(row.slot, of: offer).map { row.status($0.lock, at: now) } }
    }

    /// A new key of a slot, sealed under the master key for its place.
    func newKey(_ slot: PasswordSlot, did: SigningID, generation: Int64) throws -> SigningOfferedSlot {
        let key = try ObliviousKey()
        return SigningOfferedSlot(
            slot: slot, generation: generation, publicKey: key.publicKey.bytes,
            sealedKey: try context.masterKey.seal(
                key.secret, for: .signingSlot, context: Self.place(slot, did: did, generation: generation)))
    }

    private static func place(_ slot: PasswordSlot, did: SigningID, generation: Int64) -> String {
        "k \(did) \(slot.rawValue) \(generation)"
    }

    /// Evaluates an element with a key that was sealed for this place: in another one it does not open.
    func evaluated(
        _ element: ObliviousElement, with sealed: [UInt8], _ slot: PasswordSlot, did: SigningID, generation: Int64
    ) throws -> (publicKey: [UInt8], evaluation: ObliviousKey.Evaluation) {
        let secret = try context.masterKey.open(
            sealed, for: .signingSlot, context: Self.place(slot, did: did, generation: generation))
        let key = try ObliviousKey(secret: secret)
        return (key.publicKey.bytes, try key.evaluate(element))
    }

    /// One guess, counted. The evaluation is made only when the count is known to be committed.
    func unlock(_ request: DeviceRequest) async throws -> String {
        let body: UnlockBody = try request.body()
        let element = try ObliviousElement(body.blinded)
        let container = try request.known()
        let assisted = try required(body.slot, of: container)
        var last: Int64 = 0
        if let text = body.last, let known = try await ownEvaluation(text, of: container),
            known.slot == body.slot, known.generation == body.generation
        {
            last = Int64(known.n ?? 0)
        }
        let did = request.did
        let generation = Int64(body.generation)
        let attempt = SlotTry(
            did: did, slot: body.slot, generation: generation, rid: body.rid,
            element: Base64URL.encode(body.blinded), ratchet: SigningHash.ratchet(body.r),
            next: body.next, last: last, nonceMadeAt: request.nonceMadeAt)
        let counted: CountedTry
        do {
            counted = try await count(attempt, of: container, lock: assisted.lock, at: request.now)
        } catch let refusal as SigningRefusal where refusal.code == .containerSuspect {
            if container.state == .active { await notices.tell(.suspect, container) }
            throw refusal
        }
        let made = try evaluated(element, with: counted.sealedKey, body.slot, did: did, generation: generation)
        let evaluation = try await keys.sign(
            Evaluation(
                head: head(request), purpose: .unlock, slot: body.slot, generation: body.generation,
                publicKey: made.publicKey, evaluated: made.evaluation.evaluated, proof: made.evaluation.proof,
                unl: try name(of: counted.n, did: did, slot: body.slot, generation: generation),
                n: Int(counted.n), tries: counted.tries, spare: counted.spare, wait: counted.wait))
        realm.evaluations.remember(evaluation)
        return evaluation
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
        let body: ConfirmEvaluationBody = try request.body()
        let container = try request.active()
        guard let evaluation = try await ownEvaluation(body.evaluation, of: container) else {
            throw SigningRefusal(.invalidRequest, "The key that signed the evaluation was withdrawn.")
        }
        _ = try required(evaluation.slot, of: container)
        let (message, slot) = try await signedBySlotKey(
            body.confirmation, as: EvaluationConfirmation.self, in: request)
        let confirmation = message.content
        guard let n = evaluation.n, let unl = evaluation.unl, StrictJSON.same(confirmation.issuer, iss),
            confirmation.did == request.did, slot == evaluation.slot, confirmation.slot == slot,
            confirmation.generation == evaluation.generation, confirmation.n == n, confirmation.unl == unl,
            confirmation.evaluation == .evaluation(body.evaluation)
        else { throw SigningRefusal(.badSignature, "The confirmation is for something else.") }
        try await confirm(
            ConfirmedTry(
                did: container.did, slot: evaluation.slot, generation: Int64(evaluation.generation), n: Int64(n),
                unl: unl, evaluatedAt: Int64(evaluation.head.issuedAt), confirmedAt: request.now,
                evaluation: body.evaluation, confirmation: body.confirmation), of: container)
        return try await devices.status(request)
    }

    /// Makes a new key for a new password, beside the old one.
    func startChange(_ request: DeviceRequest) async throws -> String {
        let body: ChangeStartBody = try request.body()
        let element = try ObliviousElement(body.blinded)
        let container = try request.active()
        let (content, change, assisted) = try await change(body.change, .start, request, container)
        guard let unl = content.unl else { throw SigningRefusal(.invalidRequest) }
        let key = try newKey(change.slot, did: change.did, generation: change.to)
        try await begin(
            change, with: key, unl: unl, minimumAge: assisted.minimumAge, of: container, proof: request.proof,
            at: request.now)
        let made = try evaluated(element, with: key.sealedKey, change.slot, did: change.did, generation: change.to)
        return try await keys.sign(
            Evaluation(
                head: head(request), purpose: .change, slot: change.slot, generation: content.to,
                publicKey: made.publicKey, evaluated: made.evaluation.evaluated, proof: made.evaluation.proof))
    }

    /// The new key takes the old one's place.
    func commitChange(_ request: DeviceRequest) async throws -> String {
        let body: ChangeCommitBody = try request.body()
        let container = try request.active()
        let (_, change, _) = try await change(body.change, .commit, request, container)
        try await commit(change, of: container, proof: request.proof, at: request.now)
        return try await devices.status(request)
    }

    private func change(
        _ text: String, _ step: PasswordChangeStep, _ request: DeviceRequest, _ container: SigningContainerRecord
    ) async throws -> (PasswordChange, SlotChange, AssistedSlot) {
        let (message, slot) = try await signedBySlotKey(text, as: PasswordChange.self, in: request)
        let content = message.content
        guard StrictJSON.same(content.issuer, iss), content.did == request.did, content.slot == slot,
            content.step == step
        else { throw SigningRefusal(.badSignature, "The change is for something else.") }
        let change = SlotChange(
            did: container.did, slot: slot, from: Int64(content.from), to: Int64(content.to),
            publicKey: content.publicKey)
        return (content, change, try required(slot, of: container))
    }

    /// A message that an active key of a password slot of the caller has signed, and the slot.
    private func signedBySlotKey<Content: SignedContent>(
        _ text: String, as type: Content.Type, in request: DeviceRequest
    ) async throws -> (message: SignedMessage<Content>, slot: PasswordSlot) {
        let unverified = try UnverifiedMessage<Content>(text)
        var known = request.keys
        if known == nil { known = try await devices.keys(of: request.did) }
        guard let key = known?.first(where: { $0.kid == unverified.kid }), let slot = key.slot else {
            throw SigningRefusal(.badSignature, "It is not signed by a key of a password slot.")
        }
        guard key.isActive else { throw SigningRefusal(.keyRetired) }
        do {
            return (try unverified.verified(with: realm.deviceKeys.key(key.publicJWK)), slot)
        } catch {
            throw SigningRefusal(.badSignature, "The signature is not good.")
        }
    }

    /// An evaluation of an unlock of this container, by our own signature; `nil` when its key was withdrawn.
    private func ownEvaluation(_ text: String, of container: SigningContainerRecord) async throws -> Evaluation? {
        let unverified = try UnverifiedMessage<Evaluation>(text)
        let content = unverified.content
        guard let key = try await keys.signer(unverified.kid) else { return nil }
        guard isSigned(unverified, by: key), StrictJSON.same(content.head.issuer, iss),
            content.head.audience == container.did.text, content.purpose == .unlock
        else { throw SigningRefusal(.invalidRequest, "The evaluation is not one of this server for this container.") }
        return content
    }

    /// Whether a key of ours, which an evaluation names, has signed it.
    private func isSigned(_ evaluation: UnverifiedMessage<Evaluation>, by key: ProtocolKey) -> Bool {
        if realm.evaluations.contains(evaluation.compact) { return true }
        guard (try? evaluation.verified(with: key)) != nil else { return false }
        realm.evaluations.remember(evaluation.compact)
        return true
    }
}
