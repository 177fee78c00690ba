package import AssentCore

/// A transaction while its journey runs: what the user is asked to approve.
package struct PendingApproval: Sendable, Hashable {
    /// The transaction's id.
    package let id: String

    /// The journey that must succeed (`strategySpecifier`).
    package let journey: String

    /// The request's method, when it is bound.
    package let method: String?

    /// The resource's URL; with its query when that is bound.
    package let resource: String

    /// The media type of the request's body, when the body is bound and has one.
    package let contentType: String?

    /// The body's SHA-256, when it is bound and there is one.
    package let bodySHA256: String?

    /// What the user is shown, in order.
    package let display: [DisplayField]

    /// When the transaction expires, in seconds since 1970.
    package let expiresAt: Int64

    /// An approval that is pending.
    package init(
        id: String, journey: String, method: String?, resource: String, contentType: String?, bodySHA256: String?,
        display: [DisplayField], expiresAt: Int64
    ) {
        self.id = id
        self.journey = journey
        self.method = method
        self.resource = resource
        self.contentType = contentType
        self.bodySHA256 = bodySHA256
        self.display = display
        self.expiresAt = expiresAt
    }
}
