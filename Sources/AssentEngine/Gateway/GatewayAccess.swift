package import AssentCore
import Logging

/// What the gateway asks of the engine, in the order of a request: who sends it and which policies are about it, what
/// is decided, and, with a transaction, that it is forwarded once.
package struct GatewayAccess: Sendable {
    let callers: Callers
    let settlement: AccessSettlement

    /// What signs ``ServiceIdentity``.
    let keys: ServerKeys

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
    let policySet: String
    /// The HTTP method, which is what a transaction binds.
    let method: String
    /// What the policies decide on.
    let action: String
    let resource: CanonicalResource

    /// What says who sends it.
    package let credentials: PresentedCredentials
    let accessToken: AccessTokenRequirement

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
    package func settle(_ request: GatewayRequest) async -> AccessDecision {
        guard let matched = request.admission.matched else { return .denied(.unavailable) }
        let presented = request.admission.caller.presented
        do {
            let question = AccessQuestion(
                matched: matched, maker: .gateway, facts: try await facts(of: request, matched), presented: presented,
                // Without a body that was read, only what is bound without one can be bound.
                content: RequestContent(
                    method: request.admission.method, mediaType: request.mediaType, body: request.body),
                transactionID: request.transactionID, idempotencyKey: request.idempotencyKey)
            let decision = try await settle(question).decision
            if case .denied(.noPolicy) = decision, presented == nil, !request.admission.caller.isClientItself {
                return .denied(.noSession)
            }
            return decision
        } catch let error as EngineError where error.code == .sessionRequired {
            return .denied(.noSession)
        } catch let error as EngineError where Self.refusals.contains(error.code) {
            return .denied(.refused(error))
        } catch {
            context.logger.error("a decision failed", metadata: ["error": "\(error)"])
            return .denied((error as? EngineError)?.code == .outcomeUnknown ? .outcomeUnknown : .unavailable)
        }
    }
    /// Who sends a request, and under which circumstances.
    func facts(of request: GatewayRequest, _ matched: MatchedPolicies) async throws -> PolicyFacts {
        let caller = request.admission.caller
        let session = caller.presented.flatMap { $0.session.realm == matched.set.realm ? $0.session : nil }
        let facts = PolicyFacts(
            user: caller.user, client: caller.clientItself, session: session, clientAddress: request.clientAddress,
            now: context.clock.epochSeconds, scopes: caller.scopes)
        return try await withSightings(facts, for: matched.policies)
    }
}
