import AssentCore
import AssentSigningProtocol
import AssentStore

/// How devices get keys: the enrolment of a new device, and new keys for a container that has keys. It is one ceremony
/// with two beginnings (`docs/transaction-signing.md`).
struct SigningEnrolments: SigningPart {
    let realm: SigningRealm

    /// The enrolment of a device that will be this container.
    func find(_ did: SigningID) async throws -> SigningEnrolmentRecord? {
        try await store.first("SELECT * FROM signing_enrolments WHERE did = \(did) AND iss = \(iss)")
            .map(SigningEnrolmentRecord.init)
    }

    /// The enrolment that a device key has begun with an invite.
    func find(pid: SigningID, deviceKeyID: KeyThumbprint) async throws -> SigningEnrolmentRecord? {
        try await store.first(
            "SELECT * FROM signing_enrolments WHERE pid = \(pid) AND device_kid = \(deviceKeyID)"
        ).map(SigningEnrolmentRecord.init)
    }

    /// The renewal of a container that is under way.
    func renewal(of did: SigningID, at now: Int64) async throws -> SigningRenewalRecord? {
        try await store.first(RenewalSQL.underWay(of: did, at: now)).map(SigningRenewalRecord.init)
    }

    /// A renewal by its id, whatever its state.
    func renewal(pid: SigningID) async throws -> SigningRenewalRecord? {
        try await store.first("SELECT * FROM signing_renewals WHERE pid = \(pid) AND iss = \(iss)")
            .map(SigningRenewalRecord.init)
    }

    /// The number of the newest record of a container.
    func sequence(of did: SigningID) async throws -> Int {
        let row = try await store.first("SELECT max(seq) AS seq FROM signing_records WHERE did = \(did)")
        return Int(try row?.optionalInteger("seq") ?? 0)
    }

    /// The enrolment of the device that calls, or its renewal.
    private func ceremony(_ request: DeviceRequest, isRenewal: Bool) async throws -> KeyEnrolment {
        if isRenewal {
            let (container, renewal) = try await renewal(request)
            return KeyEnrolment(renewal, user: container.userID, named: container.username)
        }
        guard let enrolment = try await find(request.did), let invite = try await invites.find(enrolment.pid) else {
            throw SigningRefusal(.enrolmentVoid)
        }
        return KeyEnrolment(enrolment, user: invite.userID, named: invite.username)
    }

    /// The renewal of the container that calls, which may still get new keys.
    func renewal(_ request: DeviceRequest) async throws -> (SigningContainerRecord, SigningRenewalRecord) {
        let container = try request.known()
        guard let renewal = try await renewal(of: container.did, at: request.now) else {
            throw SigningRefusal(.enrolmentVoid)
        }
        if let refusal = Self.refusal(renewing: container, hasCode: renewal.invite != nil, at: request.now) {
            throw refusal
        }
        return (container, renewal)
    }

    // MARK: evaluate

    /// For a password at enrolment.
    func evaluate(_ request: DeviceRequest) async throws -> String {
        let body: EvaluateBody = try request.body()
        guard case .enrolment(let enrolment) = request.party else {
            throw SigningRefusal(.invalidRequest, "There is nothing to evaluate now.")
        }
        let user = try await invites.find(enrolment.pid)?.userID
        return try await slots.evaluate(body, pid: enrolment.pid, isRenewal: false, user: user, request)
    }

    /// For a password of new keys.
    func renewEvaluate(_ request: DeviceRequest) async throws -> String {
        let body: EvaluateBody = try request.body()
        let (container, renewal) = try await renewal(request)
        return try await slots.evaluate(body, pid: renewal.pid, isRenewal: true, user: container.userID, request)
    }

    // MARK: commit

    func commit(_ request: DeviceRequest, isRenewal: Bool = false) async throws -> String {
        let body: CommitBody = try request.body()
        let ceremony = try await ceremony(request, isRenewal: isRenewal)
        let nonce = try await commit(
            ceremony, body, nonce: SigningNonce(random: context.random), proof: request.proof, at: request.now)
        return try await keys.sign(
            NonceReply(head: head(request), nonceS: nonce, sub: ceremony.userID, user: ceremony.username))
    }

    /// STARTED → COMMITTED: the one commitment, to keys of the offer as it was read. A repetition finds the first one's
    /// nonce.
    ///
    /// - Returns: the nonce that the device gets.
    /// - Throws: ``SigningRefusal``: `hash_mismatch` when the offer is another one than the device has accepted, which
    ///   changes nothing; `commitment_changed` for another commitment, which ends the ceremony; `enrolment_void` when
    ///   another device was first, or the time is over; `replay`.
    func commit(
        _ ceremony: KeyEnrolment, _ body: CommitBody, nonce: SigningNonce, proof: SpentProof?, at now: Int64
    ) async throws -> SigningNonce {
        try ceremony.requireOffer(body.offer)
        let statements = committing(ceremony, body.commitment, nonce: nonce, proof: proof, at: now)
        if try await store.changes(statements) { return nonce }
        let known = try await again(ceremony)
        try known?.requireOffer(body.offer)
        if let known, known.state == .committed || known.state == .completed {
            if let stored = known.nonce, known.commitment == body.commitment { return stored }
            try await end(known)
            throw SigningRefusal(.commitmentChanged)
        }
        if !ceremony.isRenewal, known?.state != .started { throw SigningRefusal(.enrolmentVoid) }
        throw SigningRefusal(try await store.isSpent(proof) ? .replay : .enrolmentVoid)
    }

    private func committing(
        _ ceremony: KeyEnrolment, _ commitment: SigningHash, nonce: SigningNonce, proof: SpentProof?, at now: Int64
    ) -> [GuardedStatement<Obstacle>] {
        let (did, offer) = (ceremony.did, ceremony.offer)
        var statements: [GuardedStatement<Obstacle>] = []
        if let invite = ceremony.invite {
            statements.append(.one(EnrolmentSQL.commitInvite(pid: invite, did: did, at: now), else: .changed))
        }
        let commit =
            ceremony.isRenewal
            ? RenewalSQL.commit(ceremony.pid, to: offer, commitment: commitment, nonce: nonce, at: now)
            : EnrolmentSQL.commit(did: did, to: offer, commitment: commitment, nonce: nonce)
        statements.append(.one(commit, else: .changed))
        statements += store.spending(proof, at: now, else: .changed)
        let step = ceremony.isRenewal ? "renewal commit" : "commit"
        statements.append(store.note(ceremony.event, user: ceremony.userID, did: did, ["step": step]))
        return statements
    }

    /// The ceremony as it is now.
    private func again(_ ceremony: KeyEnrolment) async throws -> KeyEnrolment? {
        let (user, name) = (ceremony.userID, ceremony.username)
        return ceremony.isRenewal
            ? try await renewal(pid: ceremony.pid).map { KeyEnrolment($0, user: user, named: name) }
            : try await find(ceremony.did).map { KeyEnrolment($0, user: user, named: name) }
    }

    /// Ends a ceremony whose commitment was changed, unless there is a container of it.
    private func end(_ ceremony: KeyEnrolment) async throws {
        guard ceremony.isRenewal || ceremony.state == .committed else { return }
        let (did, pid) = (ceremony.did, ceremony.pid)
        let statements =
            ceremony.isRenewal
            ? RenewalSQL.end(of: did)
            : [
                EnrolmentSQL.voidInvite(pid: pid), EnrolmentSQL.voidEnrolments(pid: pid),
                SlotSQL.forgetOfferedSlots(pid: pid),
            ]
        let note = store.record(
            ceremony.event, .refused, reason: .commitmentChanged, user: ceremony.userID, did: did,
            ["step": ceremony.isRenewal ? "renewal commit" : nil])
        _ = try await context.database.run(statements.map { SQLStatement($0) } + [store.audit.statement(note)])
    }
}
