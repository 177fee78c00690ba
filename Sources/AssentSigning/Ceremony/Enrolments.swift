import AssentCore
import AssentSigningProtocol

/// Begins enrolments, and goes on with those that were interrupted.
struct Enrolments: Sendable {
    let parts: DeviceParts

    /// Begins an enrolment, or finds the one that was begun with this invite.
    func begin(
        _ invite: SigningInvite, name: String?, pushID: String?, isOwn: Bool = false
    ) async throws -> SigningID {
        if let known = parts.configuration.issuers, !known.contains(where: { StrictJSON.same($0, invite.issuer) }) {
            throw SigningError(.untrustedIssuer)
        }
        try Containers.check(name: name, pushID: pushID)
        guard Keystore(rawValue: parts.keys.kind) != nil else {
            throw SigningError(.unsupportedDevice, "The protocol cannot name keys of the kind \(parts.keys.kind).")
        }
        // An invite is good for one commitment.
        let held = try await parts.hold(.begin)
        do {
            let id = try await begun(invite, name: name, pushID: pushID, isOwn: isOwn)
            await held.release()
            return id
        } catch {
            await held.release()
            throw error
        }
    }

    /// Does what is left of an enrolment.
    func resume(_ id: SigningID, _ password: SigningPasswordPrompt?) async throws -> SigningEnrolment {
        let held = try await parts.hold(.enrolment(id))
        do {
            var work = KeyWork.enrolment(try await parts.records.load(id))
            try await parts.newKeys.run(&work, password)
            guard let value = try work.next.enrolmentValue() else { throw SigningError(.internal) }
            await held.release()
            return value
        } catch {
            await held.release()
            throw error
        }
    }

    /// The enrolment of this invite: one that was begun before, or a new one.
    private func begun(
        _ invite: SigningInvite, name: String?, pushID: String?, isOwn: Bool
    ) async throws -> SigningID {
        let all = try await parts.records.all().filter { StrictJSON.same($0.issuer, invite.issuer) && !$0.ended }
        if let begun = all.first(where: { $0.code == invite.code && $0.deletion == nil }) { return begun.id }
        let (answer, nonce) = try await parts.calls.configuration(of: invite.issuer, sends: parts.calls.sends(.status))
        let trust = try SigningError.mapped(try Self.trust(invite, answer, others: all))
        var record = ContainerRecord(
            id: SigningID(random: parts.random), invite, issuerName: answer.name, trust,
            created: Int(parts.clock.epochSeconds))
        (record.name, record.pushID, record.isOwn) = (name, pushID, isOwn)
        await parts.memory.keep(nonce: nonce, of: invite.issuer)
        try await parts.records.insert(record)
        return record.id
    }

    /// What an enrolment begins with: the issuer's identity key is the scanned or the pinned one, and the invite is the
    /// server's.
    private static func trust(
        _ invite: SigningInvite, _ configuration: IssuerConfiguration, others: [ContainerRecord]
    ) throws(SigningProtocolError) -> IssuerTrust {
        var anchor = invite.scanned.map { IssuerTrust.Anchor.thumbprint($0.content.identity) } ?? .none
        if let pinned = others.last(where: { $0.phase.isConfirmed })?.identity { anchor = .pinned(pinned) }
        let minimum = others.reduce(1) { max($0, $1.minimum) }
        let trust = try IssuerTrust(configuration, issuer: invite.issuer, anchor: anchor, minimum: minimum)
        if let message = invite.scanned {
            guard message.content.identity == trust.identity.thumbprint else {
                throw SigningProtocolError(
                    .untrustedIdentity, "The server's identity key is not the one that the invite names.")
            }
            _ = try trust.verified(message.compact, as: Invite.self)
        }
        return trust
    }
}
