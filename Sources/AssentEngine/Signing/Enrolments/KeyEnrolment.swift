import AssentSigningProtocol

/// The ceremony by which a device gets keys, whichever of its two beginnings it had: an invite, or a container that has
/// keys.
struct KeyEnrolment: Sendable, Hashable {
    /// How it has begun.
    enum Beginning: Sendable, Hashable {
        case enrolment(SigningEnrolmentRecord)
        case renewal(SigningRenewalRecord)
    }

    let beginning: Beginning
    let userID: String
    let username: String

    /// The enrolment of a user's new device.
    init(_ enrolment: SigningEnrolmentRecord, user: String, named username: String) {
        (beginning, userID, self.username) = (.enrolment(enrolment), user, username)
    }

    /// The same with another record of it.
    init(_ beginning: Beginning, of other: KeyEnrolment) {
        (self.beginning, userID, username) = (beginning, other.userID, other.username)
    }

    /// New keys for a container.
    init(_ renewal: SigningRenewalRecord, of container: SigningContainerRecord) {
        (beginning, userID, username) = (.renewal(renewal), container.userID, container.username)
    }

    /// The container, or what will be one.
    var did: SigningID {
        switch beginning {
        case .enrolment(let enrolment): enrolment.did
        case .renewal(let renewal): renewal.did
        }
    }

    /// The invite, or the renewal.
    var pid: SigningID {
        switch beginning {
        case .enrolment(let enrolment): enrolment.pid
        case .renewal(let renewal): renewal.pid
        }
    }

    /// The offer, as it was signed.
    var offer: String {
        switch beginning {
        case .enrolment(let enrolment): enrolment.offer
        case .renewal(let renewal): renewal.offer
        }
    }

    /// What the device has committed to, and the server's nonce; `nil` before, and after the end.
    var committed: (commitment: SigningHash?, nonce: SigningNonce?)? {
        switch beginning {
        case .enrolment(let enrolment) where [.committed, .completed].contains(enrolment.state):
            (enrolment.commitment, enrolment.nonce)
        case .renewal(let renewal) where [.committed, .completed].contains(renewal.state):
            (renewal.commitment, renewal.nonce)
        default: nil
        }
    }

    /// The device key that has to sign the key list; `nil` when a new one does.
    var signer: KeyThumbprint? { if case .enrolment(let enrolment) = beginning { enrolment.deviceKeyID } else { nil } }
}

/// The keys that a device has sent, as the database gets them.
struct SentKeys: Sendable {
    let rows: [SigningKeyRow]

    /// Made for it by the server.
    var oneTimeKeys: [SigningOneTimeSecret] = []

    /// The slots of the offer that become the container's.
    var slots: [PasswordSlot] = []

    /// What the user has to enter; `nil` when nothing.
    let digits: String?
}

/// What makes keys count: the record that the server has signed for them.
struct SigningActivation: Sendable, Hashable {
    /// The record, as it was signed.
    let record: String

    /// Its hash.
    let hash: SigningHash

    /// The number of the record in its container, from 0.
    var sequence = 0

    /// From when the container may approve, in seconds since 1970.
    let approvalsFrom: Int64
}
