package import AssentCore

/// What a gateway elsewhere asks about one request. The route has checked that its group may.
package struct RemoteInquiry: Sendable {
    /// The request.
    package let request: GatewayInquiry

    /// The group of the gateway.
    package let group: EnforcementGroup

    /// What the gateway calls the request, for one with a transaction: hashing the whole question is for those alone.
    package let attempt: TransactionAttempt?

    /// Whether a session's cookie may be used: no page of a foreign origin has sent the request.
    package var mayUseCookie = false

    /// The address of the client as the gateway says.
    package var clientAddress: IPAddress?

    /// The `Content-Type`, when there is one.
    package var mediaType: String?

    /// The value of `Idempotency-Key`.
    package var idempotencyKey: String?

    /// The transaction's id, if the request carries one.
    package var transactionID: String?

    /// What is known of the body.
    package var content = Content.unread

    /// Whether only a connection that is open is looked at again.
    package var isRecheck = false

    /// The service that is told in a signed token who calls, and the gateway's origin; `nil` for none.
    package var identity: (service: ServiceIdentity, issuer: String)?

    /// What is known of a request's body.
    package enum Content: Sendable, Hashable {
        /// Nothing.
        case unread
        /// All of it.
        case whole([UInt8])
        /// Its SHA-256.
        case digest([UInt8])
    }

    /// A question of a gateway of `group`.
    package init(_ request: GatewayInquiry, group: EnforcementGroup, attempt: TransactionAttempt?) {
        self.request = request
        self.group = group
        self.attempt = attempt
    }
}

/// What a gateway elsewhere is told.
package enum RemoteDecision: Sendable {
    /// A policy binds the body: it is to send it, or its digest.
    case needBody(whole: Bool)
    /// The credentials let nobody in.
    case refused(TokenRefusal)
    /// The session's cookie must not be used by the page that has sent the request.
    case refusedCookie
    /// It is decided.
    case decided(AccessDecision, RemoteCaller)
}

/// Who calls, as a gateway elsewhere hears of it.
package struct RemoteCaller: Sendable {
    /// Who calls.
    package let caller: Caller

    /// With an advice: what a new access token must be asked for with (RFC 9470 §3).
    package var acrValues: [String] = []

    /// The token that tells the service who calls.
    package var identity: Secret?

    /// For how many seconds the decision may be kept.
    package var keepSeconds: Int64 = 0

    /// Those of the claims that the user has.
    package func claims(_ names: [String]) -> JSONObject {
        caller.user.map { UserClaims.chosen(names, about: $0) } ?? JSONObject()
    }

    /// A caller.
    init(_ caller: Caller) { self.caller = caller }
}
