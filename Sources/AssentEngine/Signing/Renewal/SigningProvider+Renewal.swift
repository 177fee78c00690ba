import AssentCore
import AssentSigningProtocol

extension SigningProvider {
    /// Verifies who proves a call: the device key, or from `complete` of a renewal on for `confirm` and `status` the
    /// new one.
    ///
    /// - Returns: the renewal whose new device key has signed.
    /// - Throws: ``SigningRefusal``: `bad_proof`; `key_retired` for a device key that a renewal has replaced.
    func prover(
        _ proof: UnverifiedMessage<CallProof>, of party: DeviceRequest.Party, _ call: DeviceCall
    ) async throws -> SigningRenewalRecord? {
        if (try? proof.verified(with: try party.deviceKey)) != nil { return nil }
        guard case .container(let container) = party else { throw SigningRefusal(.badProof) }
        let kid = proof.kid.text
        if call == .status || call == .renewConfirm,
            let renewal = try await store.renewal(of: container.did, at: store.now),
            let sent = renewal.completion, sent.deviceKeyID == kid,
            (try? proof.verified(with: ProtocolKey(JSONValue.parse(sent.deviceJWK)))) != nil
        {
            return renewal
        }
        if let retired = try await store.isRetiredDeviceKey(kid, of: container.did),
            (try? proof.verified(with: ProtocolKey(JSONValue.parse(retired.publicJWK)))) != nil
        {
            throw SigningRefusal(.keyRetired)
        }
        throw SigningRefusal(.badProof)
    }

    // MARK: start

    func renewStart(_ request: DeviceRequest, address: String) async throws -> String {
        let body = try RenewStartBody(plaintext: request.plaintext)
        guard let container = request.container else { throw SigningRefusal(.enrolmentVoid) }
        let invite = try await invite(body.code, for: container, address: address, at: request.now)
        if let refusal = Self.refusal(renewing: container, hasCode: invite != nil, at: request.now) { throw refusal }
        if invite == nil { try await requireSigner(of: container) }
        for _ in 0..<3 {
            if let offer = try await renewalOffer(container, invite: invite, request) { return offer }
        }
        throw SigningRefusal(invite == nil ? .unavailable : .invalidCode)
    }

    private func invite(
        _ code: InviteCode?, for container: SigningContainerRecord, address: String, at now: Int64
    ) async throws -> SigningInviteRecord? {
        guard let code else { return nil }
        guard let found = try await store.invite(codeHash: lookup(code), renewing: container.did, at: now) else {
            throw try await countWrongCode(address)
        }
        return found
    }

    /// Why a container does not get new keys now.
    private static func refusal(
        renewing container: SigningContainerRecord, hasCode: Bool, at now: Int64
    ) -> SigningRefusal? {
        switch container.state(at: now) {
        case .active: break
        case .suspect: if !hasCode { return SigningRefusal(.containerSuspect) }
        default: return container.refusal(approving: false, at: now)
        }
        if container.expiresAt <= now { return SigningRefusal(.keyExpired) }
        return hasCode || container.renewAt <= now ? nil : SigningRefusal(.freshAuthenticationRequired)
    }

    /// Refuses a renewal that only keys without a password could vouch for, since those behind one were destroyed:
    /// whoever has the device would get new ones behind a password of their own. What the container was offered
    /// decides, not the keys that are left.
    ///
    /// - Returns: whether a key behind a password has to vouch.
    @discardableResult
    private func requireSigner(of container: SigningContainerRecord) async throws -> Bool {
        let offered = try UnverifiedMessage<Offer>(container.offer).content.keys.filter(\.usage.needsPossession)
        let left = try await store.keys(did: container.did).filter { $0.isActive && $0.approves }
        let slots = Set(offered.compactMap(\.slot?.rawValue))
        guard offered.isEmpty || !left.isEmpty, slots.isSubset(of: left.compactMap(\.slot)) else {
            throw SigningRefusal(.freshAuthenticationRequired)
        }
        return !slots.isEmpty
    }

    /// The offer for a renewal; `nil` when another call was faster, or the code has a commitment already.
    private func renewalOffer(
        _ container: SigningContainerRecord, invite: SigningInviteRecord?, _ request: DeviceRequest
    ) async throws -> String? {
        let known = try await store.renewal(of: container.did, at: request.now)
        if let invite, known?.invite == invite.pid, known?.state != .started { return nil }
        let again = known?.state == .started && known?.invite == invite?.pid ? known : nil
        guard let pid = SigningID(text: invite?.pid ?? again?.pid ?? SigningID(random: context.random).text),
            let identity = try await keys.current().identity, let device = KeyThumbprint(text: container.deviceKeyID)
        else { throw SigningRefusal(.unavailable) }
        let expires = invite?.expiresAt ?? request.now + SigningRenewalRecord.lifetime
        let mode: CommitMode = invite == nil ? .exchange : .digits
        let (slots, made) = try await plannedSlots(of: container, renewal: pid.text)
        let offer = try await keys.sign(
            Offer(
                head: SigningReplyHead(
                    issuer: iss, audience: device.text, issuedAt: Int(request.now), request: request.hash),
                pid: pid, did: request.did, identity: identity.thumbprint, name: settings.name, commit: mode,
                expiresAt: Int(expires), keys: settings.offeredKeys, slots: slots,
                policies: settings.offeredPolicies))
        let renewal = SigningRenewalRecord(
            pid: pid.text, did: container.did, invite: invite?.pid, commitMode: mode, offer: offer, expiresAt: expires)
        let done = try await store.start(
            renewal, slots: made, isAgain: again != nil, user: container.userID, proof: request.proof,
            at: request.now)
        return done ? offer : nil
    }

    /// The slots of a renewal's offer, one generation after the container's, and those keys of them that are new: a
    /// device that begins again keeps its own.
    private func plannedSlots(of container: SigningContainerRecord, renewal pid: String) async throws
        -> ([OfferedSlot], made: [SigningOfferedSlot])
    {
        let plan = settings.plannedSlots
        guard !plan.isEmpty else { return ([], []) }
        let did = container.did
        let known = try await store.offeredSlots(did: did, pid: pid)
        let rows = try await store.slots(did: did)
        let before = try UnverifiedMessage<Offer>(container.offer).content.slots
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
                let new = try slotKey(slot, did: did, generation: generation)
                made.append(new)
                key = new
            }
            slots.append(
                OfferedSlot(
                    slot: slot, mode: mode, generation: Int(key?.generation ?? generation), publicKey: key?.publicKey))
        }
        return (slots, made)
    }

    // MARK: evaluate

    /// For a password of new keys: there is nothing sealed yet that it could help to open.
    func renewEvaluate(_ request: DeviceRequest) async throws -> String {
        let body = try EvaluateBody(plaintext: request.plaintext)
        let (container, renewal) = try await renewal(request)
        return try await evaluate(
            body, of: SlotEvaluation(renewal, user: container.userID, slot: body.slot), request)
    }

    // MARK: commit

    func renewCommit(_ request: DeviceRequest) async throws -> String {
        let body = try CommitBody(plaintext: request.plaintext)
        let (container, renewal) = try await renewal(request)
        let stored = try await store.commit(
            renewal, commitment: body.commitment.text, nonce: SigningNonce(random: context.random).text,
            user: container.userID, proof: request.proof, at: request.now)
        guard let nonce = SigningNonce(text: stored) else { throw SigningRefusal(.unavailable) }
        return try await keys.sign(
            NonceReply(head: head(request), nonceS: nonce, sub: container.userID, user: container.username))
    }

    private func renewal(_ request: DeviceRequest) async throws -> (SigningContainerRecord, SigningRenewalRecord) {
        guard let container = request.container,
            let renewal = try await store.renewal(of: container.did, at: request.now)
        else { throw SigningRefusal(.enrolmentVoid) }
        return (container, renewal)
    }

    // MARK: complete

    func renewComplete(_ request: DeviceRequest) async throws -> String {
        let body = try CompleteBody(plaintext: request.plaintext)
        let (container, renewal) = try await renewal(request)
        if renewal.completion != nil { return try await repeated(body, renewal, container, request) }
        guard renewal.state == .committed else { throw SigningRefusal(.enrolmentVoid) }
        let offer = try UnverifiedMessage<Offer>(renewal.offer).content
        let message = try UnverifiedMessage<Enrolment>(body.enrol).verifiedByItself()
        try check(message, of: renewal, sub: container.userID, offer: offer)
        let endorsed = try await endorsed(body, container, hasCode: renewal.invite != nil)
        let transcript = message.content.transcript(identity: offer.identity)
        let sent = try completion(body, message, transcript, request)
        let rows = message.content.keys.map { key in
            SigningKeyRow(
                kid: key.kid.text, usage: key.usage.rawValue, label: key.label, policy: key.policy,
                slot: key.slot?.rawValue, keystore: key.keystore.rawValue, publicJWK: key.jwk.json.serialized())
        }
        let kept = try await store.oneTimeKeys(did: container.did).map(\.label)
        let added = try makeOneTimeKeys(offer, for: container).filter { !kept.contains($0.label) }
        let done = try await store.complete(
            renewal, sent, keys: rows, seq: try await store.sequence(of: container.did) + 1, oneTimeKeys: added,
            taking: endorsed.slot,
            digits: renewal.invite == nil ? nil : transcript.digits, user: container.userID, proof: request.proof,
            at: request.now)
        guard let known = try await store.renewal(pid: renewal.pid) else { throw SigningRefusal(.enrolmentVoid) }
        // The same call came twice at once, or its time is over.
        if !done { return try await repeated(body, known, container, request) }
        return try await renewed(known, container, request)
    }

    private func repeated(
        _ body: CompleteBody, _ renewal: SigningRenewalRecord, _ container: SigningContainerRecord,
        _ request: DeviceRequest
    ) async throws -> String {
        guard let sent = renewal.completion, StrictJSON.same(sent.enrol, body.enrol) else {
            throw SigningRefusal(.enrolmentVoid)
        }
        return try await renewed(renewal, container, request)
    }

    private func check(
        _ message: SignedMessage<Enrolment>, of renewal: SigningRenewalRecord, sub: String, offer: Offer
    ) throws {
        let content = message.content
        guard StrictJSON.same(content.issuer, iss), content.pid.text == renewal.pid, content.did.text == renewal.did,
            StrictJSON.same(content.sub, sub), content.offer == .offer(renewal.offer),
            content.nonceS.text == renewal.nonce
        else { throw SigningRefusal(.hashMismatch, "The keys are those of another enrolment.") }
        guard SigningHash.commitment(nonceD: content.nonceD, keys: content.keyList).text == renewal.commitment else {
            throw SigningRefusal(.commitmentChanged)
        }
        try checkKeys(message, offer: offer)
    }

    private func completion(
        _ body: CompleteBody, _ message: SignedMessage<Enrolment>, _ transcript: EnrolmentTranscript,
        _ request: DeviceRequest
    ) throws -> SigningRenewalRecord.Completion {
        let echo = SigningNonce(random: context.random)
        let expires = request.now + settings.keyLifetime
        return SigningRenewalRecord.Completion(
            enrol: body.enrol, transcript: transcript.hash.text, endorsements: body.endorsements ?? [],
            name: body.name, deviceKeyID: message.kid.text, deviceJWK: message.content.device.jwk.json.serialized(),
            transportJWK: message.content.transport.jwk.json.serialized(),
            sealedEcho: try context.masterKey.seal(
                Secret(bytes: echo.bytes), for: .signingContainer, context: "echo \(request.did.text)"),
            echoHash: SigningHash(sha256: echo.bytes).text,
            renewAt: expires - min(30 * 86400, settings.keyLifetime / 4), keysExpireAt: expires)
    }

    /// Verifies what old keys say of the new ones.
    ///
    /// - Returns: what the record relies on, and the `assisted` slot whose password the endorsement needed.
    /// - Throws: ``SigningRefusal`` `hash_mismatch` or `bad_signature` when something is missing, or is not good.
    private func endorsed(
        _ body: CompleteBody, _ container: SigningContainerRecord, hasCode: Bool
    ) async throws -> (grounds: [RecordGround], slot: PasswordSlot?) {
        let keys = try await store.keys(did: container.did).filter(\.isActive)
        var endorsers: [SigningKeyRow] = []
        for compact in body.endorsements ?? [] {
            let message = try UnverifiedMessage<Endorsement>(compact)
            guard let key = keys.first(where: { $0.kid == message.kid.text }),
                (try? message.verified(with: ProtocolKey(JSONValue.parse(key.publicJWK)))) != nil
            else { throw SigningRefusal(.badSignature) }
            let content = message.content
            guard StrictJSON.same(content.issuer, iss), content.did.text == container.did,
                content.enrol == .enrolment(body.enrol)
            else { throw SigningRefusal(.hashMismatch, "An endorsement is for other keys.") }
            endorsers.append(key)
        }
        let signing = endorsers.filter(\.approves)
        guard endorsers.count(where: { $0.usage == "device" }) == 1, signing.count <= 1,
            endorsers.count == 1 + signing.count
        else { throw SigningRefusal(.invalidRequest, "The old device key must endorse the new keys, once.") }
        if !hasCode {
            let needsPassword = try await requireSigner(of: container)
            guard !keys.contains(where: \.approves) || !signing.isEmpty else {
                throw SigningRefusal(.invalidRequest, "An old sign or auth key must endorse the new keys.")
            }
            // A key that needs no password does not vouch for those that do.
            guard !needsPassword || signing.contains(where: { $0.slot != nil }) else {
                throw SigningRefusal(.invalidRequest, "An old key behind the password must endorse the new keys.")
            }
        }
        let slot = try signing.first?.slot.flatMap(PasswordSlot.init).flatMap { try container.assisted($0)?.slot }
        return ([.device] + (signing.isEmpty ? (hasCode ? [.reset] : []) : [.sign]), slot)
    }

    private func renewed(
        _ renewal: SigningRenewalRecord, _ container: SigningContainerRecord, _ request: DeviceRequest
    ) async throws -> String {
        guard let sent = renewal.completion else { throw SigningRefusal(.enrolmentVoid) }
        let echo = try context.masterKey.open(
            sent.sealedEcho, for: .signingContainer, context: "echo \(container.did)"
        ).revealBytes()
        guard let echo = SigningNonce(bytes: echo) else { throw SigningRefusal(.unavailable) }
        let reply = try await keys.sign(
            Enrolled(
                head: head(request), state: .unconfirmed, serial: container.serial, name: sent.name ?? container.name,
                expiresAt: Int(sent.keysExpireAt), renewableFrom: Int(sent.renewAt), echo: echo,
                handle: try handleKey(container),
                otp: try await offeredOneTimeKeys(of: container, UnverifiedMessage<Offer>(renewal.offer).content)))
        return try sealed(reply, to: sent.transportJWK, did: container.did)
    }

    // MARK: confirm

    func renewConfirm(_ request: DeviceRequest) async throws -> String {
        let body = try ConfirmBody(plaintext: request.plaintext)
        guard let container = request.container else { throw SigningRefusal(.enrolmentVoid) }
        let echoHash = SigningHash(sha256: body.echo.bytes).text
        guard let renewal = request.renewal else {
            // Proved by the container's own key: this is a repetition, or nothing.
            guard container.echoHash == echoHash else { throw SigningRefusal(.badProof) }
            return try await status(request)
        }
        let activation = try await activation(container, renewal, at: request.now)
        let done = try await store.confirm(
            renewal, echoHash: echoHash, of: container, seq: try await store.sequence(of: container.did) + 1,
            activation, at: request.now)
        guard done else { throw SigningRefusal(.enrolmentVoid) }
        if renewal.invite != nil { try await tell(.reset, container.did, ifBy: activation) }
        return try await status(request)
    }

    /// The record that makes new keys count, signed beforehand.
    func activation(
        _ container: SigningContainerRecord, _ renewal: SigningRenewalRecord, at now: Int64
    ) async throws -> SigningActivation {
        guard let sent = renewal.completion, let did = SigningID(text: container.did),
            let pid = SigningID(text: renewal.pid), let transcript = SigningHash(text: sent.transcript),
            let previous = container.record.flatMap({ SigningHash(text: $0) })
        else { throw SigningRefusal(.unavailable) }
        let offer = try UnverifiedMessage<Offer>(renewal.offer).content
        let enrol = try UnverifiedMessage<Enrolment>(sent.enrol).content
        var grounds = try await endorsed(
            CompleteBody(enrol: sent.enrol, endorsements: sent.endorsements), container,
            hasCode: renewal.invite != nil
        ).grounds
        if let invite = renewal.invite {
            let maker = try await store.invite(pid: invite)?.maker ?? .user
            grounds.insert(maker == .administrator ? .administrator : .invite, at: 0)
        }
        let approvals = renewal.invite == nil ? container.approvalsFrom : now + settings.approvalDelay
        let record = try await keys.sign(
            EnrolmentRecord(
                issuer: iss, did: did, issuedAt: Int(now), pid: pid, sub: container.userID,
                sequence: try await store.sequence(of: container.did) + 1, previous: previous,
                user: container.username, identity: offer.identity, enrol: .enrolment(sent.enrol),
                transcript: transcript, commit: renewal.commitMode, by: grounds, approvalsFrom: Int(approvals),
                keys: enrol.keys.map(\.kid)))
        return SigningActivation(record: record, hash: SigningHash.record(record).text, approvalsFrom: approvals)
    }
}
