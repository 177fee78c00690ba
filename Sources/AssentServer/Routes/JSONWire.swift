import AssentCore
import AssentEngine
import AssentStore
import Hummingbird
import Logging

/// What answers below `/json`: AM's REST interface and ours beside it.
struct JSONRoutes: Sendable {
    let authenticate: AuthenticateRoute
    let sessions: SessionRoutes
    let policies: PolicyRoutes
    let administration: AdministrationRoutes
    let cookie: SessionCookie
}

/// How `/json` answers: refusals are in AM's form and words.
struct JSONWire: RouteWire {
    typealias Service = OAuthProvider

    static let readsRealmParameter = true

    let logger: Logger

    func trusted(_ origins: WebOrigins, realm: String) -> TrustedOrigins? { origins.json(realm: realm) }

    func check(_ request: Request) throws {
        if let refusal = APIVersion.refusal(request.headers) { throw refusal }
    }

    func response(refusing error: any Error, to request: Request, of rule: RouteRule?, realm: String?) throws
        -> Response
    {
        switch error {
        case let error as AMError: return error.response
        case let error as RequestError: return AMError(error).response
        case let error as EngineError: return AMError(error).response
        case let error as StoreError:
            logger.error("the database failed", metadata: ["error": "\(error)"])
            return AMError(EngineError(error)).response
        case RouteRefusal.tokenRefused(let refusal): return .crest(refusal)
        case let refusal as SenderProofRefusal: return .crest(TokenRefusal(refusal))
        case let refusal as RouteRefusal: return AMError(refusal, of: rule).response
        default: throw error
        }
    }
}

extension AMError {
    /// What AM says to a request that its route's row refuses.
    fileprivate init(_ refusal: RouteRefusal, of rule: RouteRule?) {
        switch refusal {
        case .noRoute: self = .notFound
        case .unknownRealm(let realm): self.init(EngineError(.unknownRealm, about: String(realm.prefix(200))))
        case .method:
            let named = (rule?.methods ?? []).map(\.rawValue).joined(separator: " or ")
            let use = "Use \(named)" + (rule?.takesAction == true ? " with _action." : ".")
            self.init(405, [use, rule?.methodHint].compactMap(\.self).joined(separator: " "))
        case .forgery(let reason): self.init(403, reason)
        case .foreignSession: self.init(.forbidden)
        case .kind: self.init(EngineError(.tokenKind))
        case .sessionRequired, .tokenRequired, .tokenRefused: self.init(.sessionRequired)
        }
    }
}
