import AssentCore
import AssentSigningProtocol
import AssentStore

extension SigningProvider {
    func start(_ body: [UInt8], address: String) async throws -> String {
        let now = store.now
        let sender = try Self.sender(of: body)
        let message = try StartBody(plaintext: try await opened(body, sender: sender)).start
        let start: SignedMessage<Start>
        do {
            start = try UnverifiedMessage<Start>(message).verifiedByItself()
        } catch {
            throw SigningRefusal(error.code == .versionUnsupported ? .versionUnsupported : .badProof)
        }
        guard StrictJSON.same(start.content.issuer, iss), start.kid.text == sender else {
            throw SigningRefusal(.badProof)
        }
        guard nonces.accepts(start.content.nonce) else { throw SigningRefusal(.useNonce) }
        guard settings.neededModes.isSubset(of: start.content.modes) else {
            throw SigningRefusal(.ruleUnsupported, "The device cannot protect its keys as the server asks for.")
        }
        for _ in 0..<3 {
            guard let invite = try await store.invite(codeHash: lookup(start.content.code), at: now) else { break }
            if let offer = try await offer(start, invite: invite, at: now) { return offer }
        }
        throw try await countWrongCode(address)
    }

    /// The sender that an envelope names: the message inside must be its own.
    private static func sender(of body: [UInt8]) throws -> String {
        guard let text = String(validating: body, as: UTF8.self), let sender = try SealedEnvelope(text).claimedSender,
            KeyThumbprint(text: sender) != nil
        else { throw SigningRefusal(.invalidRequest) }
        return sender
    }

    func lookup(_ code: InviteCode) -> String {
        Base64URL.encode(code.lookup(key: context.masterKey.derivedSecret(for: .signingCode), issuer: iss))
    }

    /// The offer for a device key; `nil` when somebody else was faster, or the device has committed already.
    private func offer(_ start: SignedMessage<Start>, invite: SigningInviteRecord, at now: Int64) async throws
        -> String?
    {
        let hash = SigningHash.request(start.compact)
        let known = try await store.enrolment(pid: invite.pid, deviceKeyID: start.kid.text)
        if let known, known.requestHash == hash.text, known.state == .started { return known.offer }
        guard known == nil || known?.state == .started, let pid = SigningID(text: invite.pid),
            let identity = try await keys.current().identity
        else { return nil }
        let did = known.flatMap { SigningID(text: $0.did) } ?? SigningID(random: context.random)
        let (slots, made) = try await plannedSlots(did: did.text, pid: invite.pid)
        let offer = try await keys.sign(
            Offer(
                head: SigningReplyHead(
                    issuer: iss, audience: start.kid.text, issuedAt: Int(now), request: hash),
                pid: pid, did: did, identity: identity.thumbprint, name: settings.name, commit: .digits,
                expiresAt: Int(invite.expiresAt), keys: settings.offeredKeys, slots: slots,
                policies: settings.offeredPolicies))
        let info = JSONObject(
            start.content.info.sorted { $0.key < $1.key }.map { .init(name: $0.key, value: .string($0.value)) })
        let enrolment = SigningEnrolmentRecord(
            did: did.text, pid: invite.pid, deviceKeyID: start.kid.text,
            deviceJWK: start.content.jwk.json.serialized(), requestHash: hash.text, offer: offer,
            info: JSONValue.object(info).serialized(), expiresAt: invite.expiresAt)
        let done = try await store.start(
            enrolment, slots: made, user: invite.userID, isAgain: known != nil, at: now)
        return done ? offer : nil
    }

    /// The slots of an offer, and those keys of them that are new: a device that begins again keeps its own.
    private func plannedSlots(did: String, pid: String) async throws -> ([OfferedSlot], made: [SigningOfferedSlot]) {
        let plan = settings.plannedSlots
        let isAssisted = plan.contains { $0.mode == .assisted }
        let known = isAssisted ? try await store.offeredSlots(did: did, pid: pid) : []
        var (slots, made): ([OfferedSlot], [SigningOfferedSlot]) = ([], [])
        for (slot, mode) in plan {
            guard mode == .assisted else {
                slots.append(OfferedSlot(slot: slot, mode: mode, generation: 0))
                continue
            }
            var key = known.first { $0.slot == slot }
            if key == nil {
                let new = try slotKey(slot, did: did, generation: 0)
                made.append(new)
                key = new
            }
            slots.append(OfferedSlot(slot: slot, mode: mode, generation: 0, publicKey: key?.publicKey))
        }
        return (slots, made)
    }

    func commit(_ request: DeviceRequest) async throws -> String {
        let body = try CommitBody(plaintext: request.plaintext)
        guard let enrolment = try await store.enrolment(did: request.did.text),
            let invite = try await store.invite(pid: enrolment.pid)
        else { throw SigningRefusal(.enrolmentVoid) }
        let stored = try await store.commit(
            enrolment, commitment: body.commitment.text, nonce: SigningNonce(random: context.random).text,
            user: invite.userID, proof: request.proof, at: request.now)
        guard let nonce = SigningNonce(text: stored) else { throw SigningRefusal(.unavailable) }
        return try await keys.sign(
            NonceReply(head: head(request), nonceS: nonce, sub: invite.userID, user: invite.username))
    }

    func complete(_ request: DeviceRequest) async throws -> String {
        let body = try CompleteBody(plaintext: request.plaintext)
        if let container = request.container { return try await repeated(body, container, request) }
        guard let enrolment = try await store.enrolment(did: request.did.text), enrolment.state == .committed,
            let invite = try await store.invite(pid: enrolment.pid)
        else { throw SigningRefusal(.enrolmentVoid) }
        let offer = try UnverifiedMessage<Offer>(enrolment.offer).content
        let message = try UnverifiedMessage<Enrolment>(body.enrol).verifiedByItself()
        try check(message, of: enrolment, invite: invite, offer: offer)
        let transcript = message.content.transcript(identity: offer.identity)
        let container = try container(
            enrolment, invite: invite, body: body, message: message, transcript: transcript, at: request.now)
        let rows = message.content.keys.map { key in
            SigningKeyRow(
                kid: key.kid.text, usage: key.usage.rawValue, label: key.label, policy: key.policy,
                slot: key.slot?.rawValue, keystore: key.keystore.rawValue, publicJWK: key.jwk.json.serialized())
        }
        let done = try await store.complete(
            container, keys: rows, oneTimeKeys: try makeOneTimeKeys(offer, for: container),
            slots: offer.slots.filter { $0.mode == .assisted }.map(\.slot),
            digits: transcript.digits, limit: settings.limits.containers,
            proof: request.proof, at: request.now)
        if done { return try await enrolled(container, request) }
        // The same call came twice at once, or its time is over.
        guard let known = try await store.container(did: enrolment.did) else { throw SigningRefusal(.enrolmentVoid) }
        return try await repeated(body, known, request)
    }

    private func repeated(_ body: CompleteBody, _ container: SigningContainerRecord, _ request: DeviceRequest)
        async throws
        -> String
    {
        guard StrictJSON.same(container.enrol, body.enrol), container.state(at: request.now).isAlive else {
            throw SigningRefusal(.enrolmentVoid)
        }
        return try await enrolled(container, request)
    }

    /// Whether a key list is the answer to the offer, and each key signs for itself.
    private func check(
        _ message: SignedMessage<Enrolment>, of enrolment: SigningEnrolmentRecord, invite: SigningInviteRecord,
        offer: Offer
    ) throws {
        let content = message.content
        guard message.kid.text == enrolment.deviceKeyID, StrictJSON.same(content.issuer, iss),
            content.pid.text == enrolment.pid, content.did.text == enrolment.did,
            StrictJSON.same(content.sub, invite.userID), content.offer == .offer(enrolment.offer),
            content.nonceS.text == enrolment.nonce
        else { throw SigningRefusal(.hashMismatch, "The keys are those of another enrolment.") }
        guard SigningHash.commitment(nonceD: content.nonceD, keys: content.keyList).text == enrolment.commitment else {
            throw SigningRefusal(.commitmentChanged)
        }
        try checkKeys(message, offer: offer)
    }

    /// Whether the keys are those of an offer, and each signs for itself.
    func checkKeys(_ message: SignedMessage<Enrolment>, offer: Offer) throws {
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
        _ enrolment: SigningEnrolmentRecord, invite: SigningInviteRecord, body: CompleteBody,
        message: SignedMessage<Enrolment>, transcript: EnrolmentTranscript, at now: Int64
    ) throws -> SigningContainerRecord {
        let echo = SigningNonce(random: context.random)
        let did = enrolment.did
        let info = try JSONValue.parse(enrolment.info)
        let model = info["model"]?.string ?? ""
        return SigningContainerRecord(
            did: did, userID: invite.userID, username: invite.username, pid: invite.pid,
            serial: Self.serial(context.random), name: body.name ?? (model.isEmpty ? "Device" : model),
            pushID: body.pushId, commitMode: .digits, deviceKeyID: message.kid.text,
            deviceJWK: message.content.device.jwk.json.serialized(),
            transportJWK: message.content.transport.jwk.json.serialized(),
            sealedEcho: try context.masterKey.seal(
                Secret(bytes: echo.bytes), for: .signingContainer, context: "echo \(did)"),
            echoHash: Self.hash(echo),
            sealedHandle: try context.masterKey.seal(
                Secret(bytes: context.random.bytes(32)), for: .signingContainer, context: "handle \(did)"),
            offer: enrolment.offer, enrol: body.enrol, transcript: transcript.hash.text,
            renewAt: now + settings.keyLifetime - min(30 * 86400, settings.keyLifetime / 4),
            expiresAt: now + settings.keyLifetime, voidAt: invite.expiresAt + SigningInviteRecord.completion,
            createdAt: now)
    }

    /// 12 random digits, which the help desk can ask for.
    private static func serial(_ random: any RandomSource) -> String {
        let value = random.bytes(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } % 900_000_000_000
        return String(100_000_000_000 + value)
    }

    private static func hash(_ echo: SigningNonce) -> String { SigningHash(sha256: echo.bytes).text }

    private func enrolled(_ container: SigningContainerRecord, _ request: DeviceRequest) async throws -> String {
        let did = container.did
        let echo = try context.masterKey.open(
            container.sealedEcho, for: .signingContainer, context: "echo \(did)"
        ).revealBytes()
        guard let echo = SigningNonce(bytes: echo) else { throw SigningRefusal(.unavailable) }
        let reply = try await keys.sign(
            Enrolled(
                head: head(request), state: .unconfirmed, serial: container.serial, name: container.name,
                expiresAt: Int(container.expiresAt), renewableFrom: Int(container.renewAt), echo: echo,
                handle: try handleKey(container),
                otp: try await offeredOneTimeKeys(
                    of: container, UnverifiedMessage<Offer>(container.offer).content)))
        return try sealed(reply, for: container)
    }

    func handleKey(_ container: SigningContainerRecord) throws -> Secret {
        try context.masterKey.open(
            container.sealedHandle, for: .signingContainer, context: "handle \(container.did)")
    }

    func confirm(_ request: DeviceRequest) async throws -> String {
        let body = try ConfirmBody(plaintext: request.plaintext)
        guard let container = request.container else { throw SigningRefusal(.enrolmentVoid) }
        let activation = try await activation(container, at: request.now)
        let done = try await store.confirm(
            container, echoHash: Self.hash(body.echo), activation: activation, at: request.now)
        guard done else { throw SigningRefusal(.enrolmentVoid) }
        try await tell(.enrolled, container.did, ifBy: activation)
        return try await status(request)
    }

    /// The record that makes a container active, signed beforehand.
    func activation(_ container: SigningContainerRecord, at now: Int64) async throws -> SigningActivation {
        let offer = try UnverifiedMessage<Offer>(container.offer).content
        let maker = try await store.invite(pid: container.pid)?.maker ?? .user
        guard let did = SigningID(text: container.did), let pid = SigningID(text: container.pid),
            let transcript = SigningHash(text: container.transcript)
        else { throw SigningRefusal(.unavailable) }
        let approvals = now + settings.approvalDelay
        let record = try await keys.sign(
            EnrolmentRecord(
                issuer: iss, did: did, issuedAt: Int(now), pid: pid, sub: container.userID, sequence: 0,
                user: container.username, identity: offer.identity, enrol: .enrolment(container.enrol),
                transcript: transcript, commit: container.commitMode,
                by: [maker == .administrator ? .administrator : .invite], approvalsFrom: Int(approvals),
                keys: try await store.keys(did: container.did).compactMap { KeyThumbprint(text: $0.kid) }))
        return SigningActivation(record: record, hash: SigningHash.record(record).text, approvalsFrom: approvals)
    }
}
