package import AssentCore

/// What a transaction was made for: what must be the same when it is used, and what is only known of the request.
package struct TransactionBinding: Sendable, Hashable {
    let maker: TransactionMaker
    let realm: String
    let policySet: String
    let policy: String
    let policyRevision: String
    let strategy: String
    let specifier: String
    /// The canonical URL up to the query.
    let resource: String
    /// Which of the following the policy binds; the others are on record and not compared.
    let bound: Set<BoundField>
    /// The query as an approval binds it (``/AssentCore/CanonicalResource/boundQuery``), or `nil`.
    let query: String?
    let method: String?
    let mediaType: String?
    let bodyDigest: String?
    let userID: String
    let sessionID: String
    let sessionAuditID: String
    let grantID: String?
    let sender: SenderBinding?

    /// What is known of a request, and what a policy binds of it; `nil` when the policy binds a part that is not known.
    package init?(
        _ policySet: PolicySet, _ policy: Policy, _ condition: TransactionCondition, resource: CanonicalResource,
        content: RequestContent?, presented: PresentedSession, maker: TransactionMaker
    ) {
        guard !policy.bind.contains(.method) || content != nil,
            !policy.bind.contains(.body) || content?.knowsBody == true
        else { return nil }
        self.maker = maker
        realm = policySet.realm
        self.policySet = policySet.name
        self.policy = policy.name
        policyRevision = policy.revision
        strategy = condition.strategy.rawValue
        specifier = condition.specifier
        self.resource = resource.urlWithoutQuery
        bound = policy.bind
        query = resource.boundQuery
        method = content?.method
        mediaType = content?.mediaType.map(MediaType.normalised)
        bodyDigest = content?.bodyDigest
        userID = presented.session.user.id
        sessionID = presented.session.id
        sessionAuditID = presented.session.auditID
        grantID = presented.grantID
        sender = presented.sender
    }

    /// By what the same request is known when it comes again; `nil` when that cannot be said: its body was not read,
    /// and may be another one.
    func requestKey(idempotencyKey: String?) -> String? {
        let isWhole = !maker.isGateway || bodyDigest != nil || method == "GET" || method == "HEAD"
        guard isWhole else { return nil }
        let parts = [
            maker.text, realm, policySet, policy, policyRevision, strategy, specifier, resource, query, method,
            mediaType, bodyDigest, userID, sessionID, sessionAuditID, grantID, sender?.stored, idempotencyKey,
        ]
        let json = JSONValue.array(parts.map { $0.map(JSONValue.string) ?? .null })
        return Base64URL.encode(SHA2.sha256(json.serializedBytes()))
    }
}

/// Why a transaction was not started, completed or taken: the first field or rule that does not match. The word stands
/// in the audit log; a client learns only that it was refused.
package enum TransactionRefusal: String, Sendable, Hashable, CaseIterable {
    /// There is no such transaction.
    case unknown
    /// Another user.
    case subject
    /// Another session.
    case session
    /// Another grant, or none, or one where there was none.
    case grant
    /// The access token is bound to another key.
    case key
    /// Not asked for by the gateway, or the enforcement point, that wants to take it.
    case maker
    /// Another realm.
    case realm
    /// Another policy set or policy.
    case policy
    /// The policy has changed since.
    case policyRevision
    /// Another journey.
    case journey
    /// Another method.
    case method
    /// Another URL.
    case resource
    /// Another query.
    case query
    /// Another media type.
    case mediaType
    /// Another body.
    case body
    /// It was taken before, with the same binding.
    case taken
    /// Its time is over.
    case expired
    /// It is not in the state that this needs.
    case state
    /// The session, the access token or its grant has ended, or the user is no longer active.
    case sessionEnded
    /// It was made later than now: the clock was moved back.
    case clock
}
