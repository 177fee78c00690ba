package import AssentCore
import Logging

/// A request as the gateway asks about it. It forwards the very resource and body that stand here.
package struct GatewayRequest: Sendable {
    /// The realm of the policies.
    package var realm: String

    /// The policy set.
    package var policySet: String

    /// The session, or `nil` for a request without one that lives.
    package var session: PresentedSession?

    /// The HTTP method; also the action that is asked for.
    package var method: String

    /// The resource, without the parameter that carries the transaction's id.
    package var resource: CanonicalResource

    /// The `Content-Type`, when there is one.
    package var mediaType: String?

    /// The raw body that will be forwarded; `nil` when it was not read because no policy binds it
    /// (``PolicyDecisionPoint/bindsBody(_:method:policySet:realm:)``).
    package var body: [UInt8]?

    /// The transaction's id, if the request carries one.
    package var transactionID: String?

    /// The client's IPv4 address, when it has one.
    package var clientAddress: IPv4Address?

    /// A request.
    package init(
        realm: String, policySet: String, session: PresentedSession?, method: String, resource: CanonicalResource,
        mediaType: String? = nil, body: [UInt8]? = nil, transactionID: String? = nil, clientAddress: IPv4Address? = nil
    ) {
        self.realm = realm
        self.policySet = policySet
        self.session = session
        self.method = method
        self.resource = resource
        self.mediaType = mediaType
        self.body = body
        self.transactionID = transactionID
        self.clientAddress = clientAddress
    }
}

/// What the gateway does with a request.
package enum GatewayDecision: Sendable, Hashable {
    /// Forward it; with a record, once: the transaction is spent, whatever happens from here.
    case allow(taken: TransactionRecord?)
    /// Tell the client what to do first; with a record, to have that transaction approved.
    case advice(Advice, transaction: TransactionRecord?)
    /// The transaction was used before for this very request (409 with what is known).
    case alreadyTaken(TransactionRecord)
    /// Refuse it.
    case deny(PolicyDenial)
}

extension PolicyDecisionPoint {
    /// What is wrong with the request itself, and not with the engine.
    private static let refusals: Set<EngineError.Code> = [
        .invalidRequest, .tooLarge, .unsupportedMediaType, .tooManyRequests,
    ]

    /// Whether a policy binds the body of such a request, so that the gateway must read it whole before it asks.
    package func bindsBody(_ resource: CanonicalResource, method: String, policySet name: String, realm: String) -> Bool
    {
        policySet(name, realm: realm)?.policies.contains { policy in
            policy.isActive && policy.bind.contains(.body) && policy.actionValues[method] != nil
                && policy.covers(resource)
        } ?? false
    }

    /// Decides on a request at the gateway. Only the policies that speak of its method count. A transaction id that is of no
    /// use is a refusal, never a new advice. Whatever fails, the request is denied.
    package func decide(_ request: GatewayRequest) async -> GatewayDecision {
        guard let set = policySet(request.policySet, realm: request.realm) else {
            context.logger.error("unknown policy set", metadata: ["policySet": "\(request.policySet)"])
            return .deny(.unavailable)
        }
        let question = PolicyQuestion(
            set: set, kind: .gateway, resource: request.resource,
            subject: request.session.map(DecisionSubject.session) ?? .anonymous, action: request.method,
            content: request.content, clientAddress: request.clientAddress, transactionID: request.transactionID)
        do {
            switch try await rule(question).verdict {
            case .granted(_, let record): return .allow(taken: record)
            case .advised(let advices, let record):
                let entries = advices.map { Advice.Entry(Advice.Name(rawValue: $0.key), $0.value) }
                return .advice(try Advice(entries), transaction: record)
            case .alreadyTaken(let record): return .alreadyTaken(record)
            case .denied(.noPolicy) where request.session == nil: return .deny(.noSession)
            case .denied(let reason): return .deny(reason)
            }
        } catch let error as EngineError where error.code == .sessionRequired {
            return .deny(.noSession)
        } catch let error as EngineError where Self.refusals.contains(error.code) {
            return .deny(.refused(error))
        } catch {
            context.logger.error("a decision failed", metadata: ["error": "\(error)"])
            return .deny(.unavailable)
        }
    }
}

extension GatewayRequest {
    /// Without a body that was read, only what is bound without one can be bound.
    fileprivate var content: RequestContent? {
        RequestContent(method: method, mediaType: mediaType, body: body)
    }
}
