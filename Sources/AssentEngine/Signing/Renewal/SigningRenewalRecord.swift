import AssentCore
package import AssentSigningProtocol
import AssentStore

/// New keys for a container that has keys: what is known of them until they count.
package struct SigningRenewalRecord: Sendable, Hashable {
    /// Seconds for which a renewal without a code may be committed.
    static let lifetime: Int64 = 15 * 60

    /// Where it stands.
    package enum State: String, Sendable, Hashable {
        /// The device has its offer.
        case started = "STARTED"
        /// It has committed to its keys.
        case committed = "COMMITTED"
        /// It has sent its keys.
        case completed = "COMPLETED"
        /// The new keys count.
        case done = "DONE"
        /// It counts no more.
        case void = "VOID"
    }

    /// What a device has sent with its keys.
    struct Completion: Sendable, Hashable {
        /// The key list, as it was signed.
        let enrol: String
        /// The hash of the transcript.
        let transcript: String
        /// What old keys have signed.
        let endorsements: [String]
        /// The new name, if there is one.
        let name: String?
        /// The thumbprint of the new device key.
        let deviceKeyID: String
        /// The new device key as a JWK.
        let deviceJWK: String
        /// The new key that messages are encrypted to, as a JWK.
        let transportJWK: String
        /// What the device must send back, sealed.
        let sealedEcho: [UInt8]
        /// The hash of that.
        let echoHash: String
        /// From when the new keys may be renewed, in seconds since 1970.
        let renewAt: Int64
        /// When the new keys expire, in seconds since 1970.
        let keysExpireAt: Int64
    }

    /// The id: the invite's, or a new one.
    package let pid: String

    /// The container.
    package let did: String

    /// Where it stands.
    package var state: State = .started

    /// The invite whose code the device has; `nil` for a renewal that is due.
    package let invite: String?

    /// How it is checked.
    package let commitMode: CommitMode

    /// The offer, as it was signed.
    package let offer: String

    /// Until when it may be committed, in seconds since 1970.
    package let expiresAt: Int64

    /// What the device has committed to.
    package var commitment: String?

    /// The server's nonce.
    package var nonce: String?

    /// What the device has sent with its keys.
    var completion: Completion?

    /// When the right digits were entered.
    package var digitsAt: Int64?

    /// A renewal that begins.
    package init(
        pid: String, did: String, invite: String?, commitMode: CommitMode, offer: String, expiresAt: Int64
    ) {
        self.pid = pid
        self.did = did
        self.invite = invite
        self.commitMode = commitMode
        self.offer = offer
        self.expiresAt = expiresAt
    }

    init(_ row: SQLRow) throws {
        guard let state = State(rawValue: try row.text("state")),
            let mode = CommitMode(rawValue: try row.text("commit_mode"))
        else { throw StoreError(.corrupt, "unknown state of a renewal") }
        self.init(
            pid: try row.text("pid"), did: try row.text("did"), invite: try row.optionalText("invite"),
            commitMode: mode, offer: try row.text("offer"), expiresAt: try row.integer("expires_at"))
        self.state = state
        commitment = try row.optionalText("commitment")
        nonce = try row.optionalText("nonce_s")
        digitsAt = try row.optionalInteger("digits_at")
        guard let enrol = try row.optionalText("enrol") else { return }
        completion = Completion(
            enrol: enrol, transcript: try row.text("transcript"),
            endorsements: try Self.endorsements(try row.text("endorsements")), name: try row.optionalText("name"),
            deviceKeyID: try row.text("device_kid"), deviceJWK: try row.text("device_jwk"),
            transportJWK: try row.text("transport_jwk"), sealedEcho: try row.blob("sealed_echo"),
            echoHash: try row.text("echo_hash"), renewAt: try row.integer("renew_at"),
            keysExpireAt: try row.integer("keys_expire_at"))
    }

    /// Reads the list of endorsements of a row.
    static func endorsements(_ text: String) throws -> [String] {
        try JSONValue.parse(text).array?.compactMap(\.string) ?? []
    }
}
