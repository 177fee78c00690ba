import AssentCore
import AssentEnforcement
import AssentEngine

extension RemoteInquiry {
    /// What a question on the wire asks.
    ///
    /// - Throws: ``EnforcementGroup/Fault``, what the group may not do; ``RequestError`` 400.
    init(
        _ question: EnforcementQuestion, realm: String, group: EnforcementGroup, attempt: TransactionAttempt?
    ) throws {
        try group.check(
            policySet: question.policySet,
            urls: [question.resource, question.credentials.proofURL] + [question.identity?.issuer].compactMap(\.self))
        let resource: CanonicalResource
        do {
            resource = try CanonicalResource(question.resource)
        } catch {
            throw RequestError(400, "The resource \(error).")
        }
        let sent = question.credentials
        var credentials = PresentedCredentials(
            accessToken: TokenCredentials(sent.authorization.map { $0.reveal() }),
            proof: PresentedProof(
                fields: sent.proofs, method: question.method, url: sent.proofURL, server: .gateway))
        credentials.session = sent.session.map {
            SessionCredential(token: $0, carrier: sent.isCookie ? .cookie : .field)
        }
        var request = GatewayInquiry(
            realm: realm, policySet: question.policySet, method: question.method, action: question.action,
            resource: resource, credentials: credentials,
            accessToken: try AccessTokenRequirement(question.requirement))
        request.isApproved = question.isApproved
        self.init(request, group: group, attempt: attempt)
        mayUseCookie = sent.mayUseCookie
        if let address = question.address {
            guard let ip = IPAddress(address) else { throw RequestError(400, "The address is not an IP address.") }
            clientAddress = ip
        }
        mediaType = question.contentType
        idempotencyKey = question.idempotencyKey
        transactionID = question.transaction
        isRecheck = question.isRecheck
        switch question.content {
        case .unread: content = .unread
        case .whole(let body): content = .whole(body)
        case .digest(let digest): content = .digest(digest)
        }
        try Self.checkClaims(question.claims + (question.identity?.claims ?? []))
        if let asked = question.identity {
            // A path behind the origin would be another issuer's name, in a signed token.
            guard let issuer = try? Origin(headerValue: asked.issuer), issuer.description == asked.issuer else {
                throw RequestError(400, "The issuer is not an origin: scheme, host and port alone.")
            }
            let service = ServiceIdentity(audience: asked.audience, claims: asked.claims)
            identity = (service: service, issuer: asked.issuer)
        }
    }

    private static func checkClaims(_ names: [String]) throws(RequestError) {
        guard ServiceIdentity.unknownClaim(in: names) == nil else {
            throw RequestError(400, "The question names a claim that this server does not know.")
        }
    }
}

extension AccessTokenRequirement {
    fileprivate init(_ requirement: EnforcementQuestion.Requirement) throws(RequestError) {
        var kinds: Set<CallerKind> = []
        for name in requirement.kinds {
            guard let kind = CallerKind(rawValue: name) else {
                throw RequestError(400, "The question names a kind of callers that this server does not know.")
            }
            kinds.insert(kind)
        }
        self.init(
            scopes: requirement.scopes, audience: requirement.audience, includesIssuer: requirement.includesIssuer,
            kinds: kinds, isSenderConstrained: requirement.isSenderConstrained)
    }
}

extension EnforcementAnswer {
    /// What a decision is on the wire. `limit` is the largest body that the gateway may send.
    init(_ decision: RemoteDecision, to question: EnforcementQuestion, limit: Int) {
        switch decision {
        case .needBody(let whole): self = .needBody(whole ? .whole : .digest, limit: limit)
        case .refusedCookie: self = .refused(.cookie)
        case .refused(let refusal):
            self = .refused(
                .token(
                    scheme: refusal.scheme, error: refusal.error, detail: refusal.detail, nonce: refusal.nonce))
        case .decided(let decision, let caller): self.init(decision, caller, question)
        }
    }

    private init(_ decision: AccessDecision, _ caller: RemoteCaller, _ question: EnforcementQuestion) {
        let nonce = caller.caller.newNonce
        switch decision {
        case .granted(let taken):
            var grant = Grant()
            if let user = caller.caller.user {
                var named = User(id: user.id, name: user.username)
                named.claims = caller.claims(question.claims)
                grant.user = named
            }
            grant.scopes = caller.caller.scopes?.sorted()
            grant.transaction = taken?.id
            grant.identity = caller.identity
            grant.keepSeconds = Int(caller.keepSeconds)
            grant.newNonce = nonce
            self = .granted(grant)
        case .advised(let advice, _):
            var advised = Advised(advice)
            advised.acrValues = caller.acrValues
            if case .accessToken = caller.caller { advised.hasToken = true }
            advised.newNonce = nonce
            self = .advised(advised)
        case .alreadyTaken(let record):
            self = .alreadyTaken(
                transaction: record.id, outcome: record.outcome.map(EnforcementOutcome.init), newNonce: nonce)
        case .denied(let denial):
            var denied = Denial(telling: denial)
            denied.newNonce = nonce
            self = .denied(denied)
        }
    }
}

extension EnforcementAnswer.Denial {
    /// What a gateway is told of a denial: no more than its client is answered.
    fileprivate init(telling denial: AccessDenial) {
        switch denial {
        case .noSession: self.init(.noSession)
        case .tokenKind: self.init(.tokenKind)
        case .unavailable: self.init(.unavailable)
        case .outcomeUnknown: self.init(.outcomeUnknown)
        case .refused(let error): self.init(.request, code: error.code.rawValue, detail: error.detail)
        case .noPolicy, .notPermitted, .severalTransactions, .unboundContent, .transaction: self.init(.forbidden)
        }
    }
}

extension UpstreamOutcome {
    /// What a gateway says became of a request.
    init(_ outcome: EnforcementOutcome) {
        switch outcome {
        case .taken: self = .taken
        case .forwarded: self = .forwarded
        case .notForwarded: self = .notForwarded
        case .answered(let status): self = .answered(status: status)
        case .unknown: self = .unknown
        }
    }
}

extension EnforcementOutcome {
    /// What is on record of a request.
    fileprivate init(_ outcome: UpstreamOutcome) {
        switch outcome {
        case .taken: self = .taken
        case .forwarded: self = .forwarded
        case .notForwarded: self = .notForwarded
        case .answered(let status): self = .answered(status: status)
        case .unknown: self = .unknown
        }
    }
}
