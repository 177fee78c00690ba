import AssentSigningProtocol

/// The ceremony by which a device gets keys, whichever of its two beginnings it had: an invite, or a container that has
/// keys.
struct KeyEnrolment: Sendable, Hashable {
    enum Beginning: Sendable, Hashable {
        case enrolment(SigningEnrolmentRecord)
        case renewal(SigningRenewalRecord)
    }

    let beginning: Beginning
    /// The container, or what will be one.
    let did: SigningID
    /// The invite, or the renewal.
    let pid: SigningID
    let userID: String
    let username: String
    /// The offer, as it was signed.
    let offer: String
    /// The device key that has to sign the key list; `nil` when a new one does.
    let signer: KeyThumbprint?
    /// What the device has committed to, and the server's nonce; `nil` before, and after the end.
    let committed: Commitment?
    private let isVoid: Bool

    /// What a device has committed to, and what it got for it.
    struct Commitment: Sendable, Hashable {
        let hash: SigningHash?
        let nonce: SigningNonce?
    }

    /// The enrolment of a user's new device.
    init(_ enrolment: SigningEnrolmentRecord, user: String, named username: String) {
        beginning = .enrolment(enrolment)
        (did, pid, userID, self.username) = (enrolment.did, enrolment.pid, user, username)
        (offer, signer) = (enrolment.offer, enrolment.deviceKeyID)
        let isCommitted = [.committed, .completed].contains(enrolment.state)
        committed = isCommitted ? Commitment(hash: enrolment.commitment, nonce: enrolment.nonce) : nil
        isVoid = enrolment.state == .void
    }

    /// New keys for a container.
    init(_ renewal: SigningRenewalRecord, user: String, named username: String) {
        beginning = .renewal(renewal)
        (did, pid, userID, self.username) = (renewal.did, renewal.pid, user, username)
        (offer, signer) = (renewal.offer, nil)
        let isCommitted = [.committed, .completed].contains(renewal.state)
        committed = isCommitted ? Commitment(hash: renewal.commitment, nonce: renewal.nonce) : nil
        isVoid = renewal.state == .void
    }

    /// Refuses what a device sends for another offer than the last one. A request for an offer that was delayed on its
    /// way may have replaced the one that the device has.
    ///
    /// - Throws: ``SigningRefusal`` `hash_mismatch`, unless the ceremony has ended.
    func requireOffer(_ hash: SigningHash) throws {
        guard isVoid || hash == .offer(offer) else {
            throw SigningRefusal(.hashMismatch, "The offer was replaced by another one. Ask for an offer again.")
        }
    }
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
    let hash: SigningHash
    /// The number of the record in its container, from 0.
    var sequence = 0
    /// From when the container may approve, in seconds since 1970.
    let approvalsFrom: Int64
}
