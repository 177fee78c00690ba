import AssentSigningProtocol

/// The ceremony by which a device gets keys, whichever of its two beginnings it had: an invite, or a container that has
/// keys.
struct KeyEnrolment: Sendable, Hashable {
    enum State: String, SQLConstant {
        /// The device has its offer.
        case started = "STARTED"
        /// It has committed to its keys.
        case committed = "COMMITTED"
        /// It has sent its keys.
        case completed = "COMPLETED"
        /// The new keys of a container are in use.
        case done = "DONE"
        case void = "VOID"
    }

    /// Whether it is of a container that has keys.
    let isRenewal: Bool
    let state: State
    /// The container, or what will be one.
    let did: SigningID
    /// The invite, or the renewal.
    let pid: SigningID
    /// The invite whose code the device has; `nil` for a renewal that is due.
    let invite: SigningID?
    let userID: String
    let username: String
    /// The offer, as it was signed.
    let offer: String
    /// The device key that has to sign the key list; `nil` when a new one does.
    let signer: KeyThumbprint?
    /// What the device has committed to.
    let commitment: SigningHash?
    /// The server's nonce, which it got for that.
    let nonce: SigningNonce?

    /// The enrolment of a user's new device.
    init(_ enrolment: SigningEnrolmentRecord, user: String, named username: String) {
        (isRenewal, state, did, pid) = (false, enrolment.state, enrolment.did, enrolment.pid)
        (invite, userID, self.username) = (enrolment.pid, user, username)
        (offer, signer) = (enrolment.offer, enrolment.deviceKeyID)
        (commitment, nonce) = (enrolment.commitment, enrolment.nonce)
    }

    /// New keys for a container.
    init(_ renewal: SigningRenewalRecord, user: String, named username: String) {
        (isRenewal, state, did, pid) = (true, renewal.state, renewal.did, renewal.pid)
        (invite, userID, self.username) = (renewal.invite, user, username)
        (offer, signer) = (renewal.offer, nil)
        (commitment, nonce) = (renewal.commitment, renewal.nonce)
    }

    /// What the audit log calls it.
    var event: AuditEvent { isRenewal ? .signingContainer : .signingEnrol }

    /// Refuses what a device sends for another offer than the last one. A request for an offer that was delayed on its
    /// way may have replaced the one that the device has.
    ///
    /// - Throws: ``SigningRefusal`` `hash_mismatch`, unless the ceremony has ended.
    func requireOffer(_ hash: SigningHash) throws {
        guard state == .void || hash == .offer(offer) else {
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
