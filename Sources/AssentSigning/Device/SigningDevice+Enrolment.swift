import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Foundation

extension SigningDevice {
    /// Enrols this device: makes keys and has the server accept them. Then the user types the digits of the result into
    /// the page that made the invite, and the container becomes active.
    ///
    /// If it fails on the way, call it again with the same invite, or ``resumeEnrolment(_:password:)``: it goes on
    /// where it was.
    ///
    /// - Parameters:
    ///   - invite: what was scanned or typed.
    ///   - name: what the container is to be called, 1 to 128 characters.
    ///   - pushID: where push messages go.
    ///   - password: asks the user for each password that the server's policy wants. Without it such an enrolment
    ///     stops with code `passwordRequired`.
    /// - Returns: the digits, and the names that are shown with them.
    /// - Throws: ``SigningError``, for example with code `invalid_code`, `untrustedIssuer`, `untrustedIdentity`,
    ///   `protectionPolicy`, `invalidPassword` with the rule that a password breaks; and what `password` throws.
    public func enrol(
        _ invite: SigningInvite, name: String? = nil, pushID: String? = nil, password: SigningPasswordPrompt? = nil
    ) async throws -> SigningEnrolment {
        if let known = configuration.issuers, !known.contains(where: { StrictJSON.same($0, invite.issuer) }) {
            throw SigningError(.untrustedIssuer)
        }
        try Self.check(name: name, pushID: pushID)
        guard Keystore(rawValue: keys.kind) != nil else {
            throw SigningError(.unsupportedDevice, "The protocol cannot name keys of the kind \(keys.kind).")
        }
        // Two taps on one button are one enrolment: an invite is good for one commitment.
        let id = try await records.store.withExclusiveAccess("signing.enrolment", deadline: enrolmentDeadline) {
            try await self.begun(invite, name: name, pushID: pushID)
        }
        return try await advance(id, password)
    }

    /// The enrolment of this invite: one that was begun before, or a new one.
    private func begun(_ invite: SigningInvite, name: String?, pushID: String?) async throws -> SigningID {
        let all = try await records.all().filter { StrictJSON.same($0.issuer, invite.issuer) && !$0.ended }
        if let begun = all.first(where: { $0.code == invite.code && $0.deletion == nil }) { return begun.id }
        let (answer, nonce) = try await answered { try await calls.configuration(of: invite.issuer) }
        let record = try Self.mapped { () throws(SigningProtocolError) in
            try Self.begin(
                invite, answer, others: all, name: name, pushID: pushID, id: SigningID(random: random),
                now: Int(clock.epochSeconds))
        }
        nonces[invite.issuer] = nonce
        try await records.insert(record)
        return record.id
    }

    private var enrolmentDeadline: Date { clock.now.addingTimeInterval(120) }

    static func check(name: String?, pushID: String?) throws(SigningError) {
        if let name {
            do {
                try ShownText.check(name, 1...128, at: "name")
            } catch {
                throw SigningError(.invalidArgument, error.detail)
            }
        }
        guard pushID.map({ $0.utf8.count <= 1024 && $0.utf8.allSatisfy(\.isASCIIPrintable) }) ?? true else {
            throw SigningError(.invalidArgument, "A push address has at most 1024 printable ASCII characters.")
        }
    }

    /// What an enrolment begins with: the issuer's identity key is the scanned or the pinned one, and the invite is the
    /// server's.
    private static func begin(
        _ invite: SigningInvite, _ configuration: IssuerConfiguration, others: [ContainerRecord], name: String?,
        pushID: String?, id: SigningID, now: Int
    ) throws(SigningProtocolError) -> ContainerRecord {
        let scanned = invite.scanned?.content
        var anchor = scanned.map { IssuerTrust.Anchor.thumbprint($0.identity) } ?? .none
        if let pinned = others.last(where: { $0.step == .done })?.identity { anchor = .pinned(pinned) }
        let minimum = others.reduce(1) { max($0, $1.minimum) }
        let trust = try IssuerTrust(configuration, issuer: invite.issuer, anchor: anchor, minimum: minimum)
        if let message = invite.scanned {
            guard message.content.identity == trust.identity.thumbprint else {
                throw SigningProtocolError(
                    .untrustedIdentity, "The server's identity key is not the one that the invite names.")
            }
            _ = try trust.verified(message.compact, as: Invite.self)
        }
        return ContainerRecord(
            format: 1, id: id, issuer: invite.issuer, issuerName: configuration.name, identity: trust.identity,
            minimum: trust.minimum, certificates: trust.certificates.map(\.compact), created: now, code: invite.code,
            pid: scanned?.pid, name: name, pushID: pushID, state: .unconfirmed, approvals: 0, serverTime: 0,
            properties: [:])
    }

    /// Goes on with an enrolment that was interrupted.
    ///
    /// - Parameters:
    ///   - id: the enrolment.
    ///   - password: as for ``enrol(_:name:pushID:password:)``. A `local` password may be asked again.
    /// - Returns: the digits, and the names that are shown with them.
    /// - Throws: ``SigningError`` with code `invalidContainer` when there is none with this id, `enrolment_void` when
    ///   the process has ended between the making of keys behind an `assisted` password and the server's answer: begin
    ///   again with a new invite.
    public func resumeEnrolment(
        _ id: UnfinishedEnrolment.ID, password: SigningPasswordPrompt? = nil
    ) async throws -> SigningEnrolment {
        guard let id = SigningID(text: id) else { throw SigningError(.invalidContainer) }
        return try await advance(id, password)
    }

    /// Enrolments that were interrupted, the oldest first.
    ///
    /// - Throws: ``SigningError`` with code `secureData`.
    public func unfinishedEnrolments() async throws -> [UnfinishedEnrolment] {
        try await records.all().filter { $0.step != .done && !$0.ended }.map(UnfinishedEnrolment.init)
    }

    /// Gives up an enrolment that was interrupted, and removes its keys. The server forgets it by itself.
    ///
    /// - Throws: ``SigningError`` with code `invalidContainer` when there is none with this id, or it is finished.
    public func abandonEnrolment(_ id: UnfinishedEnrolment.ID) async throws {
        guard let id = SigningID(text: id), try await records.load(id).step != .done else {
            throw SigningError(.invalidContainer)
        }
        try await removeAll(of: records.modify(id) { $0.ended = true })
    }

    /// Does what is left of an enrolment, step by step; nobody else does at the same time.
    private func advance(_ id: SigningID, _ password: SigningPasswordPrompt?) async throws -> SigningEnrolment {
        let name = "signing.enrolment.\(id.text)"
        return try await records.store.withExclusiveAccess(name, deadline: enrolmentDeadline) {
            while true {
                let record = try await self.records.load(id)
                switch record.step {
                case .start: try await self.start(record)
                case .makeKeys: try await self.makeKeys(record, password)
                case .commit: try await self.commit(record)
                case .sign: try await self.sign(record, password)
                case .complete: try await self.complete(record, password)
                case .confirm: try await self.confirm(record)
                case .done:
                    guard let value = try record.enrolmentValue() else { throw SigningError(.internal) }
                    return value
                }
            }
        }
    }

    private func start(_ record: ContainerRecord) async throws {
        let name = record.keyName(.device, "")
        let key: any SigningKey
        if let made = try await keys.signingKey(named: name) {
            key = made
        } else {
            key = try await keys.makeSigningKey(named: name, algorithm: .es256)
        }
        let jwk = try Self.mapped { () throws(SigningProtocolError) in try ProtocolKey(key) }
        let (info, modes) = (self.info, ProtectionMode.allCases.filter(configuration.modes.contains))
        guard !modes.isEmpty else { throw SigningError(.invalidArgument, "The configuration allows no mode.") }
        let offer = try await exchange(
            record.id, .start,
            prepare: { record, nonce in
                let start = try await SignedMessage.sign(
                    Start(
                        issuer: record.issuer, code: record.code, nonce: nonce, jwk: jwk, modes: modes,
                        info: info),
                    with: key)
                return Prepared(
                    plaintext: StartBody(start: start.compact).encoded(), sender: jwk.thumbprint.text, prover: nil,
                    start: start.compact)
            },
            read: { received in
                try received.trust.reply(
                    received.text, as: Offer.self, audience: jwk.thumbprint.text, request: received.request)
            })
        let all = try await records.all()
        // The call may have read a newer configuration.
        guard let current = all.first(where: { $0.id == record.id }) else { throw SigningError(.invalidContainer) }
        try Self.accept(offer.content, for: current, others: all.filter { $0.id != record.id })
        try checkPasswords(offer.content)
        try await records.modify(record.id) {
            $0.offer = offer.compact
            $0.did = offer.content.did
            $0.issuerName = offer.content.name
        }
    }

    private var info: [String: String] {
        let said = configuration.info
        let all = [
            "brand": said.brand, "model": said.model, "os": said.system, "locale": said.locale, "sdk": "assent",
            "keystore": keys.kind,
        ]
        // What cannot be shown is not worth an enrolment.
        return all.compactMapValues { $0 }.filter { (try? ShownText.check($0.value, 1...64, at: "info")) != nil }
    }

    /// Refuses an offer that breaks a rule, or that this device cannot fulfil.
    private static func accept(
        _ offer: Offer, for record: ContainerRecord, others: [ContainerRecord]
    ) throws(SigningError) {
        try mapped { () throws(SigningProtocolError) in try offer.check() }
        guard offer.identity == record.identity.thumbprint else {
            throw SigningError(.offerRefused, "The offer names another identity key.")
        }
        guard record.pid.map({ $0 == offer.pid }) ?? true, !others.contains(where: { $0.did == offer.did }) else {
            throw SigningError(.offerRefused, "The offer is for another invite, or for a container that exists.")
        }
        guard offer.commit == .digits || record.pid != nil else {
            throw SigningError(.offerRefused, "The offer asks for no digits although the invite was typed.")
        }
    }

    private func makeKeys(_ record: ContainerRecord, _ password: SigningPasswordPrompt?) async throws {
        for key in try record.offerContent()?.keys ?? []
        where key.usage != .device && key.usage != .otp && key.slot == nil {
            let name = record.keyName(key.usage, key.label)
            if key.usage == .transport {
                guard try await keys.agreementKey(named: name) == nil else { continue }
                _ = try await keys.makeAgreementKey(named: name)
            } else {
                guard try await keys.signingKey(named: name) == nil else { continue }
                _ = try await keys.makeSigningKey(named: name, algorithm: .es256)
            }
        }
        let slots = try await sealedSlots(record, password)
        try await records.modify(record.id) {
            guard $0.nonceD == nil else { return }
            $0.slots = slots
            $0.nonceD = SigningNonce(random: random)
        }
    }

    private func commit(_ record: ContainerRecord) async throws {
        guard let nonceD = record.nonceD else { throw SigningError(.internal) }
        // One commitment is all that an invite takes: what could not be completed is not committed to.
        try checkCompletable(record)
        let list = try await SigningKeyList(
            publicKeys(record).map { key in
                SigningKeyList.Entry(
                    usage: key.usage, label: key.label, kid: key.kid, slot: key.slot, policy: key.policy,
                    keystore: key.keystore)
            })
        let commitment = SigningHash.commitment(nonceD: nonceD, keys: list)
        let reply = try await call(record.id, .commit, CommitBody(commitment: commitment)) {
            try await self.verified($0.text, $0, as: NonceReply.self).content
        }
        try await records.modify(record.id) {
            $0.nonceS = reply.nonceS
            $0.sub = reply.sub
            $0.user = reply.user
        }
    }

    /// The keys in the offer's order, without proofs of possession.
    func publicKeys(_ record: ContainerRecord) async throws -> [EnrolledKey] {
        guard let offer = try record.offerContent(), let plain = Keystore(rawValue: keys.kind),
            let sealed = Keystore(rawValue: "software+" + keys.kind)
        else { throw SigningError(.internal) }
        var list: [EnrolledKey] = []
        for key in offer.keys where key.usage != .otp {
            let jwk: ProtocolKey
            if let slot = key.slot {
                guard let kept = record.slotRecord(slot)?.current.keys.first(where: { $0.label == key.label }) else {
                    throw SigningError(.credentialsLost)
                }
                jwk = kept.jwk
            } else if key.usage == .transport {
                jwk = try await ProtocolKey(transportKey(record))
            } else {
                jwk = try await ProtocolKey(signingKey(record, key.usage, key.label))
            }
            list.append(
                EnrolledKey(
                    usage: key.usage, label: key.label, kid: jwk.thumbprint, jwk: jwk, policy: key.policy,
                    keystore: key.slot == nil ? plain : sealed, slot: key.slot))
        }
        return list
    }

    private func sign(_ record: ContainerRecord, _ password: SigningPasswordPrompt?) async throws {
        let enrol = try await signedKeyList(record, password)
        try await records.modify(record.id) { $0.enrol = $0.enrol ?? enrol }
    }

    /// The key list, signed by the device key of this record.
    func signedKeyList(_ record: ContainerRecord, _ password: SigningPasswordPrompt?) async throws -> String {
        guard let offer = record.offer, let pid = try record.offerContent()?.pid, let did = record.did,
            let nonceD = record.nonceD, let nonceS = record.nonceS, let sub = record.sub
        else { throw SigningError(.internal) }
        let deviceKey = try await deviceKey(record)
        let device = try ProtocolKey(deviceKey).thumbprint
        var keys: [EnrolledKey] = []
        for key in try await publicKeys(record) {
            var possession: String?
            if key.usage.needsPossession {
                let proof = KeyPossession(
                    issuer: record.issuer, did: did, nonceS: nonceS, device: device, usage: key.usage, label: key.label,
                    kid: key.kid)
                let signer: any SigningKey
                if let slot = key.slot {
                    signer = try OpenedKeys.signingKey(await enrolmentKey(record, slot, key.label, password))
                } else {
                    signer = try await signingKey(record, key.usage, key.label)
                }
                possession = try await SignedMessage.sign(proof, with: signer).compact
            }
            keys.append(
                EnrolledKey(
                    usage: key.usage, label: key.label, kid: key.kid, jwk: key.jwk, policy: key.policy,
                    keystore: key.keystore, slot: key.slot, possession: possession))
        }
        return try await SignedMessage.sign(
            Enrolment(
                issuer: record.issuer, pid: pid, did: did, sub: sub, offer: .offer(offer), nonceD: nonceD,
                nonceS: nonceS, keys: keys), with: deviceKey
        ).compact
    }

    private func complete(_ record: ContainerRecord, _ password: SigningPasswordPrompt?) async throws {
        guard let enrol = record.enrol else { throw SigningError(.internal) }
        let pushID = record.pushID.flatMap { $0.isEmpty ? nil : $0 }
        let body = CompleteBody(enrol: enrol, name: record.name, pushId: pushID)
        let transport: any KeyAgreementKey
        if let offered = try record.offerContent()?.keys.first(where: { $0.usage == .transport }),
            let slot = offered.slot
        {
            transport = try OpenedKeys.agreementKey(await enrolmentKey(record, slot, offered.label, password))
        } else {
            transport = try await transportKey(record)
        }
        let reply = try await call(record.id, .complete, body) {
            try await self.verified(self.opened($0, with: transport), $0, as: Enrolled.self).content
        }
        try await keep(reply.otp, offered: record)
        try await records.modify(record.id) {
            $0.serial = reply.serial
            $0.name = reply.name
            $0.expires = reply.expiresAt
            $0.renewable = reply.renewableFrom
            $0.echo = reply.echo
            $0.handle = reply.handle
        }
        unsealedKeys[record.id] = nil
    }

    private func confirm(_ record: ContainerRecord) async throws {
        guard let echo = record.echo else { throw SigningError(.internal) }
        let status = try await call(record.id, .confirm, ConfirmBody(echo: echo)) {
            try await self.status($0)
        }
        try await records.modify(record.id) {
            $0.confirmed = true
            $0.adopt(status)
        }
    }
}

/// An enrolment that was interrupted.
public struct UnfinishedEnrolment: Sendable, Hashable, Identifiable {
    /// This device's own name of it.
    public let id: String

    /// The issuer.
    public let issuer: String

    /// The issuer's name; nobody has signed it before the server has answered.
    public let issuerName: String

    init(_ record: ContainerRecord) {
        id = record.id.text
        issuer = record.issuer
        issuerName = record.issuerName
    }
}
