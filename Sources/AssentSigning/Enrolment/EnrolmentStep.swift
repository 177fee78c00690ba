import AssentCore
import AssentSigningProtocol

/// What an enrolment does next. It follows from what is stored, so an enrolment goes on after a crash where it was.
enum EnrolmentStep: Hashable {
    /// Send the code and the device key.
    case start
    /// Make the keys, and choose the nonce that the commitment will bind.
    case makeKeys
    /// Send the commitment.
    case commit
    /// Sign the key list. It is stored before it is sent: a repetition must be the same bytes.
    case sign
    /// Send the key list.
    case complete
    /// Send back the echo.
    case confirm
    /// The user types the digits.
    case done
}

extension ContainerRecord {
    /// What an enrolment does next.
    var step: EnrolmentStep {
        if offer == nil || did == nil { return .start }
        if nonceD == nil { return .makeKeys }
        if nonceS == nil || sub == nil { return .commit }
        if enrol == nil { return .sign }
        if echo == nil || handle == nil { return .complete }
        return confirmed ? .done : .confirm
    }

    /// The name of a key at the key provider.
    func keyName(_ usage: SigningKeyUsage, _ label: String) -> String {
        let prefix = "tsp.\(keyID ?? id)"
        return usage == .device ? "\(prefix):device" : "\(prefix).\(label)"
    }

    /// The offer, which was verified when it came.
    func offerContent() throws(SigningProtocolError) -> Offer? {
        try offer.map { compact throws(SigningProtocolError) in try UnverifiedMessage<Offer>(compact).content }
    }

    /// The key list, which this device signed.
    func enrolment() throws(SigningProtocolError) -> Enrolment? {
        try enrol.map { compact throws(SigningProtocolError) in try UnverifiedMessage<Enrolment>(compact).content }
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

    /// What the server says of the container.
    mutating func adopt(_ status: ContainerStatus) {
        state = status.state
        expires = status.expiresAt
        approvals = status.approvalsFrom
        for said in status.slots { modify(said.slot) { $0.adopt(said) } }
    }

    /// What an app gets to see once the server has confirmed; `nil` before.
    func enrolmentValue() throws(SigningProtocolError) -> SigningEnrolment? {
        guard confirmed, let did, let user, let offer = try offerContent(), let enrolment = try enrolment() else {
            return nil
        }
        let digits = enrolment.transcript(identity: offer.identity).digits
        return SigningEnrolment(
            containerID: did.text, issuerName: issuerName, userName: user,
            digits: offer.commit == .digits ? "\(digits.prefix(4)) \(digits.suffix(4))" : nil, state: state)
    }

    /// What is checked of a document for this container.
    func audience() throws(SigningProtocolError) -> DocumentAudience? {
        guard let did, let sub, let enrolment = try enrolment() else { return nil }
        return DocumentAudience(
            issuer: issuer, did: did, sub: sub,
            keys: Dictionary(enrolment.keys.map { ($0.kid, $0.usage) }, uniquingKeysWith: { first, _ in first }))
    }
}
