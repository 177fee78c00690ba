import AssentCore
import AssentSigningProtocol

extension ContainerRecord {
    /// Takes an event of the ceremony that gives it keys.
    ///
    /// - Returns: whether it belongs to the phase; else nothing is changed.
    mutating func take(
        _ event: KeyCeremony.Event, in beginning: KeyCeremony.Beginning
    ) throws(SigningProtocolError) -> Bool {
        var ceremony = KeyCeremony(beginning, at: phase)
        guard try ceremony.take(event) else { return false }
        phase = ceremony.phase
        switch event {
        case .offer(let offer):
            did = offer.content.did
            if !ceremony.isRenewal { issuerName = offer.content.name }
        case .nonce(let reply): (sub, user) = (reply.sub, reply.user)
        case .enrolled(let reply):
            if !ceremony.isRenewal { serial = reply.serial }
            (name, handle) = (reply.name, reply.handle)
            (expires, renewable) = (reply.expiresAt, reply.renewableFrom)
        case .keysForgotten: slots = []
        case .keys, .offerForgotten, .signed, .confirmed: break
        }
        return true
    }

    /// The container's id; an error of the SDK's own before there is one.
    var knownDid: SigningID {
        get throws(SigningError) {
            guard let did else { throw SigningError(.internal) }
            return did
        }
    }

    /// The name of a key at the key provider.
    func keyName(_ usage: SigningKeyUsage, _ label: String) -> String {
        let prefix = "tsp.\(keyID ?? id)"
        return usage == .device ? "\(prefix):device" : "\(prefix).\(label)"
    }

    /// The name of the provider's key for which sealed keys are sealed once more.
    var sealingKeyName: String { "tsp.\(id):seal" }

    /// The offer, which was verified when it came.
    func offerContent() throws(SigningProtocolError) -> Offer? {
        try phase.offer.map { compact throws(SigningProtocolError) in try UnverifiedMessage<Offer>(compact).content }
    }

    /// The key list, which this device signed.
    func enrolment() throws(SigningProtocolError) -> Enrolment? {
        try phase.signed.map { signed throws(SigningProtocolError) in
            try UnverifiedMessage<Enrolment>(signed.enrol).content
        }
    }

    /// What this device trusts of the issuer.
    func trust() throws(SigningProtocolError) -> IssuerTrust {
        try IssuerTrust(issuer: issuer, identity: identity, minimum: minimum, certificates: certificates)
    }

    /// Takes over what a newer configuration says.
    mutating func adopt(_ trust: IssuerTrust) {
        identity = trust.identity
        minimum = max(minimum, trust.minimum)
        certificates = trust.certificates.map(\.compact)
    }

    /// Takes over what the server says of the container. `known` is what ``statuses`` was when the server was asked. If
    /// another status has been taken over since, the one that was signed later is right, and of two that were signed in
    /// the same second the stricter one. Otherwise this one is right whatever its time is: the clocks of the server's
    /// nodes differ.
    mutating func adopt(_ status: ContainerStatus, askedAfter known: Int?) {
        let order = StatusOrder(status.head.issuedAt, after: statuses == known ? nil : statusAt)
        for said in status.slots { modify(said.slot) { $0.adopt(said, order) } }
        switch order {
        case .earlier: return
        case .together:
            state = state.strictness > status.state.strictness ? state : status.state
            approvals = max(approvals, status.approvalsFrom)
            // It only moves on, with new keys.
            expires = max(expires ?? 0, status.expiresAt)
        case .later: (state, approvals, expires) = (status.state, status.approvalsFrom, status.expiresAt)
        }
        heard(at: status.head.issuedAt)
    }

    /// Notes when the server has signed what was just taken over.
    mutating func heard(at time: Int) {
        statusAt = time
        statuses = (statuses ?? 0) % 1_000_000 + 1
    }

    /// What an app gets to see once the server has confirmed; `nil` before.
    func enrolmentValue() throws(SigningProtocolError) -> SigningEnrolment? {
        guard phase.isConfirmed, let did, let user, let offer = try offerContent(), let enrolment = try enrolment()
        else { return nil }
        let digits = enrolment.transcript(identity: offer.identity).digits
        return SigningEnrolment(
            containerID: did.text, issuerName: issuerName, userName: user,
            digits: offer.commit == .digits ? "\(digits.prefix(4)) \(digits.suffix(4))" : nil, state: state)
    }

    /// What is checked of a document for this container.
    func audience() throws -> DocumentAudience {
        guard let did, let sub, let enrolment = try enrolment() else { throw SigningError(.internal) }
        return DocumentAudience(
            issuer: issuer, did: did, sub: sub,
            keys: Dictionary(enrolment.keys.map { ($0.kid, $0.usage) }, uniquingKeysWith: { first, _ in first }))
    }
}
