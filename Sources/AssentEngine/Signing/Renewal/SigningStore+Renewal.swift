import AssentCore
import AssentSigningProtocol
import AssentStore

extension SigningStore {
    /// The renewal of a container that is under way.
    func renewal(of did: String, at now: Int64) async throws -> SigningRenewalRecord? {
        try await first(SigningSQL.openRenewal(of: did, at: now)).map(SigningRenewalRecord.init)
    }

    /// A renewal by its id, whatever its state.
    func renewal(pid: String) async throws -> SigningRenewalRecord? {
        try await first("SELECT * FROM signing_renewals WHERE pid = \(pid) AND iss = \(issuer.name)")
            .map(SigningRenewalRecord.init)
    }

    /// The number of the newest record of a container.
    func sequence(of did: String) async throws -> Int {
        let row = try await first("SELECT max(seq) AS seq FROM signing_records WHERE did = \(did)")
        return Int(try row?.optionalInteger("seq") ?? 0)
    }

    /// Whether a key was a device key of a container that a renewal has replaced.
    func isRetiredDeviceKey(_ kid: String, of did: String) async throws -> SigningKeyRow? {
        try await first(
            """
            SELECT * FROM signing_keys
            WHERE kid = \(kid) AND did = \(did) AND usage = 'device' AND state = 'RETIRED'
            """
        ).map(SigningKeyRow.init)
    }

    /// Begins a renewal in the place of an earlier one, or gives one that has begun another offer.
    ///
    /// - Returns: false when the container may not be renewed any more, or another call was faster.
    /// - Throws: ``SigningRefusal`` `replay`.
    func start(
        _ new: SigningRenewalRecord, slots: [SigningOfferedSlot] = [], isAgain: Bool, user: String, proof: SpentProof?,
        at now: Int64
    ) async throws -> Bool {
        let did = new.did
        var statements = [
            SQLStatement(
                SigningSQL.hold(container: did, evenSuspect: new.invite != nil, at: now), expecting: .exactly(1))
        ]
        if isAgain {
            statements.append(SQLStatement(SigningSQL.restart(new), expecting: .exactly(1)))
            statements.append(
                SQLStatement(
                    SigningSQL.keepOfferedSlots(
                        of: did, pid: new.pid, until: new.expiresAt + SigningInviteRecord.completion)))
        } else {
            statements += SigningSQL.endRenewals(of: did).map { SQLStatement($0) }
            statements.append(
                SQLStatement(SigningSQL.start(new, issuer: issuer.name, at: now), expecting: .exactly(1)))
        }
        statements += slots.map {
            SQLStatement(
                SigningSQL.insert(
                    $0, of: did, pid: new.pid, expiresAt: new.expiresAt + SigningInviteRecord.completion),
                expecting: .exactly(1))
        }
        let note = audit.statement(
            record(.signingContainer, user: user, did: did, ["step": "renewal", "pid": new.pid]))
        let firstOfProof = statements.count
        switch try await attempt(statements + spending(proof, at: now) + [note]) {
        case .done: return true
        case .refused(let statement) where statement < firstOfProof: return false
        case .refused: throw SigningRefusal(.replay)
        }
    }

    /// STARTED → COMMITTED: the one commitment. A repetition finds the first one's nonce.
    ///
    /// - Returns: the nonce that the device gets.
    /// - Throws: ``SigningRefusal``: `commitment_changed`, which ends the renewal; `enrolment_void`; `replay`.
    func commit(
        _ renewal: SigningRenewalRecord, commitment: String, nonce: String, user: String, proof: SpentProof?,
        at now: Int64
    ) async throws -> String {
        var first: [SQLStatement] = []
        if let invite = renewal.invite {
            first.append(
                SQLStatement(
                    SigningSQL.commitInvite(pid: invite, did: renewal.did, at: now), expecting: .exactly(1)))
        }
        first.append(
            SQLStatement(
                SigningSQL.commit(renewal: renewal.pid, commitment: commitment, nonce: nonce, at: now),
                expecting: .exactly(1)))
        let note = audit.statement(
            record(.signingContainer, user: user, did: renewal.did, ["step": "renewal commit"]))
        if case .done = try await attempt(first + spending(proof, at: now) + [note]) { return nonce }
        let known = try await self.renewal(pid: renewal.pid)
        switch known?.state {
        case .committed, .completed:
            if let stored = known?.nonce, known?.commitment == commitment { return stored }
            _ = try await context.database.run(
                SigningSQL.endRenewals(of: renewal.did).map { SQLStatement($0) } + [
                    audit.statement(
                        record(
                            .signingContainer, .refused, reason: .commitmentChanged, user: user, did: renewal.did,
                            ["step": "renewal commit"]))
                ])
            throw SigningRefusal(.commitmentChanged)
        default: throw SigningRefusal(try await isSpent(proof) ? .replay : .enrolmentVoid)
        }
    }

    /// COMMITTED → COMPLETED: the new keys are known, and do not count yet. Where an `assisted` slot's password opened
    /// the key that endorses, the newest evaluation of the slot is spent for this (`taking`).
    ///
    /// - Returns: false when the renewal is over, or another call was faster: read again.
    /// - Throws: ``SigningRefusal``: `unlock_required`; `invalid_request` when a key is known already; `replay`.
    func complete(
        _ renewal: SigningRenewalRecord, _ sent: SigningRenewalRecord.Completion, keys: [SigningKeyRow], seq: Int,
        oneTimeKeys: [SigningOneTimeSecret], taking: PasswordSlot?, digits: String?, user: String, proof: SpentProof?,
        at now: Int64
    ) async throws -> Bool {
        let did = renewal.did
        var first: [SQLStatement] = []
        if let invite = renewal.invite {
            first.append(
                SQLStatement(
                    SigningSQL.useInvite(pid: invite, did: did, digits: digits, at: now), expecting: .exactly(1)))
        }
        first.append(
            SQLStatement(SigningSQL.complete(renewal: renewal.pid, sent, at: now), expecting: .exactly(1)))
        let insertions = keys.enumerated().map { index, key in
            SQLStatement(
                SigningSQL.insertPending(key, of: did, position: seq * 16 + index, at: now), expecting: .exactly(1))
        }
        let spent = taking.map {
            SQLStatement(SigningSQL.take(renewal: renewal.pid, $0, of: did, at: now), expecting: .exactly(1))
        }
        let secrets = try inserting(oneTimeKeys, of: did, at: now)
        let note = audit.statement(
            record(.signingContainer, user: user, did: did, ["step": "renewal complete", "pid": renewal.pid]))
        let firstOfKeys = first.count + (spent == nil ? 0 : 1)
        let firstOfProof = firstOfKeys + insertions.count + secrets.count
        let statements = first + [spent].compactMap(\.self) + insertions + secrets
        switch try await attempt(statements + spending(proof, at: now) + [note]) {
        case .done: return true
        case .refused(let statement) where statement < first.count: return false
        case .refused(let statement) where statement < firstOfKeys: throw SigningRefusal(.unlockRequired)
        case .refused(let statement) where statement < firstOfProof:
            throw SigningRefusal(.invalidRequest, "A key is known already.")
        case .refused: throw SigningRefusal(.replay)
        }
    }

    /// The device has stored what it got. The new keys count from now on, if the digits were right where there are
    /// some.
    ///
    /// - Returns: false when the renewal is over.
    func confirm(
        _ renewal: SigningRenewalRecord, echoHash: String, of container: SigningContainerRecord, seq: Int,
        _ activation: SigningActivation, at now: Int64
    ) async throws -> Bool {
        try await succeeds(
            replacing(
                renewal, of: container, seq: seq, activation,
                after: [SigningSQL.echo(renewal: renewal.pid, hash: echoHash, at: now)], at: now))
    }

    /// The digits were right. The new keys count from now on, if the device has confirmed.
    ///
    /// - Returns: false when the renewal is not waiting for them any more.
    func acceptDigits(
        _ renewal: SigningRenewalRecord, of container: SigningContainerRecord, seq: Int,
        _ activation: SigningActivation, at now: Int64
    ) async throws -> Bool {
        try await succeeds(
            replacing(
                renewal, of: container, seq: seq, activation,
                after: [
                    SigningSQL.forgetDigits(pid: renewal.pid), SigningSQL.rightDigits(renewal: renewal.pid, at: now),
                ], at: now))
    }

    /// After what has come, one row each, makes the new keys count if nothing is missing, together with their record.
    /// The container is locked before the renewal, as by a change of the password, which ends renewals.
    private func replacing(
        _ renewal: SigningRenewalRecord, of container: SigningContainerRecord, seq: Int,
        _ activation: SigningActivation, after news: [SQL], at now: Int64
    ) throws -> [SQLStatement] {
        guard let sent = renewal.completion else { throw SigningRefusal(.enrolmentVoid) }
        let did = container.did
        let slots = try UnverifiedMessage<Offer>(renewal.offer).content.slots
            .filter { $0.mode == .assisted }.map(\.slot)
        let hold = SigningSQL.hold(container: did, evenSuspect: true, at: now)
        let first =
            ([hold] + news).map { SQLStatement($0, expecting: .exactly(1)) } + [
                SQLStatement(SigningSQL.finish(renewal: renewal.pid, of: container, slots: slots)),
                SQLStatement(SigningSQL.renew(container, with: renewal, sent, activation)),
            ]
        let rest = SigningSQL.replaceKeys(of: did, renewal, sent, seq: seq, activation, at: now)
        let note = audit.statement(
            record(
                .signingContainer, user: container.userID, did: did,
                ["step": renewal.invite == nil ? "renewed" : "reset", "pid": renewal.pid]),
            when: SigningSQL.has(did: did, record: activation.hash))
        let isDone = SigningSQL.has(did: did, record: activation.hash)
        let notice = renewal.invite.map { _ in telling(.reset, about: did, when: isDone, at: now) }
        return first + rest.map { SQLStatement($0) } + [notice].compactMap(\.self) + [note]
    }
}
