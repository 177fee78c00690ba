package import AssentCore
import Logging

/// What the gateway asks of the engine, in the order of a request: who sends it and which policies are about it, what
/// is decided, and, with a transaction, that it is forwarded once. It is a class because each request hands it on.
package final class GatewayAccess: Sendable {
    let callers: Callers
    let settlement: AccessSettlement

    /// What signs ``ServiceIdentity``.
    let keys: ServerKeys

    /// Whether the requests have come sealed (docs/payload-encryption.md).
    package var isSealed: Bool { callers.isSealed }

    /// Access through the gateway.
    package init(callers: Callers, settlement: AccessSettlement, keys: ServerKeys) {
        self.callers = callers
        self.settlement = settlement
        self.keys = keys
    }

    /// Who sends the request, and which policies are about it. Only those that speak of its action are taken.
    ///
    /// - Throws: ``StoreError`` when the database cannot serve.
    package func admit(_ inquiry: GatewayInquiry) async throws -> GatewayAdmission {
        let caller = try await callers.caller(
            with: inquiry.credentials, realm: inquiry.realm, requirement: inquiry.accessToken)
        guard let set = settlement.decisions.policySet(inquiry.policySet, realm: inquiry.realm) else {
            settlement.context.logger.error(
                "unknown policy set", metadata: ["policySet": "\(inquiry.policySet)"])
            return GatewayAdmission(caller: caller, method: inquiry.method, matched: nil)
        }
        return GatewayAdmission(
            caller: caller, method: inquiry.method,
            matched: settlement.decisions.match(set, resource: inquiry.resource, action: inquiry.action))
    }

    /// Decides on an admitted request and settles its transaction.
    package func settle(_ request: GatewayRequest) async -> AccessDecision { await settlement.settle(request) }

    /// The `acr_values` by which a client gets an access token that meets an advice (RFC 9470 §3); empty when no
    /// sign-in meets it.
    package func acrValues(meeting advice: Advice, realm: String) -> [String] {
        callers.contexts(realm: realm)?.values(meeting: advice, realm: realm) ?? []
    }

    /// Forwards the request of a taken transaction, once; see ``Transactions/forwarding(_:send:)``.
    package func forwarding<Reply: Sendable>(
        _ transaction: TakenTransaction, send: @escaping @Sendable () async -> (Reply, UpstreamOutcome)
    ) async -> ForwardingResult<Reply> {
        await settlement.transactions.forwarding(transaction, send: send)
    }
}

/// A request as the gateway asks about it before it reads the body.
package struct GatewayInquiry: Sendable {
    /// The realm of the policies.
    package let realm: String
    /// Their set.
    package let policySet: String
    /// The HTTP method, which is what a transaction binds.
    package let method: String
    /// What the policies decide on.
    package let action: String
    /// The resource, without the parameter that carries the transaction's id.
    package let resource: CanonicalResource

    /// What says who sends it.
    package let credentials: PresentedCredentials
    /// What an access token must have here.
    package let accessToken: AccessTokenRequirement

    /// Whether a transaction was spent for it, when its caller is looked up again.
    package var isApproved = false

    /// A request.
    ///
    /// - Parameters:
    ///   - realm: the realm of the policies.
    ///   - policySet: their set.
    ///   - method: the HTTP method.
    ///   - action: the action that is asked for; `nil` when it is the method.
    ///   - resource: the resource, without the parameter that carries the transaction's id.
    ///   - credentials: what says who sends it.
    ///   - accessToken: what an access token must have here.
    package init(
        realm: String, policySet: String, method: String, action: String? = nil, resource: CanonicalResource,
        credentials: PresentedCredentials, accessToken: AccessTokenRequirement
    ) {
        self.realm = realm
        self.policySet = policySet
        self.method = method
        self.action = action ?? method
        self.resource = resource
        self.credentials = credentials
        self.accessToken = accessToken
    }
}

/// Who sends a request, and which policies are about it: found once and used until the end.
package struct GatewayAdmission: Sendable {
    /// Who sends it.
    package let caller: Caller

    /// The HTTP method, which a transaction binds whatever the action is.
    package let method: String

    /// The policies; `nil` when there is no such set.
    package let matched: MatchedPolicies?

    /// An admission.
    package init(caller: Caller, method: String, matched: MatchedPolicies?) {
        self.caller = caller
        self.method = method
        self.matched = matched
    }

    /// Whether a policy binds the body, which must then be read whole before anything is settled.
    package var bindsBody: Bool { matched?.bindsBody ?? false }
}

/// A request with all that a decision needs. The gateway forwards the very resource and body that stand here.
package struct GatewayRequest: Sendable {
    /// Who sends it, and which policies are about it.
    package var admission: GatewayAdmission

    /// The `Content-Type`, when there is one.
    package var mediaType: String?

    /// The raw body that will be forwarded; `nil` when it was not read because no policy binds it.
    package var body: [UInt8]?

    /// The transaction's id, if the request carries one.
    package var transactionID: String?

    /// The client's address, when it has one.
    package var clientAddress: IPAddress?

    /// The value of `Idempotency-Key`, which tells requests apart that look alike.
    package var idempotencyKey: String?

    /// Which gateway asks.
    var maker = TransactionMaker.gateway

    /// What a gateway elsewhere calls the request.
    var attempt: TransactionAttempt?

    /// The SHA-256 of the body, where a gateway elsewhere has sent that alone.
    var bodyDigest: [UInt8]?

    /// A request.
    package init(
        _ admission: GatewayAdmission, mediaType: String? = nil, body: [UInt8]? = nil, transactionID: String? = nil,
        clientAddress: IPAddress? = nil, idempotencyKey: String? = nil
    ) {
        self.idempotencyKey = idempotencyKey
        self.admission = admission
        self.mediaType = mediaType
        self.body = body
        self.transactionID = transactionID
        self.clientAddress = clientAddress
    }
}

extension AccessSettlement {
    /// What is wrong with the request itself, and not with the engine.
    private static let refusals: Set<EngineError.Code> = [
        .invalidRequest, .tooLarge, .unsupportedMediaType, .tooManyRequests,
    ]

    /// Decides on a request at the gateway and settles its transaction. A transaction id that does not help is a
    /// refusal, never a new advice. Whatever fails, the request is denied.
    package func settle(_ request: GatewayRequest) async -> AccessDecision { await decide(request).decision }

    /// The same, with when the decision may come out otherwise because time has passed, in seconds since 1970.
    func decide(_ request: GatewayRequest) async -> (decision: AccessDecision, nextChange: Int64?) {
        guard let matched = request.admission.matched else { return (.denied(.unavailable), nil) }
        let presented = request.admission.caller.presented
        do {
            let question = AccessQuestion(
                matched: matched, maker: request.maker, facts: try await facts(of: request, matched),
                presented: presented, content: request.content, transactionID: request.transactionID,
                idempotencyKey: request.idempotencyKey, attempt: request.attempt)
            let settled = try await settle(question)
            if case .denied(.noPolicy) = settled.decision, presented == nil, !request.admission.caller.isClientItself {
                return (.denied(.noSession), nil)
            }
            return (settled.decision, settled.assessment.nextChange)
        } catch {
            return (.denied(denial(of: error)), nil)
        }
    }

    /// Who sends a request, and under which circumstances.
    func facts(of request: GatewayRequest, _ matched: MatchedPolicies) async throws -> PolicyFacts {
        let caller = request.admission.caller
        let session = caller.liveSession.flatMap { $0.realm == matched.set.realm ? $0 : nil }
        var facts = PolicyFacts(
            user: caller.user, client: caller.clientItself, session: session, clientAddress: request.clientAddress,
            now: context.clock.epochSeconds, scopes: caller.scopes)
        try await addSightings(to: &facts, for: matched.policies)
        return facts
    }

    /// What a request is denied for that could not be decided on.
    private func denial(of error: any Error) -> AccessDenial {
        guard let error = error as? EngineError else {
            context.logger.error("a decision failed", metadata: ["error": "\(error)"])
            return .unavailable
        }
        if error.code == .sessionRequired { return .noSession }
        if Self.refusals.contains(error.code) { return .refused(error) }
        context.logger.error("a decision failed", metadata: ["error": "\(error)"])
        return error.code == .outcomeUnknown ? .outcomeUnknown : .unavailable
    }
}

extension GatewayRequest {
    /// What of the request can be bound. Without a body that was read, only what is bound without one can be.
    fileprivate var content: RequestContent {
        let method = admission.method
        if let bodyDigest { return RequestContent(method: method, mediaType: mediaType, bodyDigest: bodyDigest) }
        return RequestContent(method: method, mediaType: mediaType, body: body)
    }
}
