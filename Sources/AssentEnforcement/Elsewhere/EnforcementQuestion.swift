package import AssentCore

/// What a gateway elsewhere asks about one request that it got (`POST …/enforcement/<realm>/decide`;
/// docs/enforcement-wire.md).
package struct EnforcementQuestion: Sendable, Equatable {
    /// The policy set, one that the gateway's group may ask.
    package var policySet: String

    /// The URL as the client called it, at an origin that the group speaks for, without the parameters that carry a
    /// transaction or an ID token. The engine makes it canonical.
    package var resource: String

    /// The HTTP method, as it is forwarded.
    package var method: String

    /// What the policies decide on; `nil` where it is the method.
    package var action: String?

    /// The client's address; believed only of groups with `believesAddress`.
    package var address: String?

    /// What says who sends the request, unchecked.
    package var credentials: Credentials

    /// What the route asks of an access token.
    package var requirement: Requirement

    /// The field `Content-Type`.
    package var contentType: String?

    /// The field `Idempotency-Key`.
    package var idempotencyKey: String?

    /// The transaction that the client says the request was approved by.
    package var transaction: String?

    /// The gateway's own name of this one request of a client, random and never used for another one.
    package var attempt: String

    /// What is said of the body.
    package var content = Content.unread

    /// Whether only a connection that is open is looked at again: no proof is asked for, nothing is made or taken.
    package var isRecheck = false

    /// With ``isRecheck``: whether a transaction was spent when the connection was opened. It is enough then that one
    /// would be asked for again.
    package var isApproved = false

    /// Claims about the user that the answer is to have.
    package var claims: [String] = []

    /// The service that the answer is to have a signed token for; `nil` for none.
    package var identity: Identity?

    /// What is said of a request's body.
    package enum Content: Sendable, Equatable {
        /// It was not read. Where a policy binds it, the answer asks for it.
        case unread
        /// All of it, as it will be forwarded: what a transaction is made from.
        case whole([UInt8])
        /// The SHA-256 of all of it: enough to take a transaction. 32 bytes.
        case digest([UInt8])
    }

    /// What a request has to say who sends it.
    package struct Credentials: Sendable, Equatable {
        /// The session's token.
        package var session: Secret?

        /// Whether the session came in the cookie, which a browser adds by itself.
        package var isCookie = false

        /// Whether the cookie may be used: no page of a foreign origin has sent the request. Means nothing without
        /// ``isCookie``.
        package var mayUseCookie = false

        /// The values of the fields `Authorization`.
        package var authorization: [Secret] = []

        /// The values of the fields `DPoP`.
        package var proofs: [String] = []

        /// The URL that proofs must be made for: the gateway's public origin and the target as it was sent.
        package var proofURL: String

        /// Credentials.
        package init(proofURL: String) { self.proofURL = proofURL }

        /// Whether there are none.
        package var isEmpty: Bool { session == nil && authorization.isEmpty }
    }

    /// What a route asks of an access token.
    package struct Requirement: Sendable, Equatable {
        /// The scopes that it must have, all of them.
        package var scopes: [String] = []

        /// What it must be issued for (`aud`), one of them.
        package var audience: [String] = []

        /// Whether the realm's issuer is an audience too.
        package var includesIssuer = false

        /// For whom callers may call: the names that `accepts` has in the configuration.
        package var kinds: [String] = []

        /// Whether only a credential that belongs to a key lets a caller in.
        package var isSenderConstrained = false

        /// A route that asks for nothing, and takes nobody.
        package init() {}
    }

    /// A service that is told in a signed token who calls (docs/operating.md, "Who calls, signed").
    package struct Identity: Sendable, Equatable {
        /// The service (`aud`).
        package var audience: String

        /// The gateway's own origin (`iss`), one that its group speaks for.
        package var issuer: String

        /// The claims about the user that the token has besides.
        package var claims: [String]

        /// A token for the service `audience`, issued by the gateway with the origin `issuer`.
        package init(audience: String, issuer: String, claims: [String] = []) {
            self.audience = audience
            self.issuer = issuer
            self.claims = claims
        }
    }

    /// A question about a request that nothing further is known of.
    package init(
        policySet: String, resource: String, method: String, credentials: Credentials, requirement: Requirement,
        attempt: String
    ) {
        self.policySet = policySet
        self.resource = resource
        self.method = method
        self.credentials = credentials
        self.requirement = requirement
        self.attempt = attempt
    }
}

/// The bounds of a question, in bytes where nothing else is said. The same on both sides.
package enum EnforcementBounds {
    /// Of names: policy sets, kinds, claims.
    package static let name = 256
    /// Of a URL.
    package static let url = 8192
    /// Of the value of a header field.
    package static let field = 16 << 10
    /// How many fields of one name.
    package static let fields = 4
    /// How many elements a list has.
    package static let list = 64
    /// How many scopes an access token is told to have.
    package static let scopes = 1000
    /// For how many seconds the same question with a transaction has the same answer.
    package static let repetitionSeconds: Int64 = 30
    /// Of an attempt: at least 128 random bits as base64url, 22 characters.
    package static let attempt = 22...64
    /// The largest body that a group can be allowed to send.
    package static let largestBody = 16 << 20
    /// What a question may have besides its body.
    package static let envelope = 64 << 10

    /// How large a question may be whose body has `bodyBytes` bytes at most.
    package static func question(bodyBytes: Int) -> Int { (bodyBytes + 2) / 3 * 4 + envelope }
}
