import AssentCore
import AssentJOSE
import AssentSigningProtocol

/// Gives containers new keys, and takes them into use when the server has signed that they are the container's.
struct Renewals: Sendable {
    let parts: DeviceParts

    /// What became of a renewal.
    enum End {
        case none
        /// The user has not typed the digits, or the device has not come that far.
        case waiting
        /// The new keys are the container's.
        case done
        /// The server has forgotten it. The keys of a reset are kept as long as its digits could be typed.
        case over
    }

    func renew(
        _ id: SigningID, invite: SigningInvite?, password: SigningPasswordPrompt?
    ) async throws -> SigningRenewal {
        let held = try await parts.hold(.renewal(id))
        do {
            let renewal = try await renewAlone(id, invite, password)
            await held.release()
            return renewal
        } catch {
            await held.release()
            throw error
        }
    }

    private func renewAlone(
        _ id: SigningID, _ invite: SigningInvite?, _ password: SigningPasswordPrompt?
    ) async throws -> SigningRenewal {
        if case .done = try await end(id) { return try await outcome(id, digits: nil, isDone: true) }
        var isRestarted = false
        while true {
            var work = try await begun(id, invite)
            do {
                try await parts.newKeys.run(&work, password)
                return try await outcome(of: work)
            } catch let error as SigningError {
                guard case .renewal(let renewal) = work else { throw error }
                var ceremony = work.ceremony
                guard ceremony.refused(error.code) == .giveUp else {
                    if error.code == .enrolmentVoid, try await parts.newKeys.areLost(work) { try await giveUp(renewal) }
                    throw error
                }
                try await giveUp(renewal)
                guard !isRestarted else { throw error }
                isRestarted = true
            }
        }
    }

    private func outcome(of work: KeyWork) async throws -> SigningRenewal {
        let (id, digits) = (work.next.id, try work.next.enrolmentValue()?.digits)
        switch try await end(id) {
        case .waiting: return try await outcome(id, digits: digits, isDone: false)
        // The record goes when the new keys are in use.
        case .done, .none: return try await outcome(id, digits: nil, isDone: true)
        case .over: throw SigningError(.enrolmentVoid)
        }
    }

    private func outcome(_ id: SigningID, digits: String?, isDone: Bool) async throws -> SigningRenewal {
        let record = try await parts.records.load(id)
        return SigningRenewal(
            issuerName: record.issuerName, userName: record.user ?? "", digits: digits, isDone: isDone)
    }

    /// Takes the new keys of a renewal into use if the server says that they are the container's.
    func finish(_ id: SigningID) async throws -> End {
        // In the middle of one, which has asked the app for a password, it would wait for itself.
        guard await !parts.memory.isAsking(id) else { return .waiting }
        let held = try await parts.hold(.renewal(id))
        do {
            let end = try await end(id)
            await held.release()
            return end
        } catch {
            await held.release()
            throw error
        }
    }

    /// Ends a renewal that would undo what the server does not know of. One of which the server has no keys yet is
    /// given up; another one has to end first. The caller has the renewal's lease.
    func clear(_ id: SigningID) async throws {
        guard case .waiting = try await end(id), let renewal = try await parts.records.renewal(of: id),
            !renewal.hasCode
        else { return }
        guard renewal.next.phase.echo == nil else {
            throw SigningError(.busy, "New keys are on their way. Renew again, then change the password.")
        }
        try await giveUp(renewal)
    }

    // MARK: The beginning

    /// The renewal that is under way, or a new one. Another one is given up for this: if the server may have its keys,
    /// or it has a code, only when the server has sent an offer for the new one. Until then it can make those keys
    /// count, and a code that was mistyped, or a refusal that nobody has signed, would cost the user another code.
    private func begun(_ id: SigningID, _ invite: SigningInvite?) async throws -> KeyWork {
        var record = try await parts.records.load(id)
        guard record.phase.isConfirmed, record.deletion == nil, !record.ended, let offer = record.phase.offer else {
            throw SigningError(.invalidContainer)
        }
        if let invite, !StrictJSON.same(invite.issuer, record.issuer) {
            throw SigningError(.invalidArgument, "The invite is another issuer's.")
        }
        let known = try await parts.records.renewal(of: id)
        if let known, known.hasCode == (invite != nil), invite.map({ $0.code == known.next.code }) ?? true {
            return .renewal(known)
        }
        if let scanned = invite?.scanned { record = try await verified(scanned, record) }
        var next = record
        next.keyID = SigningID(random: parts.random)
        next.slots = []
        next.phase = .begun
        next.pid = invite?.scanned?.content.pid
        if let invite { next.code = invite.code }
        let renewal = RenewalRecord(
            next: next, hasCode: invite != nil, oldKeys: record.keyID ?? record.id, oldOffer: offer)
        var work = KeyWork.renewal(renewal)
        if let known, known.hasCode || known.next.phase.echo != nil {
            let accepted = try await parts.newKeys.offer(work)
            try await giveUp(known)
            try await work.take(.offer(accepted), in: parts.records)
            return work
        }
        if let known { try await giveUp(known) }
        try await parts.records.keep(renewal)
        return work
    }

    /// Verifies an invite, which may be signed by a key that the device has not heard of.
    private func verified(_ invite: UnverifiedMessage<Invite>, _ known: ContainerRecord) async throws -> ContainerRecord
    {
        var record = known
        func verify() throws(SigningProtocolError) { _ = try record.trust().verified(invite.compact, as: Invite.self) }
        do throws(SigningProtocolError) {
            try verify()
        } catch {
            guard CallRunner.asksForNewKeys(error) else { throw SigningError(error) }
            record = try await parts.calls.refresh(record)
            try SigningError.mapped(try verify())
        }
        guard record.identity.thumbprint == invite.content.identity else { throw SigningError(.untrustedIdentity) }
        return record
    }

    /// What old keys say of the new ones. A key behind a password is not asked after a reset.
    func endorsements(
        of enrol: String, _ renewal: RenewalRecord, _ prompt: SigningPasswordPrompt?
    ) async throws -> [String] {
        let record = try await parts.records.load(renewal.next.id)
        var signers = [try await parts.provider.device(record)]
        let approving = try renewal.oldOfferContent().keys.filter(\.usage.needsPossession)
        let key = approving.first { $0.slot != nil } ?? approving.first
        if let key, let slot = key.slot, !renewal.hasCode {
            // It was opened a moment ago, or is opened by the password again.
            if let opened = await parts.memory.endorser(record.id) {
                signers.append(opened)
            } else {
                guard let kept = record.slotRecord(slot) else { throw SigningError(.credentialsLost) }
                let password = try await parts.newPasswords.ask(prompt, isNew: false, record, slot, kept.mode)
                let opened = try await parts.passwords.opened(record.id, slot, password, for: .change, by: .given)
                signers.append(try opened.signingKey(key.label))
            }
        } else if let key, key.slot == nil {
            signers.append(try await parts.provider.signing(record, key.usage, key.label))
        }
        var endorsements: [String] = []
        for signer in signers {
            let content = Endorsement(
                issuer: record.issuer, did: try record.knownDid, enrol: .enrolment(enrol),
                jti: SigningID(random: parts.random))
            endorsements.append(try await SignedMessage.sign(content, with: signer).compact)
        }
        return endorsements
    }

    // MARK: The end

    /// Asks with the new key whether it is the container's. An answer to the old one is not enough: old keys are
    /// removed only when the server has signed, for the new key, that the new keys are the container's.
    private func end(_ id: SigningID) async throws -> End {
        var wasRefused = false
        while true {
            guard let renewal = try await parts.records.renewal(of: id) else { return .none }
            let record = try await parts.records.load(id)
            if record.keyID == renewal.next.keyID {
                try await removeOldKeys(renewal)
                return .done
            }
            // The answer to a confirmation may be lost: from the server's echo on, the new key may ask.
            guard renewal.next.phase.echo != nil else { return .waiting }
            let (calls, request) = (parts.calls, Request.status)
            do {
                let key = try await parts.provider.device(renewal.next)
                let status = try await calls.ask(request, of: record, by: .new(key), read: calls.status)
                if try await take(renewal, status) { return .done }
                return try await isEnded(status, id) ? .over : .waiting
            } catch let error as SigningError where error.code == .badProof {
                // Nobody has signed that: the old key must be told, too, that it is still the container's.
                let status = try await calls.ask(
                    request, of: parts.records.load(id), by: .given, read: calls.status)
                if try await isEnded(status, id) { return .over }
                guard try status.keys.contains(where: { try $0.kid == renewal.oldDeviceKey && $0.state == .active })
                else { throw error }
                guard try renewal.mayWaitForDigits(at: status.head.issuedAt) else {
                    try await giveUp(renewal)
                    return .over
                }
                // The old key is the container's as long as the digits are missing, so that says nothing here. If they
                // are typed all the same, the new keys are the container's, and must be there.
                guard !wasRefused else { return .over }
                wasRefused = true
            }
        }
    }

    /// Removes a container of which the server has signed that it has ended, its renewal with it.
    private func isEnded(_ status: ContainerStatus, _ id: SigningID) async throws -> Bool {
        guard status.hasEnded else { return false }
        try await parts.containers.adopt(status, of: parts.records.load(id))
        return true
    }

    /// Takes new keys into use if a signed status says that they are the container's.
    @discardableResult
    func take(_ renewal: RenewalRecord, _ status: ContainerStatus) async throws -> Bool {
        let next = renewal.next
        guard let device = try next.enrolment()?.device.kid, let signed = next.phase.signed,
            let echo = next.phase.echo,
            status.keys.contains(where: { $0.kid == device && $0.state == .active })
        else { return false }
        try await parts.records.modify(next.id) { record in
            record.keyID = next.keyID
            record.slots = next.slots
            record.phase = .confirmed(signed, echo: echo)
            record.handle = next.handle
            record.name = next.name
            record.user = next.user
            record.renewable = next.renewable
            // It is about the new keys, so all that was signed before is older.
            record.adopt(status, askedAfter: record.statuses)
        }
        await parts.memory.forget(next.id)
        try await removeOldKeys(renewal)
        return true
    }

    func removeOldKeys(_ renewal: RenewalRecord) async throws {
        var old = renewal.next
        old.keyID = renewal.oldKeys
        try await parts.provider.remove(renewal.oldOfferContent(), old, withDeviceKey: true)
        try await parts.records.removeRenewal(of: old.id)
    }

    /// Removes a renewal's keys but the device key: that may be the one with which the server can be told something.
    func removeKeys(of renewal: RenewalRecord) async throws {
        try await parts.provider.remove(renewal.next.offerContent(), renewal.next, withDeviceKey: false)
        try await parts.keys.removeKey(named: renewal.next.sealingKeyName)
        guard !renewal.next.slots.isEmpty else { return }
        var kept = renewal
        for index in kept.next.slots.indices { kept.next.slots[index].shred() }
        try await parts.records.keep(kept)
    }

    /// Forgets a renewal and its keys; the old keys are the container's. The offer is stored until its keys are
    /// removed: a process that ends meanwhile finds them, and does not look for keys that are gone.
    func giveUp(_ renewal: RenewalRecord) async throws {
        let id = renewal.next.id
        if let offer = renewal.next.phase.offer {
            var left = renewal
            left.next.phase = .offered(offer: offer)
            left.next.slots = []
            try await parts.records.keep(left)
        }
        try await parts.provider.remove(renewal.next.offerContent(), renewal.next, withDeviceKey: true)
        await parts.memory.forgetNewKeys(id)
        if try await parts.records.load(id).slots.isEmpty {
            try await parts.keys.removeKey(named: renewal.next.sealingKeyName)
        }
        try await parts.records.removeRenewal(of: id)
    }
}
