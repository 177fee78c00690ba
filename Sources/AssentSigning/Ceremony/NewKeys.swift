import AssentCore
import AssentJOSE
import AssentSigningProtocol

/// Performs the steps of ``KeyCeremony``: each is stored before the next call. The caller has the lease.
struct NewKeys: Sendable {
    let parts: DeviceParts

    /// Goes on until the server has confirmed the keys.
    func run(_ work: inout KeyWork, _ prompt: SigningPasswordPrompt?) async throws {
        var ceremony = work.ceremony
        while true {
            ceremony.goOn(at: work.next.phase)
            switch ceremony.next(try await sealedKeys(work.next)) {
            case .start: try await start(&work)
            case .makeKeys: try await makeKeys(&work, prompt)
            case .makeKeysAgain: try await work.take(.keysForgotten, in: parts.records)
            case .commit(let made):
                do {
                    try await commit(made, &work)
                } catch let error as SigningError {
                    try await askAgain(after: error, &work, &ceremony)
                }
            case .sign(let committed):
                let enrol = try await signedKeyList(committed, work, prompt)
                if case .renewal(var renewal) = work {
                    renewal.endorsements = try await parts.renewals.endorsements(of: enrol, renewal, prompt)
                    work = .renewal(renewal)
                }
                try await work.take(.signed(enrol: enrol), in: parts.records)
            case .complete(let signed):
                do {
                    try await complete(signed, &work, prompt)
                } catch let error as SigningError {
                    guard ceremony.refused(error.code) == .endorseAgain, case .renewal(var renewal) = work else {
                        throw error
                    }
                    await parts.memory.keep(endorser: nil, renewal.next.id)
                    renewal.endorsements = try await parts.renewals.endorsements(of: signed.enrol, renewal, prompt)
                    try await parts.records.keep(renewal)
                    work = .renewal(renewal)
                }
            case .confirm(_, let echo): try await confirm(echo, &work)
            case .done: return
            case .fail: throw Self.lost(isRenewal: work.isRenewal)
            }
        }
    }

    /// Whether this process has the private keys that are sealed.
    private func sealedKeys(_ next: ContainerRecord) async throws -> KeyCeremony.SealedKeys {
        guard !next.slots.isEmpty, await parts.memory.unsealedKeys(next.id) == nil else { return .open }
        let transport = try next.offerContent()?.keys.first { $0.usage == .transport }
        return .lost(
            isAssisted: next.slots.contains { $0.mode == .assisted }, hasTransport: transport?.slot != nil)
    }

    /// Whether the new keys cannot be opened any more, so that nothing comes of them.
    func areLost(_ work: KeyWork) async throws -> Bool {
        work.ceremony.next(try await sealedKeys(work.next)) == .fail
    }

    private static func lost(isRenewal: Bool) -> SigningError {
        guard isRenewal else {
            return SigningError(
                .enrolmentVoid, "The keys of this enrolment cannot be opened any more, because the process has ended.")
        }
        return SigningError(
            .enrolmentVoid, "The new keys cannot be opened any more, because the process has ended.",
            suggestion: "Renew again. After a reset ask for a new code.")
    }

    /// The container at the server: until the new keys are its own, its old ones prove each call.
    private func current(_ work: KeyWork) async throws -> ContainerRecord {
        switch work {
        case .enrolment(let record): record
        case .renewal(let renewal): try await parts.records.load(renewal.next.id)
        }
    }

    // MARK: Start

    private func start(_ work: inout KeyWork) async throws {
        let offer = try await offer(work)
        try await work.take(.offer(offer), in: parts.records)
    }

    /// Asks for an offer, and accepts it. Nothing of it is stored.
    func offer(_ work: KeyWork) async throws -> SignedMessage<Offer> {
        let record = try await current(work)
        let (request, audience) = try await opening(work, record)
        let offer = try await parts.calls.ask(request, of: record, by: .given) { received in
            try received.trust.reply(
                received.text, as: Offer.self, audience: audience.text, request: received.request)
        }
        let all = try await parts.records.all()
        // The call may have read a newer configuration.
        guard let now = all.first(where: { $0.id == record.id }) else { throw SigningError(.invalidContainer) }
        let rules = OfferRules(parts: parts)
        switch work {
        case .enrolment: try rules.check(offer.content, for: now, others: all.filter { $0.id != now.id })
        case .renewal(let renewal): try rules.check(offer.content, for: renewal, of: now)
        }
        return offer
    }

    /// What asks for an offer, and the device key for which the offer is.
    private func opening(_ work: KeyWork, _ record: ContainerRecord) async throws -> (Request, KeyThumbprint) {
        switch work {
        case .enrolment:
            let key = try await parts.provider.makeSigning(record, .device, "")
            let jwk = try SigningError.mapped(try ProtocolKey(key))
            let configuration = parts.configuration
            let modes = ProtectionMode.allCases.filter(configuration.modes.contains)
            guard !modes.isEmpty else { throw SigningError(.invalidArgument, "The configuration allows no mode.") }
            let info = configuration.info.said(parts.keys.kind)
            return (Request(StartMessage(key: key, jwk: jwk, modes: modes, info: info)), jwk.thumbprint)
        case .renewal(let renewal):
            let old = try await ProtocolKey(parts.provider.device(record)).thumbprint
            let body = RenewStartBody(code: renewal.hasCode ? renewal.next.code : nil)
            return (Request(.renewStart, body), old)
        }
    }

    // MARK: Keys

    private func makeKeys(_ work: inout KeyWork, _ prompt: SigningPasswordPrompt?) async throws {
        guard let offer = try work.next.offerContent() else { throw SigningError(.internal) }
        let (passwords, next) = (parts.newPasswords, work.next)
        try await parts.provider.make(offer, next, withDeviceKey: work.isRenewal)
        var typed: [PasswordSlot: NewPasswords.Typed] = [:]
        if let (renewal, old) = try await passwords.toType(work) {
            for kept in old.slots {
                let text = try await passwords.current(kept, old, prompt)
                // It is counted like any other try.
                let opened = try await parts.passwords.opened(old.id, kept.slot, text, for: .change, by: .given)
                typed[kept.slot] = try await passwords.typed(text, opened, kept, renewal)
            }
        }
        if !offer.slots.isEmpty { try await parts.provider.makeAgreement(named: next.sealingKeyName) }
        var (secrets, slots, scalars) = ([Secret](), [SlotRecord](), [String: Secret]())
        for offered in offer.slots {
            let policy = try next.knownPolicy(offered.slot)
            let chosen = try await passwords.choose(offered, policy, typed[offered.slot], offer, next, prompt)
            // A guess at the weaker of two would be one at the other.
            guard !secrets.contains(chosen.password.secret) else { throw SigningError.invalid(.other) }
            secrets.append(chosen.password.secret)
            let plan = try await passwords.plan(offered, policy, chosen.password, work)
            let sealed = try await passwords.sealed(plan, chosen, offer, next)
            slots.append(sealed.record)
            scalars.merge(sealed.scalars) { _, new in new }
        }
        if !slots.isEmpty { await parts.memory.keep(unsealed: scalars, next.id) }
        let made = slots
        try await work.take(.keys(nonceD: SigningNonce(random: parts.random)), in: parts.records) { $0.slots = made }
    }

    private func commit(_ made: KeyPhase.MadeKeys, _ work: inout KeyWork) async throws {
        let list = try await SigningKeyList(parts.provider.list(work.next))
        let body = CommitBody(commitment: .commitment(nonceD: made.nonceD, keys: list), offer: .offer(made.offer))
        let request = Request(work.isRenewal ? .renewCommit : .commit, body)
        let reply = try await parts.calls.ask(request, of: current(work), by: .given) { received in
            try await parts.calls.verified(received, as: NonceReply.self).content
        }
        do {
            try await work.take(.nonce(reply), in: parts.records)
        } catch let error as SigningProtocolError {
            throw SigningError(error)
        }
    }

    /// Goes back to the beginning, with the same invite or container, if the server has replaced the offer. The offer
    /// is stored until its keys are removed: a process that ends meanwhile finds them.
    ///
    /// - Throws: the error, unless it means that; ``SigningError`` `offerReplaced` when that has happened too often.
    private func askAgain(
        after error: SigningError, _ work: inout KeyWork, _ ceremony: inout KeyCeremony
    ) async throws {
        switch ceremony.refused(error.code) {
        case .askAgain: break
        case .stopAsking: throw SigningError(.offerReplaced)
        case .endorseAgain, .giveUp, .fail: throw error
        }
        let offer = try work.next.offerContent()
        await parts.memory.forgetNewKeys(work.next.id)
        try await work.take(.keysForgotten, in: parts.records)
        try await parts.provider.remove(offer, work.next, withDeviceKey: work.isRenewal)
        try await work.take(.offerForgotten, in: parts.records)
    }

    /// The key list, signed by the device key that is in it.
    private func signedKeyList(
        _ committed: KeyPhase.CommittedKeys, _ work: KeyWork, _ prompt: SigningPasswordPrompt?
    ) async throws -> String {
        let record = work.next
        guard let pid = try record.offerContent()?.pid, let sub = record.sub else { throw SigningError(.internal) }
        let (did, nonceS) = (try record.knownDid, committed.nonceS)
        let deviceKey = try await parts.provider.device(record)
        let device = try ProtocolKey(deviceKey).thumbprint
        var keys: [EnrolledKey] = []
        for var key in try await parts.provider.list(record) {
            if key.usage.needsPossession {
                let proof = KeyPossession(
                    issuer: record.issuer, did: did, nonceS: nonceS, device: device, usage: key.usage,
                    label: key.label, kid: key.kid)
                let signer: any SigningKey
                if let slot = key.slot {
                    signer = try OpenedKeys.signingKey(await newKey(work, slot, key.label, prompt))
                } else {
                    signer = try await parts.provider.signing(record, key.usage, key.label)
                }
                key.possession = try await SignedMessage.sign(proof, with: signer).compact
            }
            keys.append(key)
        }
        return try await SignedMessage.sign(
            Enrolment(
                issuer: record.issuer, pid: pid, did: did, sub: sub, offer: .offer(committed.made.offer),
                nonceD: committed.made.nonceD, nonceS: nonceS, keys: keys), with: deviceKey
        ).compact
    }

    /// A private key that is sealed: this process has it, or a `local` password of a new container opens it.
    private func newKey(
        _ work: KeyWork, _ slot: PasswordSlot, _ label: String, _ prompt: SigningPasswordPrompt?
    ) async throws -> Secret {
        let record = work.next
        if let scalar = await parts.memory.unsealedKeys(record.id)?[label] { return scalar }
        guard !work.isRenewal, record.slotRecord(slot)?.mode == .local else {
            throw Self.lost(isRenewal: work.isRenewal)
        }
        let password = try await parts.newPasswords.ask(prompt, isNew: false, record, slot, .local)
        let opened = try await parts.passwords.opened(record.id, slot, password, for: .use, by: .given)
        guard let scalar = opened.contents[label]?.scalar else { throw SigningError(.credentialsLost) }
        // Asked once, for all that is left.
        await parts.memory.keep(unsealed: opened.contents.mapValues(\.scalar), record.id)
        return scalar
    }

    // MARK: End

    private func complete(
        _ signed: KeyPhase.SignedKeys, _ work: inout KeyWork, _ prompt: SigningPasswordPrompt?
    ) async throws {
        let transport = try await newTransportKey(work, prompt)
        let reply = try await parts.calls.ask(completion(signed, work), of: current(work), by: .given) { received in
            try await parts.calls.verified(received.opened(with: transport), as: Enrolled.self).content
        }
        try await OneTimeCodes(parts: parts).keep(reply.otp, offered: work.next)
        try await work.take(.enrolled(reply), in: parts.records)
        await parts.memory.forgetNewKeys(work.next.id)
    }

    private func completion(_ signed: KeyPhase.SignedKeys, _ work: KeyWork) -> Request {
        switch work {
        case .enrolment(let record):
            let pushID = record.pushID.flatMap { $0.isEmpty ? nil : $0 }
            return Request(.complete, CompleteBody(enrol: signed.enrol, name: record.name, pushId: pushID))
        case .renewal(let renewal):
            return Request(.renewComplete, CompleteBody(enrol: signed.enrol, endorsements: renewal.endorsements))
        }
    }

    /// The key that the reply to `complete` is for.
    private func newTransportKey(
        _ work: KeyWork, _ prompt: SigningPasswordPrompt?
    ) async throws -> any KeyAgreementKey {
        guard let offered = try work.next.offerContent()?.keys.first(where: { $0.usage == .transport }) else {
            throw SigningError(.credentialsLost)
        }
        guard let slot = offered.slot else { return try await parts.provider.transport(work.next, offered.label) }
        return try OpenedKeys.agreementKey(await newKey(work, slot, offered.label, prompt))
    }

    private func confirm(_ echo: SigningNonce, _ work: inout KeyWork) async throws {
        let body = ConfirmBody(echo: echo)
        switch work {
        case .enrolment(let record):
            let status = try await parts.calls.ask(
                Request(.confirm, body), of: record, by: .given, read: parts.calls.status)
            try await work.take(.confirmed, in: parts.records) { $0.adopt(status, askedAfter: $0.statuses) }
        case .renewal(let renewal):
            let key = try await parts.provider.device(renewal.next)
            let status = try await parts.calls.ask(
                Request(.renewConfirm, body), of: current(work), by: .new(key), read: parts.calls.status)
            try await work.take(.confirmed, in: parts.records)
            if case .renewal(let confirmed) = work { try await parts.renewals.take(confirmed, status) }
        }
    }
}

extension SigningDeviceConfiguration.Info {
    /// What is said to the server. What cannot be shown is not worth an enrolment.
    fileprivate func said(_ keystore: String) -> [String: String] {
        let all = [
            "brand": brand, "model": model, "os": system, "locale": locale, "sdk": "assent", "keystore": keystore,
        ]
        return all.compactMapValues { $0 }.filter { (try? ShownText.check($0.value, 1...64, at: "info")) != nil }
    }
}
