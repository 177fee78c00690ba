package import AssentSigningProtocol
import AssentStore

extension SigningStore {
    /// Makes an invite for an active user.
    ///
    /// - Throws: ``SigningRefusal`` `not_found` when there is no such user.
    package func create(_ invite: SigningInviteRecord, codeHash: String) async throws {
        let made = try await succeeds([
            SQLStatement(
                SigningSQL.createInvite(invite, issuer: issuer.name, codeHash: codeHash), expecting: .exactly(1)),
            audit.statement(record(.signingInvite, user: invite.userID, ["pid": invite.pid, "step": "made"])),
        ])
        guard made else { throw SigningRefusal(.notFound) }
    }

    /// An invite by its id, whatever its state.
    package func invite(pid: String) async throws -> SigningInviteRecord? {
        try await first("SELECT * FROM signing_invites WHERE pid = \(pid) AND iss = \(issuer.name)")
            .map(SigningInviteRecord.init)
    }

    /// The invite that a code opens now.
    package func invite(codeHash: String, at now: Int64) async throws -> SigningInviteRecord? {
        try await first(SigningSQL.invite(codeHash: codeHash, issuer: issuer.name, at: now)).map(
            SigningInviteRecord.init)
    }

    /// The invite that a code opens now for new keys of a container.
    func invite(codeHash: String, renewing did: String, at now: Int64) async throws -> SigningInviteRecord? {
        try await first(SigningSQL.invite(codeHash: codeHash, issuer: issuer.name, renewing: did, at: now)).map(
            SigningInviteRecord.init)
    }

    /// The enrolment that a device key has begun with an invite.
    package func enrolment(pid: String, deviceKeyID: String) async throws -> SigningEnrolmentRecord? {
        try await first("SELECT * FROM signing_enrolments WHERE pid = \(pid) AND device_kid = \(deviceKeyID)")
            .map(SigningEnrolmentRecord.init)
    }

    /// The enrolment of that id.
    package func enrolment(did: String) async throws -> SigningEnrolmentRecord? {
        try await first("SELECT * FROM signing_enrolments WHERE did = \(did) AND iss = \(issuer.name)")
            .map(SigningEnrolmentRecord.init)
    }

    /// Begins an enrolment, or gives one that has begun another offer.
    ///
    /// - Returns: false when the invite is not open any more, has had too many starts, or the device key has another
    ///   enrolment with it: read again.
    package func start(
        _ new: SigningEnrolmentRecord, slots: [SigningOfferedSlot] = [], user: String, isAgain: Bool, at now: Int64
    ) async throws -> Bool {
        let offered = slots.map {
            SQLStatement(
                SigningSQL.insert(
                    $0, of: new.did, pid: new.pid, expiresAt: new.expiresAt + SigningInviteRecord.completion),
                expecting: .exactly(1))
        }
        let note = audit.statement(
            record(.signingEnrol, user: user, did: new.did, ["pid": new.pid, "step": isAgain ? "again" : "start"]))
        if isAgain {
            return try await succeeds(
                [
                    SQLStatement(SigningSQL.restart(new, at: now), expecting: .exactly(1)), note,
                ] + offered)
        }
        return try await succeeds(
            [
                SQLStatement(SigningSQL.countStart(pid: new.pid, at: now), expecting: .exactly(1)),
                SQLStatement(SigningSQL.start(new, issuer: issuer.name, at: now), expecting: .exactly(1)), note,
            ] + offered)
    }

    /// STARTED → COMMITTED: the one commitment of the invite. A repetition finds the first one's nonce.
    ///
    /// - Returns: the nonce that the device gets.
    /// - Throws: ``SigningRefusal``: `commitment_changed` for another commitment, which ends the enrolment;
    ///   `enrolment_void` when another device was first, or the time is over; `replay`.
    package func commit(
        _ enrolment: SigningEnrolmentRecord, commitment: String, nonce: String, user: String, proof: SpentProof?,
        at now: Int64
    ) async throws -> String {
        let did = enrolment.did
        let outcome = try await attempt(
            [
                SQLStatement(
                    SigningSQL.commitInvite(pid: enrolment.pid, did: did, at: now), expecting: .exactly(1)),
                SQLStatement(
                    SigningSQL.commit(did: did, commitment: commitment, nonce: nonce), expecting: .exactly(1)),
            ] + spending(proof, at: now) + [
                audit.statement(record(.signingEnrol, user: user, did: did, ["step": "commit"]))
            ])
        if case .done = outcome { return nonce }
        guard let known = try await self.enrolment(did: did) else { throw SigningRefusal(.enrolmentVoid) }
        switch known.state {
        case .committed, .completed:
            if let stored = known.nonce, known.commitment == commitment { return stored }
            try await end(known, user: user, because: .commitmentChanged)
            throw SigningRefusal(.commitmentChanged)
        case .started: throw SigningRefusal(try await isSpent(proof) ? .replay : .enrolmentVoid)
        case .void: throw SigningRefusal(.enrolmentVoid)
        }
    }

    /// Ends an enrolment that has no container yet, and its invite.
    private func end(_ enrolment: SigningEnrolmentRecord, user: String, because reason: RefusalCode)
        async throws
    {
        guard enrolment.state == .committed else { return }
        _ = try await context.database.run([
            SQLStatement(SigningSQL.voidInvite(pid: enrolment.pid)),
            SQLStatement(SigningSQL.voidEnrolments(pid: enrolment.pid)),
            SQLStatement(SigningSQL.forgetOfferedSlots(pid: enrolment.pid)),
            audit.statement(record(.signingEnrol, .refused, reason: reason, user: user, did: enrolment.did)),
        ])
    }

    /// Makes an invite void, with all that has come of it and is not active yet.
    ///
    /// - Returns: whether that changed anything.
    package func void(_ invite: SigningInviteRecord, because reason: RefusalCode? = nil, at now: Int64)
        async throws
        -> Bool
    {
        let did = invite.committed ?? ""
        return try await succeeds([
            SQLStatement(SigningSQL.voidInvite(pid: invite.pid), expecting: .exactly(1)),
            SQLStatement(SigningSQL.voidEnrolments(pid: invite.pid)),
            SQLStatement(SigningSQL.forgetOfferedSlots(pid: invite.pid)),
            SQLStatement(SigningSQL.void(did: did, at: now)),
            SQLStatement(SigningSQL.deleteKeysOfVoid(did: did)),
            SQLStatement(SigningSQL.deleteSlotsOfVoid(did: did)),
            SQLStatement(SigningSQL.deleteOneTimeKeys(of: did)),
            SQLStatement(SigningSQL.voidRenewal(invite: invite.pid)),
            SQLStatement(SigningSQL.deletePendingKeys(of: invite.did ?? "")),
            audit.statement(
                record(
                    .signingInvite, reason == nil ? .success : .refused, reason: reason, user: invite.userID,
                    did: invite.committed, ["pid": invite.pid, "step": "void"])),
        ])
    }
}
