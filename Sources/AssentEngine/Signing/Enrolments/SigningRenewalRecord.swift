import AssentCore
import AssentSigningProtocol
import AssentStore

/// New keys for a container that has keys: what is known of them until they count. Times are seconds since 1970.
struct SigningRenewalRecord: Sendable, Hashable {
    /// Seconds for which a renewal without a code may be committed.
    static let lifetime: Int64 = 15 * 60

    typealias State = KeyEnrolment.State

    /// The id: the invite's, or a new one.
    let pid: SigningID
    let did: SigningID
    var state: State = .started
    /// The invite whose code the device has; `nil` for a renewal that is due.
    let invite: SigningID?
    let commitMode: CommitMode
    /// The offer, as it was signed.
    let offer: String
    /// Until when it may be committed.
    let expiresAt: Int64
    var commitment: SigningHash?
    var nonce: SigningNonce?
    /// What the device has sent with its keys.
    var sent: CompletedKeys?
    /// When the right digits were entered.
    var digitsAt: Int64?
}

extension SigningRenewalRecord {
    init(_ row: SQLRow) throws {
        self.init(
            pid: try row.value("pid"), did: try row.value("did"), state: try row.value("state"),
            invite: try row.optional("invite"), commitMode: try row.value("commit_mode"), offer: try row.text("offer"),
            expiresAt: try row.integer("expires_at"), commitment: try row.optional("commitment"),
            nonce: try row.optional("nonce_s"),
            sent: try row.optionalText("enrol").map { try CompletedKeys(row, enrol: $0) },
            digitsAt: try row.optionalInteger("digits_at"))
    }
}

/// What a device has sent with its keys, and what it gets for it.
struct CompletedKeys: Sendable, Hashable {
    /// The key list, as it was signed.
    let enrol: String
    let transcript: SigningHash
    let endorsements: [String]
    let name: String?
    let deviceKeyID: KeyThumbprint
    let deviceJWK: String
    /// The new key that messages are encrypted to, as a JWK.
    let transportJWK: String
    /// What the device must send back, sealed.
    let sealedEcho: [UInt8]
    /// The hash of that.
    let echoHash: SigningHash
    /// From when the new keys may be renewed.
    let renewAt: Int64
    let expireAt: Int64

    /// ``endorsements`` as a row has them.
    var endorsementsText: String { JSONValue.array(endorsements.map { .string($0) }).serialized() }
}

extension CompletedKeys {
    init(_ row: SQLRow, enrol: String) throws {
        self.init(
            enrol: enrol, transcript: try row.value("transcript"),
            endorsements: try Self.endorsements(try row.text("endorsements")), name: try row.optionalText("name"),
            deviceKeyID: try row.value("device_kid"), deviceJWK: try row.text("device_jwk"),
            transportJWK: try row.text("transport_jwk"), sealedEcho: try row.blob("sealed_echo"),
            echoHash: try row.value("echo_hash"), renewAt: try row.integer("renew_at"),
            expireAt: try row.integer("keys_expire_at"))
    }

    /// Reads the list of endorsements of a row.
    static func endorsements(_ text: String) throws -> [String] {
        try JSONValue.parse(text).array?.compactMap(\.string) ?? []
    }
}
