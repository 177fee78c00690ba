import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Foundation

extension SigningDevice {
    /// What became of a renewal.
    enum RenewalEnd {
        /// There was none.
        case none
        /// The user has not typed the digits, or the device has not come that far.
        case waiting
        /// The new keys count.
        case done
        /// The server has forgotten it.
        case over
    }

    func renew(
        _ id: SigningID, invite: SigningInvite?, password: SigningPasswordPrompt?
    ) async throws -> SigningRenewal {
        try await alone(id) {
            if case .done = try await self.end(id) { return try await self.outcome(id, digits: nil, isDone: true) }
            var renewal = try await self.begun(id, invite)
            var isRestarted = false
            while true {
                do {
                    if let outcome = try await self.advance(&renewal, password) { return outcome }
                } catch let error as SigningError where Self.isOver(error) && renewal.next.echo == nil {
                    // Nothing of it counts: nothing was confirmed. Without a code it can begin anew.
                    try await self.give(up: renewal)
                    guard !renewal.hasCode, !isRestarted else { throw error }
                    isRestarted = true
                    renewal = try await self.begun(id, invite)
                }
            }
        }
    }

    private static func isOver(_ error: SigningError) -> Bool {
        error.code == .enrolmentVoid || error.code == .commitmentChanged
    }

    /// One step; the outcome after the last one.
    private func advance(
        _ renewal: inout RenewalRecord, _ password: SigningPasswordPrompt?
    ) async throws -> SigningRenewal? {
        try await checkSealedKeys(&renewal)
        switch renewal.next.step {
        case .start: try await start(&renewal)
        case .makeKeys: try await makeKeys(&renewal, password)
        case .commit: try await commit(&renewal)
        case .sign: try await sign(&renewal, password)
        case .complete: try await complete(&renewal, password)
        case .confirm: try await confirm(&renewal)
        case .done:
            let (id, digits) = (renewal.next.id, try renewal.next.enrolmentValue()?.digits)
            switch try await end(id) {
            case .waiting: return try await outcome(id, digits: digits, isDone: false)
            // The record goes when the new keys are in use.
            case .done, .none: return try await outcome(id, digits: nil, isDone: true)
            case .over: throw SigningError(.enrolmentVoid)
            }
        }
        return nil
    }

    /// Takes the new keys of a renewal into use if they count.
    @discardableResult
    func finishRenewal(_ id: SigningID) async throws -> RenewalEnd {
        // In the middle of one, which asked for a password, it would wait for itself.
        guard Self.leased != id else { return .waiting }
        return try await alone(id) { try await self.end(id) }
    }

    /// Does something to what a renewal would replace: nobody renews the keys meanwhile. What the server does not know
    /// of, a renewal that is under way would undo: one of which the server has no keys yet is given up, and another one
    /// has to end first.
    func besidesRenewal<Value: Sendable>(
        of id: SigningID, isLocal: Bool, _ work: () async throws -> Value
    ) async throws -> Value {
        try await alone(id) {
            if isLocal, case .waiting = try await self.end(id),
                let renewal = try await self.records.renewal(of: id),
                !renewal.hasCode
            {
                guard renewal.next.echo == nil else {
                    throw SigningError(.busy, "New keys are on their way. Renew again, then change the password.")
                }
                try await self.give(up: renewal)
            }
            return try await work()
        }
    }

    private func alone<Value: Sendable>(_ id: SigningID, _ work: () async throws -> Value) async throws -> Value {
        try await alone(id, with: "renewal.\(id.text)", work)
    }

    private func outcome(_ id: SigningID, digits: String?, isDone: Bool) async throws -> SigningRenewal {
        let record = try await records.load(id)
        return SigningRenewal(
            issuerName: record.issuerName, userName: record.user ?? "", digits: isDone ? nil : digits, isDone: isDone)
    }

    /// The renewal that is under way, or a new one. One with another code is given up for this.
    private func begun(_ id: SigningID, _ invite: SigningInvite?) async throws -> RenewalRecord {
        var record = try await records.load(id)
        guard record.step == .done, record.deletion == nil, !record.ended, let offer = record.offer else {
            throw SigningError(.invalidContainer)
        }
        if let invite, !StrictJSON.same(invite.issuer, record.issuer) {
            throw SigningError(.invalidArgument, "The invite is another issuer's.")
        }
        if let known = try await records.renewal(of: id) {
            if known.hasCode == (invite != nil), invite.map({ $0.code == known.next.code }) ?? true { return known }
            try await give(up: known)
        }
        if let scanned = invite?.scanned {
            try await check(scanned, id)
            record = try await records.load(id)
        }
        var next = record
        next.keyID = SigningID(random: random)
        next.slots = []
        next.offer = nil
        next.nonceD = nil
        next.nonceS = nil
        next.enrol = nil
        next.echo = nil
        next.confirmed = false
        next.pid = invite?.scanned?.content.pid
        if let invite { next.code = invite.code }
        let renewal = RenewalRecord(
            next: next, hasCode: invite != nil, oldKeys: record.keyID ?? record.id, oldOffer: offer)
        try await records.keep(renewal)
        return renewal
    }

    /// Verifies an invite, which may be signed by a key that the device has not heard of.
    private func check(_ invite: UnverifiedMessage<Invite>, _ id: SigningID) async throws {
        func verify(_ record: ContainerRecord) throws(SigningProtocolError) {
            _ = try record.trust().verified(invite.compact, as: Invite.self)
        }
        let record = try await records.load(id)
        do throws(SigningProtocolError) {
            try verify(record)
        } catch {
            guard Self.asksForNewKeys(error) else { throw SigningError(error) }
            try await refresh(id)
            let newer = try await records.load(id)
            try Self.mapped { () throws(SigningProtocolError) in try verify(newer) }
        }
        guard try await records.load(id).identity.thumbprint == invite.content.identity else {
            throw SigningError(.untrustedIdentity)
        }
    }

    // MARK: Steps

    private func start(_ renewal: inout RenewalRecord) async throws {
        let id = renewal.next.id
        let old = try await ProtocolKey(deviceKey(records.load(id))).thumbprint
        let body = RenewStartBody(code: renewal.hasCode ? renewal.next.code : nil)
        let offer = try await call(id, .renewStart, body) { received in
            try received.trust.reply(received.text, as: Offer.self, audience: old.text, request: received.request)
        }
        try accept(offer.content, renewal, try await records.load(id))
        renewal.next.offer = offer.compact
        try await records.keep(renewal)
    }

    /// Refuses an offer that breaks a rule, or takes protection from a key.
    private func accept(
        _ offer: Offer, _ renewal: RenewalRecord, _ record: ContainerRecord
    ) throws(SigningError) {
        try Self.mapped { () throws(SigningProtocolError) in try offer.check(isRenewal: true) }
        guard offer.did == renewal.next.did, offer.identity == record.identity.thumbprint else {
            throw SigningError(.offerRefused, "The offer is for another container, or names another identity key.")
        }
        guard renewal.next.pid.map({ $0 == offer.pid }) ?? true,
            offer.commit == (renewal.hasCode ? .digits : .exchange)
        else { throw SigningError(.offerRefused, "The offer does not fit the renewal.") }
        let old = try Self.mapped { () throws(SigningProtocolError) in
            try UnverifiedMessage<Offer>(renewal.oldOffer).content
        }
        for key in offer.keys where key.slot == nil {
            // Under another name it would be the same loss.
            let others = old.keys.filter { $0.usage == key.usage }
            let isTaken =
                old.keys.contains { $0.label == key.label && $0.slot != nil }
                || (!others.isEmpty && others.allSatisfy { $0.slot != nil })
            guard !isTaken else {
                throw SigningError(.protectionPolicy, "The offer takes the password from the key \(key.label).")
            }
        }
        try checkPasswords(offer, renewing: record)
    }

    private func makeKeys(_ renewal: inout RenewalRecord, _ password: SigningPasswordPrompt?) async throws {
        let next = renewal.next
        for key in try next.offerContent()?.keys ?? [] where key.usage != .otp && key.slot == nil {
            let name = next.keyName(key.usage, key.label)
            if key.usage == .transport {
                guard try await keys.agreementKey(named: name) == nil else { continue }
                _ = try await keys.makeAgreementKey(named: name)
            } else {
                guard try await keys.signingKey(named: name) == nil else { continue }
                _ = try await keys.makeSigningKey(named: name, algorithm: .es256)
            }
        }
        renewal.next.slots = try await renewedSlots(renewal, password)
        renewal.next.nonceD = SigningNonce(random: random)
        try await records.keep(renewal)
    }

    private func commit(_ renewal: inout RenewalRecord) async throws {
        let next = renewal.next
        guard let nonceD = next.nonceD else { throw SigningError(.internal) }
        let list = try await SigningKeyList(
            publicKeys(next).map { key in
                SigningKeyList.Entry(
                    usage: key.usage, label: key.label, kid: key.kid, slot: key.slot, policy: key.policy,
                    keystore: key.keystore)
            })
        let body = CommitBody(commitment: .commitment(nonceD: nonceD, keys: list))
        let reply = try await call(next.id, .renewCommit, body) {
            try await self.verified($0.text, $0, as: NonceReply.self).content
        }
        guard StrictJSON.same(reply.sub, next.sub ?? "") else {
            throw SigningError(.serverAuthentication, "The server names another user.")
        }
        renewal.next.nonceS = reply.nonceS
        renewal.next.user = reply.user
        try await records.keep(renewal)
    }

    /// Signs the new key list with the new keys, and endorses it with the old ones.
    private func sign(_ renewal: inout RenewalRecord, _ password: SigningPasswordPrompt?) async throws {
        let enrol = try await signedKeyList(renewal.next, nil)
        renewal.endorsements = try await endorsements(of: enrol, renewal, password)
        renewal.next.enrol = enrol
        try await records.keep(renewal)
    }

    /// What old keys say of the new ones. A key behind a password is not asked after a reset.
    private func endorsements(
        of enrol: String, _ renewal: RenewalRecord, _ password: SigningPasswordPrompt?
    ) async throws -> [String] {
        let record = try await records.load(renewal.next.id)
        var signers = [try await deviceKey(record)]
        let old = try Self.mapped { () throws(SigningProtocolError) in
            try UnverifiedMessage<Offer>(renewal.oldOffer).content
        }
        let approving = old.keys.filter(\.usage.needsPossession)
        if let key = approving.first(where: { $0.slot != nil }), let slot = key.slot {
            if !renewal.hasCode { signers.append(try await endorser(record, slot, key.label, password)) }
        } else if let key = approving.first {
            signers.append(try await signingKey(record, key.usage, key.label))
        }
        guard let did = record.did else { throw SigningError(.internal) }
        var endorsements: [String] = []
        for signer in signers {
            let content = Endorsement(
                issuer: record.issuer, did: did, enrol: .enrolment(enrol), jti: SigningID(random: random))
            endorsements.append(try await SignedMessage.sign(content, with: signer).compact)
        }
        return endorsements
    }

    private func complete(_ renewal: inout RenewalRecord, _ password: SigningPasswordPrompt?) async throws {
        let next = renewal.next
        guard let enrol = next.enrol else { throw SigningError(.internal) }
        let transport = try await newTransportKey(next)
        func send(_ endorsements: [String]) async throws -> Enrolled {
            let body = CompleteBody(enrol: enrol, endorsements: endorsements)
            return try await call(next.id, .renewComplete, body) { received in
                // It is for the new transport key.
                let opened = try await self.opened(
                    Received(trust: received.trust, record: next, text: received.text, request: received.request),
                    with: transport)
                return try await self.verified(opened, received, as: Enrolled.self).content
            }
        }
        let reply: Enrolled
        do {
            reply = try await send(renewal.endorsements)
        } catch let error as SigningError where error.code == .unlockRequired && !renewal.hasCode {
            // The old password was typed too long ago.
            endorsers[next.id] = nil
            renewal.endorsements = try await endorsements(of: enrol, renewal, password)
            try await records.keep(renewal)
            reply = try await send(renewal.endorsements)
        }
        try await keep(reply.otp, offered: next)
        renewal.next.name = reply.name
        renewal.next.expires = reply.expiresAt
        renewal.next.renewable = reply.renewableFrom
        renewal.next.handle = reply.handle
        renewal.next.echo = reply.echo
        try await records.keep(renewal)
        forgetSealedKeys(next.id)
    }

    private func confirm(_ renewal: inout RenewalRecord) async throws {
        guard let echo = renewal.next.echo else { throw SigningError(.internal) }
        let status = try await ask(.renewConfirm, ConfirmBody(echo: echo), renewal.next)
        renewal.next.confirmed = true
        try await records.keep(renewal)
        try await take(renewal, status)
    }

    /// A call whose reply is a status, proved by the new device key.
    private func ask(
        _ kind: DeviceCall, _ body: some MessagePart, _ next: ContainerRecord
    ) async throws -> ContainerStatus {
        let key = try await deviceKey(next)
        return try await exchange(
            next.id, kind,
            prepare: { record, _ in
                guard let did = record.did else { throw SigningError(.internal) }
                return Prepared(plaintext: body.encoded(), sender: did.text, prover: (key, did))
            }, read: { try await self.status($0) })
    }

    // MARK: The end

    /// Asks with the new key whether it counts. An answer to the old one is not enough: old keys are removed only when
    /// the server has signed, for the new key, that the new keys are the container's.
    private func end(_ id: SigningID) async throws -> RenewalEnd {
        guard let renewal = try await records.renewal(of: id) else { return .none }
        let record = try await records.load(id)
        if record.keyID == renewal.next.keyID {
            try await removeOldKeys(renewal)
            return .done
        }
        // The answer to a confirmation may be lost: from the server's echo on, the new key may ask.
        guard renewal.next.echo != nil else { return .waiting }
        do {
            let status = try await ask(.status, EmptyBody(), renewal.next)
            if try await take(renewal, status) { return .done }
            return try await isEnded(status, id) ? .over : .waiting
        } catch let error as SigningError where error.code == .badProof {
            // Nobody has signed that: the old key must be told, too, that it is still the container's.
            let status = try await callOnce(id, .status, EmptyBody()) { try await self.status($0) }
            if try await isEnded(status, id) { return .over }
            guard try status.keys.contains(where: { try $0.kid == renewal.oldDeviceKey && $0.state == .active }) else {
                throw error
            }
            try await give(up: renewal)
            return .over
        }
    }

    /// Removes a container of which the server has signed that it has ended, its renewal with it.
    private func isEnded(_ status: ContainerStatus, _ id: SigningID) async throws -> Bool {
        guard status.state == .revoked || status.state == .void else { return false }
        try await adopt(status, id)
        return true
    }

    /// Takes new keys into use if a signed status says that they count.
    @discardableResult
    private func take(_ renewal: RenewalRecord, _ status: ContainerStatus) async throws -> Bool {
        guard let device = try renewal.next.enrolment()?.device.kid,
            status.keys.contains(where: { $0.kid == device && $0.state == .active })
        else { return false }
        let next = renewal.next
        try await records.modify(next.id) { record in
            record.keyID = next.keyID
            record.slots = next.slots
            record.offer = next.offer
            record.nonceD = next.nonceD
            record.nonceS = next.nonceS
            record.enrol = next.enrol
            record.echo = next.echo
            record.handle = next.handle
            record.name = next.name
            record.user = next.user
            record.renewable = next.renewable
            record.adopt(status)
        }
        forget(next.id)
        try await removeOldKeys(renewal)
        return true
    }

    func removeOldKeys(_ renewal: RenewalRecord) async throws {
        let offer = try Self.mapped { () throws(SigningProtocolError) in
            try UnverifiedMessage<Offer>(renewal.oldOffer).content
        }
        var old = renewal.next
        old.keyID = renewal.oldKeys
        for key in offer.keys where key.usage != .otp {
            try await keys.removeKey(named: old.keyName(key.usage, key.label))
        }
        try await records.removeRenewal(of: old.id)
    }

    /// Removes a renewal's keys but the device key: that may be the one with which the server can be told something.
    func removeKeys(of renewal: RenewalRecord) async throws {
        for key in try renewal.next.offerContent()?.keys ?? [] where key.usage != .device && key.usage != .otp {
            try await keys.removeKey(named: renewal.next.keyName(key.usage, key.label))
        }
        try await keys.removeKey(named: renewal.next.sealingKeyName)
        guard !renewal.next.slots.isEmpty else { return }
        var kept = renewal
        for index in kept.next.slots.indices { kept.next.slots[index].shred() }
        try await records.keep(kept)
    }

    /// Forgets a renewal and its keys; the old keys are the container's.
    func give(up renewal: RenewalRecord) async throws {
        for key in try renewal.next.offerContent()?.keys ?? [] where key.usage != .otp {
            try await keys.removeKey(named: renewal.next.keyName(key.usage, key.label))
        }
        let id = renewal.next.id
        forgetSealedKeys(id)
        if try await records.load(id).slots.isEmpty {
            try await keys.removeKey(named: renewal.next.sealingKeyName)
        }
        try await records.removeRenewal(of: id)
    }
}

extension RenewalRecord {
    /// The thumbprint of the device key that is to be replaced: the offer of the renewal is for it.
    var oldDeviceKey: KeyThumbprint? {
        get throws { try next.offerContent().flatMap { KeyThumbprint(text: $0.head.audience) } }
    }
}

extension SigningError.Code {
    static let badProof = Self("bad_proof")
}
