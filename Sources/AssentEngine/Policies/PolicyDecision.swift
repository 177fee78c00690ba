package import AssentCore

/// A live session and the way in which it was presented.
package struct PresentedSession: Sendable, Hashable {
    /// The session.
    package let session: LiveSession

    /// The grant, when it was presented by an access token; the token itself is kept nowhere.
    package let grantID: String?

    /// The key that the access token belongs to (RFC 9449), or the session where that was presented by its own token;
    /// `nil` when it belongs to none.
    package let sender: SenderBinding?

    /// The id of that access token (`jti`), by which it can be revoked alone; not a secret.
    package let tokenID: String?

    /// A session, presented by its own token unless a grant is named.
    package init(
        _ session: LiveSession, grantID: String? = nil, sender: SenderBinding? = nil, tokenID: String? = nil
    ) {
        self.session = session
        self.grantID = grantID
        self.tokenID = tokenID
        self.sender = grantID == nil ? session.sender ?? sender : sender
    }
}

/// Whose access is decided on.
package enum DecisionSubject: Sendable, Hashable {
    /// The user of a live session.
    case session(PresentedSession)
    /// Nobody: no session, or one that is no longer alive.
    case anonymous
    /// Claims that a caller merely says (`claims`, or a `jwt` that is not valid here): no subject holds for them.
    case claims(JSONObject)
    /// The claims of an ID token (`jwt`) that was verified. Only the subject `JwtClaim` looks at them, and nothing that
    /// needs a session holds.
    case verifiedClaims(JSONObject)

    var presented: PresentedSession? {
        if case .session(let presented) = self { presented } else { nil }
    }

    var verifiedClaims: JSONObject? {
        if case .verifiedClaims(let claims) = self { claims } else { nil }
    }
}

/// The parts of the protected request that a URL does not show. An enforcement point that asks over REST may send them
/// in the environment: `method`, `contentType`, and `body` as unpadded base64url.
package struct RequestContent: Sendable, Hashable {
    /// The HTTP method.
    package let method: String

    /// The `Content-Type`, when there is one.
    package let mediaType: String?

    /// The raw bytes of the body, exactly as they will be forwarded; `nil` when they are not known.
    package let body: [UInt8]?

    /// The SHA-256 of the body in base64url; `nil` when nothing is known of it.
    let bodyDigest: String?

    /// Parts of a request.
    package init(method: String, mediaType: String?, body: [UInt8]?) {
        self.method = method
        self.mediaType = mediaType
        self.body = body
        bodyDigest = body.map { Base64URL.encode(SHA2.sha256($0)) }
    }

    /// Parts of a request of whose body only the SHA-256 is known: enough to take a transaction, and not to make one.
    package init(method: String, mediaType: String?, bodyDigest: [UInt8]) {
        self.method = method
        self.mediaType = mediaType
        body = nil
        self.bodyDigest = Base64URL.encode(bodyDigest)
    }

    /// Whether the body is known, or its digest.
    var knowsBody: Bool { bodyDigest != nil }

    /// Whether of the body only the digest is known.
    var knowsDigestAlone: Bool { body == nil && bodyDigest != nil }

    /// The parts from the environment of an evaluate request; `nil` when it names no method, or the body is not
    /// base64url.
    package init?(environment: [String: [String]]) {
        guard let method = environment["method"]?.first else { return nil }
        var body: [UInt8]?
        if let text = environment["body"]?.first {
            guard let bytes = Base64URL.decode(text) else { return nil }
            body = bytes
        }
        self.init(method: method, mediaType: environment["contentType"]?.first, body: body)
    }
}

/// A request for policy decisions (`policies?_action=evaluate`).
package struct EvaluateRequest: Sendable {
    /// The realm.
    package var realm: String

    /// The policy set (`application`).
    package var policySet: String

    /// The resources, as they were sent.
    package var resources: [String]

    /// Whose access.
    package var subject: DecisionSubject

    /// `environment`: `TxId`, `IP`, `report`, and what ``RequestContent`` reads.
    package var environment: [String: [String]]

    /// Whether an enforcement point says that it reports outcomes (``AccessSettlement/report(_:of:caller:realm:)``) and
    /// wants to hear them: `"report": ["outcome"]`, which AM does not know.
    package var reportsOutcome: Bool { environment["report"] == ["outcome"] }

    /// What tells requests apart that look alike: `"idempotencyKey": ["…"]`, which AM does not know.
    package var idempotencyKey: String? { environment["idempotencyKey"]?.first }

    /// The most resources in one request.
    package static let maximumResources = 100

    /// A request.
    package init(
        realm: String, policySet: String, resources: [String], subject: DecisionSubject,
        environment: [String: [String]] = [:]
    ) {
        self.realm = realm
        self.policySet = policySet
        self.resources = resources
        self.subject = subject
        self.environment = environment
    }
}

/// What the policies say of one resource.
package struct PolicyDecision: Sendable, Hashable {
    /// The resource, exactly as it was sent.
    package let resource: String

    /// Granted and denied actions; what is not named is denied.
    package let actions: [String: Bool]

    /// What the enforcement point gets besides.
    package let attributes: [String: [String]]

    /// What the user can do to be granted more; of one kind.
    package let advices: [String: [String]]

    /// Until when the decision may be kept: milliseconds since 1970, ``noLimit``, or 0 where a transaction decided.
    package let ttl: Int64

    /// The transaction that was used for this very access before; only for who reports outcomes.
    package let used: TransactionRecord?

    /// Why, for the log and for an administrator who asks; never sent otherwise.
    package let reasons: [String]

    /// A time to live without a limit.
    package static let noLimit = Int64.max

    /// A decision.
    package init(
        resource: String, actions: [String: Bool] = [:], attributes: [String: [String]] = [:],
        advices: [String: [String]] = [:], ttl: Int64 = noLimit, reasons: [String] = []
    ) {
        self.resource = resource
        self.actions = actions
        self.attributes = attributes
        self.advices = advices
        self.ttl = ttl
        self.reasons = reasons
        used = nil
    }

    /// Nothing is granted, since the transaction was used before.
    package init(resource: String, used: TransactionRecord, reasons: [String]) {
        self.resource = resource
        actions = [:]
        attributes = [:]
        advices = [:]
        ttl = 0
        self.used = used
        self.reasons = reasons
    }
}
