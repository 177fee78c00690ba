import AssentSigningProtocol
import AssentStore

/// A device that begins to enrol: what is known of it until it has sent its keys.
struct SigningEnrolmentRecord: Sendable, Hashable {
    typealias State = KeyEnrolment.State

    /// The id that the container will have.
    let did: SigningID
    let pid: SigningID
    let deviceKeyID: KeyThumbprint
    let deviceJWK: String
    var state: State = .started
    /// The hash of the request that the offer answers.
    let requestHash: SigningHash
    /// The offer, as it was signed.
    let offer: String
    /// What the device says of itself, as JSON.
    let info: String
    var commitment: SigningHash?
    var nonce: SigningNonce?
    /// Until when it must be completed, in seconds since 1970.
    let expiresAt: Int64
}

extension SigningEnrolmentRecord {
    init(_ row: SQLRow) throws {
        self.init(
            did: try row.value("did"), pid: try row.value("pid"), deviceKeyID: try row.value("device_kid"),
            deviceJWK: try row.text("device_jwk"), state: try row.value("state"),
            requestHash: try row.value("request_hash"), offer: try row.text("offer"), info: try row.text("info"),
            commitment: try row.optional("commitment"), nonce: try row.optional("nonce_s"),
            expiresAt: try row.integer("expires_at"))
    }
}
