package import AssentSigningProtocol
import AssentStore

/// One enrolment of one device for one user. Times are seconds since 1970.
package struct SigningContainerRecord: Sendable, Hashable {
    package let did: SigningID
    package let userID: String
    /// The user's name when it was enrolled.
    package let username: String
    /// The invite, or the renewal that brought its keys.
    package var pid: SigningID
    /// Without regard to the time: see ``state(at:)``.
    package var state: ContainerState = .unconfirmed
    /// What the help desk knows it by.
    package let serial: String
    package var name: String
    package var pushID: String?

    /// What it says of itself, as JSON.
    var properties = "{}"

    /// How its enrolment is checked.
    var commitMode: CommitMode
    let deviceKeyID: KeyThumbprint
    let deviceJWK: String
    /// The key that messages to it are encrypted to, as a JWK.
    var transportJWK: String
    /// What the device must send back, sealed.
    var sealedEcho: [UInt8]
    /// The hash of that.
    let echoHash: SigningHash
    /// The key of its transactions' handles, sealed.
    let sealedHandle: [UInt8]
    /// The offer, as it was signed.
    var offer: String
    /// The device's key list, as it was signed.
    var enrol: String
    /// The hash of the transcript of its enrolment.
    var transcript: SigningHash
    /// The hash of the newest record; `nil` before it is active.
    var record: SigningHash?
    /// From when it may approve.
    package var approvalsFrom: Int64
    /// From when its keys may be renewed.
    package var renewAt: Int64
    /// When its keys expire.
    package var expiresAt: Int64
    /// When it becomes void unless it is active by then.
    let voidAt: Int64
    /// When the right digits were entered.
    var digitsAt: Int64?
    package let createdAt: Int64
    package var endedAt: Int64?
    /// The installation of an app that it belongs to, by its client id: the session that made its invite was of that
    /// installation's key. `nil` for one that signs nobody in.
    package var instanceID: String?
}

extension SigningContainerRecord {
    /// Where it stands at a time: housekeeping writes later that it is void.
    package func state(at now: Int64) -> ContainerState { state == .unconfirmed && voidAt <= now ? .void : state }

    /// Why it may not decide; `nil` when it may.
    func refusal(approving: Bool, at now: Int64) -> SigningRefusal? {
        switch state(at: now) {
        case .active: break
        case .suspect: if approving { return SigningRefusal(.containerSuspect) }
        case .blocked: return SigningRefusal(.containerBlocked)
        case .revoked: return SigningRefusal(.containerRevoked)
        case .void, .unconfirmed: return SigningRefusal(.enrolmentVoid)
        }
        if expiresAt <= now { return SigningRefusal(.keyExpired) }
        guard approving, approvalsFrom > now else { return nil }
        return SigningRefusal(.approvalsNotYet, retryAfter: approvalsFrom - now)
    }

    init(_ row: SQLRow) throws {
        self.init(
            did: try row.value("did"), userID: try row.text("user_id"), username: try row.text("username"),
            pid: try row.value("pid"), state: try row.value("state"), serial: try row.text("serial"),
            name: try row.text("name"), pushID: try row.optionalText("push_id"),
            properties: try row.text("properties"), commitMode: try row.value("commit_mode"),
            deviceKeyID: try row.value("device_kid"), deviceJWK: try row.text("device_jwk"),
            transportJWK: try row.text("transport_jwk"), sealedEcho: try row.blob("sealed_echo"),
            echoHash: try row.value("echo_hash"), sealedHandle: try row.blob("sealed_handle"),
            offer: try row.text("offer"), enrol: try row.text("enrol"), transcript: try row.value("transcript"),
            record: try row.optional("record"), approvalsFrom: try row.integer("approvals_from"),
            renewAt: try row.integer("renew_at"), expiresAt: try row.integer("expires_at"),
            voidAt: try row.integer("void_at"), digitsAt: try row.optionalInteger("digits_at"),
            createdAt: try row.integer("created_at"), endedAt: try row.optionalInteger("ended_at"),
            instanceID: try row.optionalText("instance_id"))
    }
}

extension ContainerState {
    var isAlive: Bool { self != .revoked && self != .void }

    static let ended: [Self] = [.revoked, .void]
}
