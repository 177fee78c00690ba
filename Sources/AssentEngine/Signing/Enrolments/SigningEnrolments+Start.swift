import AssentCore
import AssentSigningProtocol
import AssentStore

extension SigningEnrolments {
    /// The beginning with an invite: the only call without a container.
    func start(_ body: [UInt8], address: String) async throws -> String {
        let now = now
        let sender = try Self.sender(of: body)
        let message = try StartBody(plaintext: try await door.opened(body, sender: sender)).start
        let start: SignedMessage<Start>
        do {
            start = try UnverifiedMessage<Start>(message).verifiedByItself()
        } catch {
            throw SigningRefusal(error.code == .versionUnsupported ? .versionUnsupported : .badProof)
        }
        guard StrictJSON.same(start.content.issuer, iss), start.kid.text == sender else {
            throw SigningRefusal(.badProof)
        }
        guard door.nonces.accepts(start.content.nonce) else { throw SigningRefusal(.useNonce) }
        guard settings.neededModes.isSubset(of: start.content.modes) else {
            throw SigningRefusal(.ruleUnsupported, "The device cannot protect its keys as the server asks for.")
        }
        for _ in 0..<3 {
            guard let invite = try await invites.open(start.content.code, at: now) else { break }
            if let offer = try await offer(start, invite: invite, at: now) { return offer }
        }
        throw try await door.countWrongCode(address)
    }

    /// The sender that an envelope names: the message inside must be its own.
    private static func sender(of body: [UInt8]) throws -> String {
        guard let text = String(validating: body, as: UTF8.self), let sender = try SealedEnvelope(text).claimedSender,
            KeyThumbprint(text: sender) != nil
        else { throw SigningRefusal(.invalidRequest) }
        return sender
    }

    /// The offer for a device key; `nil` when somebody else was faster, or the device has committed already.
    private func offer(_ start: SignedMessage<Start>, invite: SigningInviteRecord, at now: Int64) async throws
        -> String?
    {
        let hash = SigningHash.request(start.compact)
        let known = try await find(pid: invite.pid, deviceKeyID: start.kid)
        if let known, known.requestHash == hash, known.state == .started { return known.offer }
        guard known == nil || known?.state == .started else { return nil }
        let did = known?.did ?? SigningID(random: context.random)
        let (offered, made) = try await slots.planned(did, pid: invite.pid)
        let offer = try await offer(
            SigningReplyHead(issuer: iss, audience: start.kid.text, issuedAt: Int(now), request: hash),
            pid: invite.pid, did: did, .digits, expiresAt: invite.expiresAt, slots: offered)
        let enrolment = SigningEnrolmentRecord(
            did: did, pid: invite.pid, deviceKeyID: start.kid, deviceJWK: start.content.jwk.json.serialized(),
            requestHash: hash, offer: offer,
            info: JSONValue.object(JSONObject(sorted: start.content.info)).serialized(), expiresAt: invite.expiresAt)
        let done = try await self.start(
            enrolment, slots: made, user: invite.userID, isAgain: known != nil, at: now)
        return done ? offer : nil
    }

    /// An offer of keys, signed.
    private func offer(
        _ head: SigningReplyHead, pid: SigningID, did: SigningID, _ mode: CommitMode, expiresAt: Int64,
        slots: [OfferedSlot]
    ) async throws -> String {
        try await keys.sign(
            Offer(
                head: head, pid: pid, did: did, identity: try await keys.current().requiredIdentity.thumbprint,
                name: settings.name, commit: mode, expiresAt: Int(expiresAt), keys: settings.offeredKeys, slots: slots,
                policies: settings.offeredPolicies))
    }

    private static func inserting(
        _ slots: [SigningOfferedSlot], of did: SigningID, pid: SigningID, expiresAt: Int64
    ) -> [GuardedStatement<Obstacle>] {
        slots.map {
            .one(
                SlotSQL.insert($0, of: did, pid: pid, expiresAt: expiresAt + SigningInviteRecord.completion),
                else: .changed)
        }
    }

    /// Begins an enrolment, or gives one that has begun another offer.
    ///
    /// - Returns: false when the invite is not open any more, has had too many starts, or the device key has another
    ///   enrolment with it: read again.
    func start(
        _ new: SigningEnrolmentRecord, slots: [SigningOfferedSlot] = [], user: String, isAgain: Bool, at now: Int64
    ) async throws -> Bool {
        let offered = Self.inserting(slots, of: new.did, pid: new.pid, expiresAt: new.expiresAt)
        let first: [GuardedStatement<Obstacle>] =
            isAgain
            ? [.one(EnrolmentSQL.restart(new, at: now), else: .changed)]
            : [
                .one(EnrolmentSQL.countStart(pid: new.pid, at: now), else: .changed),
                .one(EnrolmentSQL.start(new, issuer: iss, at: now), else: .changed),
            ]
        let note: GuardedStatement<Obstacle> = store.note(
            .signingEnrol, user: user, did: new.did, ["pid": new.pid.text, "step": isAgain ? "again" : "start"])
        return try await store.changes(first + [note] + offered)
    }
}

// MARK: the beginning with a container

extension SigningEnrolments {
    func renewStart(_ request: DeviceRequest) async throws -> String {
        let body: RenewStartBody = try request.body()
        let container = try request.known()
        let invite = try await invite(body.code, for: container, request)
        if let refusal = Self.refusal(renewing: container, hasCode: invite != nil, at: request.now) { throw refusal }
        if invite == nil { try await requireSigner(of: container) }
        // No device could read the record of a further key set.
        guard try await sequence(of: container.did) < EnrolmentRecord.maximumSequence else {
            throw SigningRefusal(.keyExpired, "The container has had all its renewals.")
        }
        for _ in 0..<3 {
            if let offer = try await renewalOffer(container, invite: invite, request) { return offer }
        }
        throw SigningRefusal(invite == nil ? .unavailable : .invalidCode)
    }

    private func invite(
        _ code: InviteCode?, for container: SigningContainerRecord, _ request: DeviceRequest
    ) async throws -> SigningInviteRecord? {
        guard let code else { return nil }
        guard let found = try await invites.open(code, renewing: container.did, at: request.now) else {
            throw try await door.countWrongCode(request.address)
        }
        return found
    }

    /// Why a container does not get new keys now.
    static func refusal(
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
    /// someone who has the device would get new ones behind a password of their own. What the container was offered
    /// decides, not the keys that are left.
    ///
    /// - Returns: whether a key behind a password has to vouch.
    @discardableResult
    func requireSigner(of container: SigningContainerRecord) async throws -> Bool {
        let offered = try UnverifiedMessage<Offer>(container.offer).content.keys.filter(\.usage.needsPossession)
        let left = try await devices.keys(of: container.did).filter { $0.isActive && $0.usage.needsPossession }
        let slots = Set(offered.compactMap(\.slot))
        guard offered.isEmpty || !left.isEmpty, slots.isSubset(of: left.compactMap(\.slot)) else {
            throw SigningRefusal(.freshAuthenticationRequired)
        }
        return !slots.isEmpty
    }

    /// The offer for a renewal; `nil` when another call was faster, or the code has a commitment already.
    private func renewalOffer(
        _ container: SigningContainerRecord, invite: SigningInviteRecord?, _ request: DeviceRequest
    ) async throws -> String? {
        let known = try await renewal(of: container.did, at: request.now)
        if let invite, known?.invite == invite.pid, known?.state != .started { return nil }
        let again = known?.state == .started && known?.invite == invite?.pid ? known : nil
        let pid = invite?.pid ?? again?.pid ?? SigningID(random: context.random)
        let expires = invite?.expiresAt ?? request.now + SigningRenewalRecord.lifetime
        let mode: CommitMode = invite == nil ? .exchange : .digits
        let (offered, made) = try await slots.planned(container.did, pid: pid, after: container)
        let offer = try await offer(
            SigningReplyHead(
                issuer: iss, audience: container.deviceKeyID.text, issuedAt: Int(request.now), request: request.hash),
            pid: pid, did: request.did, mode, expiresAt: expires, slots: offered)
        let renewal = SigningRenewalRecord(
            pid: pid, did: container.did, invite: invite?.pid, commitMode: mode, offer: offer, expiresAt: expires)
        let done = try await start(
            renewal, slots: made, isAgain: again != nil, user: container.userID, proof: request.proof, at: request.now)
        return done ? offer : nil
    }

    /// Begins a renewal in the place of an earlier one, or gives one that has begun another offer. Only one with a code
    /// takes the place of one with a code.
    ///
    /// - Returns: false when the container may not be renewed any more, or another call was faster.
    /// - Throws: ``SigningRefusal`` `fresh_authentication_required` while one with a code is under way; `replay`.
    func start(
        _ new: SigningRenewalRecord, slots: [SigningOfferedSlot] = [], isAgain: Bool, user: String, proof: SpentProof?,
        at now: Int64
    ) async throws -> Bool {
        let did = new.did
        var statements: [GuardedStatement<Obstacle>] = [
            .one(RenewalSQL.hold(container: did, evenSuspect: new.invite != nil, at: now), else: .changed)
        ]
        if isAgain {
            statements += [
                .one(RenewalSQL.restart(new), else: .changed),
                .any(
                    RenewalSQL.keepOfferedSlots(
                        of: did, pid: new.pid, until: new.expiresAt + SigningInviteRecord.completion)),
            ]
        } else {
            if new.invite == nil {
                // A call that was held back, or one of somebody with a copy of the device key, would end a reset.
                let isFree = RenewalSQL.holdWithoutReset(container: did, at: now)
                statements.append(
                    .one(isFree, else: .refused(.freshAuthenticationRequired, "A reset of this device is under way.")))
            }
            statements += RenewalSQL.end(of: did).map { .any($0) }
            statements.append(.one(RenewalSQL.start(new, issuer: iss, at: now), else: .changed))
        }
        statements += Self.inserting(slots, of: did, pid: new.pid, expiresAt: new.expiresAt)
        statements += store.spending(proof, at: now)
        statements.append(
            store.note(.signingContainer, user: user, did: did, ["step": "renewal", "pid": new.pid.text]))
        return try await store.changes(statements)
    }
}
