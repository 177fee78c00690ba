import AssentStore

/// A device that begins to enrol: what is known of it until it has sent its keys.
package struct SigningEnrolmentRecord: Sendable, Hashable {
    /// Where it stands.
    package enum State: String, Sendable, Hashable {
        /// The device has its offer.
        case started = "STARTED"
        /// It has committed to its keys.
        case committed = "COMMITTED"
        /// There is a container.
        case completed = "COMPLETED"
        /// It counts no more.
        case void = "VOID"
    }

    /// The id that the container will have.
    package let did: String

    /// The invite.
    package let pid: String

    /// The thumbprint of the device key.
    package let deviceKeyID: String

    /// The device key as a JWK.
    package let deviceJWK: String

    /// Where it stands.
    package var state: State = .started

    /// The hash of the request that the offer answers.
    package let requestHash: String

    /// The offer, as it was signed.
    package let offer: String

    /// What the device says of itself, as JSON.
    package let info: String

    /// What the device has committed to.
    package var commitment: String?

    /// The server's nonce.
    package var nonce: String?

    /// Until when it must be completed, in seconds since 1970.
    package let expiresAt: Int64

    /// A new enrolment.
    package init(
        did: String, pid: String, deviceKeyID: String, deviceJWK: String, requestHash: String, offer: String,
        info: String, expiresAt: Int64
    ) {
        self.did = did
        self.pid = pid
        self.deviceKeyID = deviceKeyID
        self.deviceJWK = deviceJWK
        self.requestHash = requestHash
        self.offer = offer
        self.info = info
        self.expiresAt = expiresAt
    }

    init(_ row: SQLRow) throws {
        guard let state = State(rawValue: try row.text("state")) else {
            throw StoreError(.corrupt, "unknown state of an enrolment")
        }
        did = try row.text("did")
        pid = try row.text("pid")
        deviceKeyID = try row.text("device_kid")
        deviceJWK = try row.text("device_jwk")
        self.state = state
        requestHash = try row.text("request_hash")
        offer = try row.text("offer")
        info = try row.text("info")
        commitment = try row.optionalText("commitment")
        nonce = try row.optionalText("nonce_s")
        expiresAt = try row.integer("expires_at")
    }
}
