import AssentCore
import AssentSigningProtocol
import AssentStore

extension SigningEnrolments {
    func complete(_ request: DeviceRequest) async throws -> String {
        let body: CompleteBody = try request.body()
        if let container = request.container { return try await repeated(body, container, request) }
        guard let enrolment = try await find(request.did), enrolment.state == .committed,
            let invite = try await invites.find(enrolment.pid)
        else { throw SigningRefusal(.enrolmentVoid) }
        let ceremony = KeyEnrolment(enrolment, user: invite.userID, named: invite.username)
        var (offer, sent, keys) = try received(body, ceremony, at: request.now)
        let container = try container(enrolment, invite: invite, sent, name: body.name, pushID: body.pushId, request)
        keys.oneTimeKeys = try codes.make(offer, for: container)
        let done = try await complete(
            container, keys, limit: settings.limits.containers, proof: request.proof, at: request.now)
        if done { return try await enrolled(container, request) }
        // The same call came twice at once, or its time is over.
        guard let known = try await devices.find(enrolment.did) else { throw SigningRefusal(.enrolmentVoid) }
        return try await repeated(body, known, request)
    }

    private func repeated(
        _ body: CompleteBody, _ container: SigningContainerRecord, _ request: DeviceRequest
    ) async throws -> String {
        guard StrictJSON.same(container.enrol, body.enrol), container.state(at: request.now).isAlive else {
            throw SigningRefusal(.enrolmentVoid)
        }
        return try await enrolled(container, request)
    }

    func renewComplete(_ request: DeviceRequest) async throws -> String {
        let body: CompleteBody = try request.body()
        let (container, renewal) = try await renewal(request)
        if let sent = renewal.sent { return try await repeated(body, container.with(sent, of: renewal), request) }
        guard renewal.state == .committed else { throw SigningRefusal(.enrolmentVoid) }
        var (offer, sent, keys) = try received(
            body, KeyEnrolment(renewal, user: container.userID, named: container.username), at: request.now)
        let endorsed = try await endorsed(
            body.enrol, body.endorsements ?? [], container, hasCode: renewal.invite != nil)
        let kept = try await codes.keys(of: container.did).map(\.label)
        keys.oneTimeKeys = try codes.make(offer, for: container).filter { !kept.contains($0.label) }
        let done = try await complete(
            renewal, sent, keys, taking: endorsed.slot, user: container.userID, proof: request.proof, at: request.now)
        if done { return try await enrolled(container.with(sent, of: renewal), request) }
        // The same call came twice at once, or its time is over.
        guard let kept = try await self.renewal(pid: renewal.pid)?.sent else { throw SigningRefusal(.enrolmentVoid) }
        return try await repeated(body, container.with(kept, of: renewal), request)
    }

    /// The keys of a device, when its key list is the answer to the offer and each key signs for itself.
    private func received(
        _ body: CompleteBody, _ ceremony: KeyEnrolment, at now: Int64
    ) throws -> (Offer, CompletedKeys, SentKeys) {
        let offer = try UnverifiedMessage<Offer>(ceremony.offer).content
        let message = try UnverifiedMessage<Enrolment>(body.enrol).verifiedByItself()
        let content = message.content
        guard ceremony.signer == nil || message.kid == ceremony.signer, StrictJSON.same(content.issuer, iss),
            content.pid == ceremony.pid, content.did == ceremony.did, StrictJSON.same(content.sub, ceremony.userID),
            content.offer == .offer(ceremony.offer), content.nonceS == ceremony.nonce
        else { throw SigningRefusal(.hashMismatch, "The keys are those of another enrolment.") }
        guard SigningHash.commitment(nonceD: content.nonceD, keys: content.keyList) == ceremony.commitment else {
            throw SigningRefusal(.commitmentChanged)
        }
        try checkKeys(message, offer: offer)
        let transcript = content.transcript(identity: offer.identity)
        let echo = SigningNonce(random: context.random)
        let expires = now + settings.keyLifetime
        let sent = CompletedKeys(
            enrol: body.enrol, transcript: transcript.hash, endorsements: body.endorsements ?? [], name: body.name,
            deviceKeyID: message.kid, deviceJWK: content.device.jwk.json.serialized(),
            transportJWK: content.transport.jwk.json.serialized(),
            sealedEcho: try sealed(Secret(bytes: echo.bytes), "echo", of: ceremony.did),
            echoHash: SigningHash(sha256: echo.bytes),
            renewAt: expires - min(30 * 86400, settings.keyLifetime / 4), expireAt: expires)
        let slots = offer.slots.filter { $0.mode == .assisted }.map(\.slot)
        return (
            offer, sent, SentKeys(rows: content.keys.map { SigningKeyRow($0) }, slots: slots, digits: transcript.digits)
        )
    }

    /// Whether the keys are those of an offer, and each signs for itself.
    private func checkKeys(_ message: SignedMessage<Enrolment>, offer: Offer) throws {
        let content = message.content
        let offered = offer.keys.filter { $0.usage != .otp }
        guard offered.count == content.keys.count else { throw SigningRefusal(.invalidRequest) }
        for (offered, key) in zip(offered, content.keys) {
            guard offered.usage == key.usage, offered.label == key.label, offered.slot == key.slot,
                offered.policy == key.policy
            else { throw SigningRefusal(.invalidRequest, "The keys are not those of the offer.") }
            guard key.keystore.isSealed == (key.slot != nil) else {
                throw SigningRefusal(.invalidRequest, "Only keys behind a password are sealed by software.")
            }
            guard settings.keystores.contains(key.keystore.kind) else {
                throw SigningRefusal(.invalidRequest, "Keys of this kind are not accepted here.")
            }
            guard let possession = key.possession else { continue }
            let proof = try UnverifiedMessage<KeyPossession>(possession).verified(with: key.jwk).content
            guard StrictJSON.same(proof.issuer, iss), proof.did == content.did, proof.nonceS == content.nonceS,
                proof.device == message.kid, proof.usage == key.usage, proof.label == key.label, proof.kid == key.kid
            else { throw SigningRefusal(.hashMismatch, "A proof of possession is for something else.") }
        }
    }

    private func container(
        _ enrolment: SigningEnrolmentRecord, invite: SigningInviteRecord, _ sent: CompletedKeys, name: String?,
        pushID: String?, _ request: DeviceRequest
    ) throws -> SigningContainerRecord {
        let model = try JSONValue.parse(enrolment.info)["model"]?.string ?? ""
        return SigningContainerRecord(
            did: enrolment.did, userID: invite.userID, username: invite.username, pid: invite.pid,
            serial: Self.serial(context.random), name: name ?? (model.isEmpty ? "Device" : model), pushID: pushID,
            commitMode: .digits, deviceKeyID: sent.deviceKeyID, deviceJWK: sent.deviceJWK,
            transportJWK: sent.transportJWK, sealedEcho: sent.sealedEcho, echoHash: sent.echoHash,
            sealedHandle: try sealed(Secret(bytes: context.random.bytes(32)), "handle", of: enrolment.did),
            offer: enrolment.offer, enrol: sent.enrol, transcript: sent.transcript, approvalsFrom: request.now,
            renewAt: sent.renewAt, expiresAt: sent.expireAt,
            voidAt: invite.expiresAt + SigningInviteRecord.completion, createdAt: request.now)
    }

    /// 12 random digits, which the help desk can ask for.
    private static func serial(_ random: any RandomSource) -> String {
        let value = random.bytes(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } % 900_000_000_000
        return String(100_000_000_000 + value)
    }

    /// What a device gets for its keys.
    private func enrolled(_ container: SigningContainerRecord, _ request: DeviceRequest) async throws -> String {
        let echo = try opened(container.sealedEcho, "echo", of: container.did).revealBytes()
        guard let echo = SigningNonce(bytes: echo) else { throw SigningRefusal(.unavailable) }
        let offer = try UnverifiedMessage<Offer>(container.offer).content
        let reply = try await keys.sign(
            Enrolled(
                head: head(request), state: .unconfirmed, serial: container.serial, name: container.name,
                expiresAt: Int(container.expiresAt), renewableFrom: Int(container.renewAt), echo: echo,
                handle: try opened(container.sealedHandle, "handle", of: container.did),
                otp: try await codes.offered(of: container, offer)))
        return try sealed(reply, for: container)
    }

    /// Verifies what old keys say of the new ones.
    ///
    /// - Returns: what the record relies on, and the `assisted` slot whose password the endorsement needed.
    /// - Throws: ``SigningRefusal`` `hash_mismatch` or `bad_signature` when something is missing, or is not good.
    func endorsed(
        _ enrol: String, _ endorsements: [String], _ container: SigningContainerRecord, hasCode: Bool
    ) async throws -> (grounds: [RecordGround], slot: PasswordSlot?) {
        let keys = try await devices.keys(of: container.did).filter(\.isActive)
        var endorsers: [SigningKeyRow] = []
        for compact in endorsements {
            let message = try UnverifiedMessage<Endorsement>(compact)
            guard let key = keys.first(where: { $0.kid == message.kid }),
                (try? message.verified(with: ProtocolKey(JSONValue.parse(key.publicJWK)))) != nil
            else { throw SigningRefusal(.badSignature) }
            let content = message.content
            guard StrictJSON.same(content.issuer, iss), content.did == container.did,
                content.enrol == .enrolment(enrol)
            else { throw SigningRefusal(.hashMismatch, "An endorsement is for other keys.") }
            endorsers.append(key)
        }
        let signing = endorsers.filter(\.usage.needsPossession)
        guard endorsers.count(where: { $0.usage == .device }) == 1, signing.count <= 1,
            endorsers.count == 1 + signing.count
        else { throw SigningRefusal(.invalidRequest, "The old device key must endorse the new keys, once.") }
        if !hasCode {
            let needsPassword = try await requireSigner(of: container)
            guard !keys.contains(where: \.usage.needsPossession) || !signing.isEmpty else {
                throw SigningRefusal(.invalidRequest, "An old sign or auth key must endorse the new keys.")
            }
            // A key that needs no password does not vouch for those that do.
            guard !needsPassword || signing.contains(where: { $0.slot != nil }) else {
                throw SigningRefusal(.invalidRequest, "An old key behind the password must endorse the new keys.")
            }
        }
        let slot = try signing.first?.slot.flatMap { try assisted($0, of: container)?.slot }
        return ([.device] + (signing.isEmpty ? (hasCode ? [.reset] : []) : [.sign]), slot)
    }
}

extension SigningContainerRecord {
    /// The container as it is once new keys count, as far as their record and their device have to know it before.
    func with(_ sent: CompletedKeys, of renewal: SigningRenewalRecord) -> Self {
        var renewed = self
        (renewed.pid, renewed.commitMode, renewed.offer) = (renewal.pid, renewal.commitMode, renewal.offer)
        (renewed.enrol, renewed.transcript, renewed.name) = (sent.enrol, sent.transcript, sent.name ?? name)
        (renewed.transportJWK, renewed.sealedEcho) = (sent.transportJWK, sent.sealedEcho)
        (renewed.renewAt, renewed.expiresAt) = (sent.renewAt, sent.expireAt)
        return renewed
    }
}

// MARK: the statements together

extension SigningEnrolments {
    private static let keyIsKnown = Obstacle.refused(.invalidRequest, "A key is known already.")

    /// COMMITTED → COMPLETED: the container with its keys, under a number that the user has free.
    ///
    /// - Returns: false when the enrolment is not committed any more, or its invite is over: read again.
    /// - Throws: ``SigningRefusal``: `device_limit`; `invalid_request` when a key is known already; `replay`.
    func complete(
        _ new: SigningContainerRecord, _ keys: SentKeys, limit: Int, proof: SpentProof?, at now: Int64
    ) async throws -> Bool {
        let (did, user, pid) = (new.did, new.userID, new.pid)
        var statements: [GuardedStatement<Obstacle>] = [
            .one(ContainerSQL.hold(user: user), else: .changed),
            .one(EnrolmentSQL.useInvite(pid: pid, did: did, digits: keys.digits, at: now), else: .changed),
            .one(EnrolmentSQL.complete(did: did), else: .changed),
            .any(ContainerSQL.voidOverdue(user: user, at: now)),
        ]
        statements += ContainerSQL.clearVoid(user: user).map { .any($0) }
        statements.append(
            .one(ContainerSQL.insert(new, issuer: iss, limit: limit, at: now), else: .refused(.deviceLimit)))
        statements += try inserting(keys, of: did, at: now)
        statements += keys.slots.map { slot in
            .one(
                SlotSQL.adoptSlots(of: did, pid: pid, when: "o.slot = \(slot)", at: now),
                else: .refused(.enrolmentVoid))
        }
        statements.append(.any(SlotSQL.forgetOfferedSlots(of: did, pid: pid)))
        statements += store.spending(proof, at: now)
        statements.append(
            store.note(.signingEnrol, user: user, did: did, ["pid": pid.text, "step": "complete"]))
        do {
            return try await store.changes(statements)
        } catch let refusal as SigningRefusal where refusal.code == .deviceLimit {
            try await store.writeRefusal(.signingEnrol, .deviceLimit, user: user, did: did)
            throw refusal
        }
    }

    /// COMMITTED → COMPLETED: the new keys are known, and do not count yet. Where an `assisted` slot's password opened
    /// the key that endorses, the newest evaluation of the slot is spent for this (`taking`).
    ///
    /// - Returns: false when the renewal has ended, or another call was faster: read again.
    /// - Throws: ``SigningRefusal``: `unlock_required`; `invalid_request` when a key is known already; `replay`.
    func complete(
        _ renewal: SigningRenewalRecord, _ sent: CompletedKeys, _ keys: SentKeys, taking: PasswordSlot?, user: String,
        proof: SpentProof?, at now: Int64
    ) async throws -> Bool {
        let (did, pid) = (renewal.did, renewal.pid)
        let sequence = try await sequence(of: did) + 1
        var statements: [GuardedStatement<Obstacle>] = []
        if let invite = renewal.invite {
            statements.append(
                .one(EnrolmentSQL.useInvite(pid: invite, did: did, digits: keys.digits, at: now), else: .changed))
        }
        statements.append(.one(RenewalSQL.complete(pid, sent, at: now), else: .changed))
        if let taking {
            statements.append(
                .one(SlotSQL.take(renewal: pid, taking, of: did, at: now), else: .refused(.unlockRequired)))
        }
        statements += try inserting(keys, as: .pending, of: did, sequence: sequence, at: now)
        statements += store.spending(proof, at: now)
        statements.append(
            store.note(.signingContainer, user: user, did: did, ["step": "renewal complete", "pid": pid.text]))
        return try await store.changes(statements)
    }

    /// The statements that keep the keys of the record with this number.
    private func inserting(
        _ keys: SentKeys, as state: SigningKeyState = .active, of did: SigningID, sequence: Int = 0, at now: Int64
    ) throws -> [GuardedStatement<Obstacle>] {
        var statements = keys.rows.enumerated().map { index, key in
            ContainerSQL.insert(key, as: state, of: did, position: sequence * 16 + index, at: now)
        }
        statements += try keys.oneTimeKeys.enumerated().map { position, key in
            try key.inserting(of: did, position: position, context, at: now)
        }
        return statements.map { .one($0, else: Self.keyIsKnown) }
    }
}
