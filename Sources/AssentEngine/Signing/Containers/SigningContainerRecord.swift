package import AssentSigningProtocol
import AssentStore

/// One enrolment of one device for one user.
package struct SigningContainerRecord: Sendable, Hashable {
    /// The id.
    package let did: String

    /// Whose it is.
    package let userID: String

    /// The user's name when it was enrolled.
    package let username: String

    /// The invite.
    package let pid: String

    /// Where it stands.
    package var state: ContainerState = .unconfirmed

    /// What the help desk knows it by.
    package let serial: String

    /// Its name.
    package var name: String

    /// Where push messages go.
    package var pushID: String?

    /// What it says of itself, as JSON.
    package var properties = "{}"

    /// How its enrolment is checked.
    package let commitMode: CommitMode

    /// The thumbprint of the device key.
    package let deviceKeyID: String

    /// The device key as a JWK.
    package let deviceJWK: String

    /// The key that messages to it are encrypted to, as a JWK.
    package let transportJWK: String

    /// What the device must send back, sealed.
    package let sealedEcho: [UInt8]

    /// The hash of that.
    package let echoHash: String

    /// The key of its transactions' handles, sealed.
    package let sealedHandle: [UInt8]

    /// The offer, as it was signed.
    package let offer: String

    /// The device's key list, as it was signed.
    package let enrol: String

    /// The hash of the transcript of its enrolment.
    package let transcript: String

    /// The hash of the newest record; `nil` before it is active.
    package var record: String?

    /// From when it may approve, in seconds since 1970.
    package var approvalsFrom: Int64

    /// From when its keys may be renewed, in seconds since 1970.
    package let renewAt: Int64

    /// When its keys expire, in seconds since 1970.
    package let expiresAt: Int64

    /// When it becomes void unless it is active by then, in seconds since 1970.
    package let voidAt: Int64

    /// When its device has confirmed.
    package var echoAt: Int64?

    /// When the right digits were entered.
    package var digitsAt: Int64?

    /// When it was made, in seconds since 1970.
    package let createdAt: Int64

    /// When it has ended.
    package var endedAt: Int64?

    /// A new container, which is not confirmed.
    package init(
        did: String, userID: String, username: String, pid: String, serial: String, name: String, pushID: String?,
        commitMode: CommitMode, deviceKeyID: String, deviceJWK: String, transportJWK: String, sealedEcho: [UInt8],
        echoHash: String, sealedHandle: [UInt8], offer: String, enrol: String, transcript: String, renewAt: Int64,
        expiresAt: Int64, voidAt: Int64, createdAt: Int64
    ) {
        self.did = did
        self.userID = userID
        self.username = username
        self.pid = pid
        self.serial = serial
        self.name = name
        self.pushID = pushID
        self.commitMode = commitMode
        self.deviceKeyID = deviceKeyID
        self.deviceJWK = deviceJWK
        self.transportJWK = transportJWK
        self.sealedEcho = sealedEcho
        self.echoHash = echoHash
        self.sealedHandle = sealedHandle
        self.offer = offer
        self.enrol = enrol
        self.transcript = transcript
        approvalsFrom = createdAt
        self.renewAt = renewAt
        self.expiresAt = expiresAt
        self.voidAt = voidAt
        self.createdAt = createdAt
    }

    /// Where it stands at a time: housekeeping writes later that it is void.
    package func state(at now: Int64) -> ContainerState { state == .unconfirmed && voidAt <= now ? .void : state }

    init(_ row: SQLRow) throws {
        guard let state = ContainerState(rawValue: try row.text("state")),
            let mode = CommitMode(rawValue: try row.text("commit_mode"))
        else { throw StoreError(.corrupt, "unknown state of a container") }
        self.init(
            did: try row.text("did"), userID: try row.text("user_id"), username: try row.text("username"),
            pid: try row.text("pid"), serial: try row.text("serial"), name: try row.text("name"),
            pushID: try row.optionalText("push_id"), commitMode: mode, deviceKeyID: try row.text("device_kid"),
            deviceJWK: try row.text("device_jwk"), transportJWK: try row.text("transport_jwk"),
            sealedEcho: try row.blob("sealed_echo"), echoHash: try row.text("echo_hash"),
            sealedHandle: try row.blob("sealed_handle"), offer: try row.text("offer"), enrol: try row.text("enrol"),
            transcript: try row.text("transcript"), renewAt: try row.integer("renew_at"),
            expiresAt: try row.integer("expires_at"), voidAt: try row.integer("void_at"),
            createdAt: try row.integer("created_at"))
        self.state = state
        properties = try row.text("properties")
        record = try row.optionalText("record")
        approvalsFrom = try row.integer("approvals_from")
        echoAt = try row.optionalInteger("echo_at")
        digitsAt = try row.optionalInteger("digits_at")
        endedAt = try row.optionalInteger("ended_at")
    }
}

extension ContainerState {
    /// Whether it has not ended.
    package var isAlive: Bool { self != .revoked && self != .void }
}

/// A key of a container.
package struct SigningKeyRow: Sendable, Hashable {
    /// Its thumbprint.
    package let kid: String

    /// What it is for: `device`, `transport`, `sign`, `auth`.
    package let usage: String

    /// Its name in the container.
    package let label: String

    /// The id of the policy that protects it.
    package let policy: String

    /// The password slot, if it has one.
    package let slot: String?

    /// What the device says that holds it.
    package let keystore: String

    /// The public key as a JWK.
    package let publicJWK: String

    /// Whether its signatures count.
    package var isActive = true

    /// Since when they do, in seconds since 1970.
    package var since: Int64 = 0

    /// Whether it approves.
    var approves: Bool { usage == "sign" || usage == "auth" }

    /// A new key.
    package init(
        kid: String, usage: String, label: String, policy: String, slot: String?, keystore: String, publicJWK: String
    ) {
        self.kid = kid
        self.usage = usage
        self.label = label
        self.policy = policy
        self.slot = slot
        self.keystore = keystore
        self.publicJWK = publicJWK
    }

    init(_ row: SQLRow) throws {
        self.init(
            kid: try row.text("kid"), usage: try row.text("usage"), label: try row.text("label"),
            policy: try row.text("policy"), slot: try row.optionalText("slot"), keystore: try row.text("keystore"),
            publicJWK: try row.text("public_jwk"))
        isActive = try row.text("state") == "ACTIVE"
        since = try row.integer("since")
    }
}
